"""Rendering of observations as prompt tokens and of commands as completion tokens."""
