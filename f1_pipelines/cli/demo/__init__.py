"""`f1 demo`: the whole flow as a newcomer runs it."""
