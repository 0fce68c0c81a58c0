"""The opponents' planned stops, and which character each column has."""
from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np

from f1_pipelines.sim.scenarios.families import CHARACTERS

UNDERCUTTER, OPPORTUNIST, GAMBLER, DEFENDER = 2, 3, 4, 5  # columns; 1 is the plan follower, from 6 on they repeat
KINDS = len(CHARACTERS)
UNDERCUT_REACH = 3
EARLY_REACH = (0, 0, UNDERCUT_REACH, 0, 0, 0)  # by column: laps before the planned one from which it may stop
NEVER = 1 << 30  # later than any lap of a race


def kind_of(column: int) -> int:
    """Index into CHARACTERS of the opponent in a column; the characters repeat."""
    return (column - 1) % KINDS


@cache
def by_column(values: tuple[float, ...], cars: int) -> np.ndarray:
    """Values by character, ours first, spread over the columns of a race, (N,)."""
    return np.array([values[0]] + [values[1 + kind_of(k)] for k in range(1, cars)])


class OpenStops(NamedTuple):
    """The next stop of each opponent, (E, N)."""

    lap: np.ndarray  # NEVER for none
    compound: np.ndarray
    earliest: np.ndarray  # first lap for it while the track is dry and open and no other car stops
    quiet_until: int  # earliest lap of all


@dataclass(frozen=True, eq=False)
class OpponentPlans:
    """The plans of a batch, (S, E, N) unless stated; column 0, our car, is not used."""

    lap: np.ndarray  # stop at the end of this lap, 0: no such stop
    compound: np.ndarray
    gamble_lap: np.ndarray  # (E,)
    full: bool = False  # Grand Prix: longer than a tyre set lasts, so a car on worn tyres stops whatever its plan
    _cache: list[Any] = field(default_factory=lambda: [(None, None)])

    def open_stops(self, stops: np.ndarray) -> OpenStops:
        """The next planned stop of each car after `stops` stops, (E, N). Cached until a car stops."""
        cached = self._cache[0]
        if cached[0] is not stops:  # states share the array until a car stops
            lap, compound = self._laps[0], self.compound[0]
            if len(self.lap) > 1:
                nth = np.minimum(stops, len(self.lap) - 1)[None]
                lap, compound = (np.take_along_axis(table, nth, axis=0)[0] for table in (self._laps, self.compound))
            lap = np.where(stops < len(self.lap), lap, NEVER)
            earliest = lap - by_column(EARLY_REACH, lap.shape[1])
            cached = self._cache[0] = stops, OpenStops(lap, compound, earliest, int(earliest.min()))
        return cached[1]

    @cached_property
    def _laps(self) -> np.ndarray:
        return np.where(self.lap > 0, self.lap, NEVER)

    @cached_property
    def gambles(self) -> frozenset[int]:
        """The laps in which a gambler takes intermediates on a forecast, with or without rain."""
        return frozenset(self.gamble_lap.tolist())

    def take(self, episodes: np.ndarray) -> OpponentPlans:
        """Select episodes, in this order."""
        return OpponentPlans(self.lap[:, episodes], self.compound[:, episodes], self.gamble_lap[episodes], self.full)

    @property
    def alone(self) -> OpponentPlans:
        """The plans without opponents: column 0 alone."""
        return OpponentPlans(self.lap[:, :, :1], self.compound[:, :, :1], self.gamble_lap, self.full)
