"""The random numbers of a scenario: a fixed stream of uniforms from a key, the same on every machine."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from f1_pipelines.sim.engine import noise

Item = TypeVar("Item")
_DRAWS = 240


class ScenarioRng:
    """Draws in sequence. The order counts: a new draw in between changes a family, so raise ENV_VERSION with it."""

    def __init__(self, key: int, draws: int = _DRAWS) -> None:
        self._draws = noise.uniforms(np.array([key]), np.arange(draws), np.zeros((1, 1), dtype=int), (0,)).ravel()
        self._at = 0

    def uniform(self, low: float = 0.0, high: float = 1.0) -> float:
        """A uniform number between low and high."""
        self._at += 1
        return low + (high - low) * float(self._draws[self._at - 1])

    def chance(self, p: float) -> bool:
        """True with probability p."""
        return self.uniform() < p

    def integer(self, low: int, high: int) -> int:
        """A uniform integer from low to high, both included."""
        return min(low + int(self.uniform() * (high - low + 1)), high)

    def choice(self, items: Sequence[Item]) -> Item:
        """One of the items, each with the same chance."""
        return items[self.integer(0, len(items) - 1)]

    def normal(self, sd: float) -> float:
        """A nearly normal number of mean 0: a sum of four uniforms, never beyond 3.5 sd."""
        return sd * (sum(self.uniform() for _ in range(4)) - 2.0) * 1.7320508075688772

    def shuffled(self, items: Sequence[Item]) -> list[Item]:
        """The items in random order."""
        rest = list(items)
        return [rest.pop(self.integer(0, len(rest) - 1)) for _ in range(len(rest))]
