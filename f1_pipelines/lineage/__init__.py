"""The rows that checkpoints and predictions were made from, kept permanently, and proof that they reproduce them."""
