"""`f1 demo`: the whole flow in one command."""
