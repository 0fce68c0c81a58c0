"""Rankers: models, training, checkpoints and probabilities, in PyTorch."""
