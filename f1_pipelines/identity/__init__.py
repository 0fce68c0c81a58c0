"""Stable identities of weekends, circuits, drivers and constructors: data files in `data/` and lookups of them."""
