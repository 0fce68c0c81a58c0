"""Draws that make a scenario: a fixed stream of uniforms from (family, seed), the same on every machine."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from f1_pipelines.sim.engine import noise

Thing = TypeVar("Thing")
_DRAWS = 240


class ScenarioRng:
    """Draws one after the other. Order matters: a new draw in the middle moves a family and raises ENV_VERSION."""

    def __init__(self, key: int, draws: int = _DRAWS) -> None:
        self._draws = noise.uniforms(np.array([key]), np.arange(draws), np.zeros((1, 1), dtype=int), (0,)).ravel()
        self._at = 0

    def uniform(self, low: float = 0.0, high: float = 1.0) -> float:
        """Evenly between low and high."""
        self._at += 1
        return low + (high - low) * float(self._draws[self._at - 1])

    def chance(self, p: float) -> bool:
        """True with probability p."""
        return self.uniform() < p

    def whole(self, low: int, high: int) -> int:
        """A whole number from low to high, both included."""
        return min(low + int(self.uniform() * (high - low + 1)), high)

    def pick(self, things: Sequence[Thing]) -> Thing:
        """One of the things."""
        return things[self.whole(0, len(things) - 1)]

    def bell(self, sd: float) -> float:
        """Roughly normal: the sum of four uniforms, never beyond 3.5 sd."""
        return sd * (sum(self.uniform() for _ in range(4)) - 2.0) * 1.7320508075688772

    def shuffled(self, things: Sequence[Thing]) -> list[Thing]:
        """The things in another order."""
        left = list(things)
        return [left.pop(self.whole(0, len(left) - 1)) for _ in range(len(left))]
