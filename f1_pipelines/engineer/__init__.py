"""The race engineer: a language model that learns to call races in the simulator."""
