"""Continual learning of the ranker: updates after each race, starting from a pretrained ranker."""
