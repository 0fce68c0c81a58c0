"""HTTP routes: episodes, simulation, predictions, operations."""
