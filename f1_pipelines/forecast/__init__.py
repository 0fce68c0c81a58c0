"""Forecasts of a race: the ranker's order with its probabilities, and simulated races of the same field."""
