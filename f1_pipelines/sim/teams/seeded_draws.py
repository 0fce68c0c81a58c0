"""Draws that depend only on their names: no state, no order, the same bits on every machine.

A draw is keyed by its purpose ("2026-monaco/qualifying/laps") and an entity, such as a driver. One weekend alone and
five seasons together get the same numbers. Built on the engine's counter-based noise.
"""
from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from f1_pipelines.sim.engine import noise
from f1_pipelines.sim.engine.hashing import stable_hash

WORLD = "f1-pipelines sample seasons"  # another text gives another history of the same teams
_LOGISTIC_SD = 1.8137993642342178  # pi / sqrt(3)
_LIMIT = 4.0  # sd; one in a thousand logistic draws is beyond it and gets clipped


@cache
def seed_of(name: str) -> int:
    """The seed of a name, 0 to 2^63 - 1."""
    return stable_hash(f"{WORLD}/{name}")


def uniform(name: str, entities: Sequence[str], count: int = 1) -> np.ndarray:
    """Uniform draws in (0, 1), (count, len(entities))."""
    keys = np.array([[seed_of(entity) for entity in entities]], dtype=np.uint64)
    return noise.uniforms(np.array([seed_of(name)]), np.arange(count), keys, (noise.LAP,))[0, :, 0, :]


def normal(name: str, entities: Sequence[str], count: int = 1) -> np.ndarray:
    """Draws of mean 0 and sd 1, (count, len(entities)): logistic, with slightly longer tails than normal ones."""
    draws = noise.logistic(uniform(name, entities, count)) / _LOGISTIC_SD
    return np.minimum(np.maximum(draws, -_LIMIT), _LIMIT)


def scale(name: str, entities: Sequence[str], spread: float) -> np.ndarray:
    """Factors between 1 / spread and spread, (len(entities),), as often above 1 as below."""
    u = uniform(name, entities)[0]
    above = 1.0 + (spread - 1.0) * np.abs(2.0 * u - 1.0)
    return np.where(u > 0.5, above, 1.0 / above)


def uniform_scalar(name: str) -> float:
    """A single uniform draw."""
    return float(uniform(name, ("",))[0, 0])
