"""Rankers and how they are trained, kept and loaded. Torch is imported in here and nowhere else."""
