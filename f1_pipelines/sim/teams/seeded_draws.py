"""Draws that depend on nothing but their names: no state, no order, the same bits on every machine.

A draw is named by what it is for ("2026-monaco/qualifying/laps") and whom it concerns; asking for one weekend alone
or for five seasons together gives the same numbers. Built on the engine's counter-based noise.
"""
from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from f1_pipelines.sim.engine import noise
from f1_pipelines.sim.engine.hashing import stable_hash

WORLD = "f1-pipelines sample seasons"  # another text, another history of the same teams
_LOGISTIC_SD = 1.8137993642342178  # pi / sqrt(3)
_LIMIT = 4.0  # sd; a logistic draw beyond it is one in a thousand and would be a story of its own


@cache
def seed_of(name: str) -> int:
    """A seed in 0 .. 2^63 - 1 from a name."""
    return stable_hash(f"{WORLD}/{name}")


def uniform(name: str, who: Sequence[str], count: int = 1) -> np.ndarray:
    """Uniform draws in (0, 1), (count, len(who))."""
    cars = np.array([[seed_of(one) for one in who]], dtype=np.uint64)
    return noise.uniforms(np.array([seed_of(name)]), np.arange(count), cars, (noise.LAP,))[0, :, 0, :]


def normal(name: str, who: Sequence[str], count: int = 1) -> np.ndarray:
    """Draws of mean 0 and sd 1, (count, len(who)): logistic ones, whose tails are a little longer than normal."""
    draws = noise.logistic(uniform(name, who, count)) / _LOGISTIC_SD
    return np.minimum(np.maximum(draws, -_LIMIT), _LIMIT)


def scale(name: str, who: Sequence[str], spread: float) -> np.ndarray:
    """Factors around 1, (len(who),): between 1 / spread and spread, as often above as below."""
    u = uniform(name, who)[0]
    above = 1.0 + (spread - 1.0) * np.abs(2.0 * u - 1.0)
    return np.where(u > 0.5, above, 1.0 / above)


def one(name: str) -> float:
    """A single uniform draw."""
    return float(uniform(name, ("",))[0, 0])
