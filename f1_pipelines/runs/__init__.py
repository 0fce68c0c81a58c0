"""Dagster runs seen from outside: events, failures, hosts, processes, and runs whose process died."""
