"""The DuckDB file: one writer at a time, whole slices in one transaction, a published copy for everybody else."""
