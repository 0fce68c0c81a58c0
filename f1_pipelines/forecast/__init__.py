"""Race forecasts: the ranker's order with probabilities, and simulated races of the same field."""
