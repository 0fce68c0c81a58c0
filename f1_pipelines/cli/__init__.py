"""The command `f1`: commands, demo, doctor and terminal output."""
