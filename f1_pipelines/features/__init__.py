"""Features of each car before lights out: pure functions from frames to frames."""
