"""Stable identities: weekends, circuits, drivers and constructors. Facts in `data/`, lookups beside them."""
