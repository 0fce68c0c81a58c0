"""Training of the race engineer: SFT, GRPO, and what both need to run, resume and report."""
