"""From observations to prompt tokens and from commands to completion tokens."""
