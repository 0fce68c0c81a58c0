"""What a checkpoint or a prediction saw, kept for ever, and proof that it comes out of that again."""
