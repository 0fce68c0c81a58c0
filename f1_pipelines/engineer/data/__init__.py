"""Demonstrations to learn from: expert laps, and DAgger rounds in which the student drives."""
