"""A trained language model that answers prompts: checkpoints, prefix cache, batched generation."""
