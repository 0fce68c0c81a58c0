"""Chance of rain at each circuit."""
from __future__ import annotations

from f1_pipelines.identity.weekend import Weekend

# Chance of rain in a session: 18 of 166 races were wet (docs/physics.md#rain); the split by climate is an assumption.
RAIN_USUAL, RAIN_OFTEN, RAIN_SELDOM = 0.13, 0.26, 0.02
_RAINY = frozenset({"spa-francorchamps", "silverstone", "interlagos", "montreal", "suzuka", "sepang", "spielberg",
                    "zandvoort"})
_DRY = frozenset({"bahrain", "jeddah", "lusail", "yas-marina", "las-vegas", "baku", "mexico-city"})


def rain_chance(weekend: Weekend) -> float:
    """Chance of rain in a session of about two hours."""
    return RAIN_OFTEN if weekend.circuit in _RAINY else RAIN_SELDOM if weekend.circuit in _DRY else RAIN_USUAL
