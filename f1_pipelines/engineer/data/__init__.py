"""Demonstrations for training: laps of the expert, and DAgger rounds in which the student drives."""
