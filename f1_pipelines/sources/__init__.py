"""Sources of race data. Each returns the same validated tables."""
