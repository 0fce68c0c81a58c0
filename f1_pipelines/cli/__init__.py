"""The command `f1`: its commands, the demo, the doctor, and what a terminal shows."""
