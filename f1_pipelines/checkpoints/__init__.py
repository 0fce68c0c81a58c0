"""Checkpoints of all models: folders named by their content and written atomically."""
