"""The race engine: parameters, state and one lap of every race of a batch."""
