"""The DuckDB file: one writer at a time, slices replaced in one transaction, and a published copy for readers."""
