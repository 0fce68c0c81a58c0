"""Benchmarks: `python -m benchmarks` prints every table, `python -m benchmarks.pipeline` one of them."""
