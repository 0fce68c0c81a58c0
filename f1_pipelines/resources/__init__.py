"""What a Dagster run is lent: warehouse, race data, clock, compute, checkpoints, tracking."""
