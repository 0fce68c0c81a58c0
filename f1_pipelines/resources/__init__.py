"""Dagster resources: warehouse, race data, clock, compute, checkpoints, engineers, tracking."""
