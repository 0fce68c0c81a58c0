"""Evaluation of predicted orders: metrics, probabilities, baselines and confidence intervals."""
