"""Inference with a trained language model: checkpoints, prefix cache, batched generation."""
