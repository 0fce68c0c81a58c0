"""Checkpoints of all models: folders named by their content, written whole or not at all."""
