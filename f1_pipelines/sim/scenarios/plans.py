"""What the opponents mean to do, stop by stop, and which character sits in which column."""
from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np

UNDERCUTTER, OPPORTUNIST, GAMBLER, DEFENDER = 2, 3, 4, 5  # columns; 1 is the plan follower, from 6 on they repeat
KINDS = 5
UNDERCUT_REACH = 3
EARLY_REACH = (0, 0, UNDERCUT_REACH, 0, 0, 0)  # laps before the planned one that each may stop, whatever the others do
NEVER = 1 << 30  # a lap that no race reaches


def kind_of(column: int) -> int:
    """Index into CHARACTERS of the opponent in a column: they come round again after the fifth."""
    return (column - 1) % KINDS


@cache
def by_column(values: tuple[float, ...], cars: int) -> np.ndarray:
    """(N,) what holds for the car of each column."""
    return np.array([values[0]] + [values[1 + kind_of(k)] for k in range(1, cars)])


class OpenStops(NamedTuple):
    """The next stop of each opponent, (E, N)."""

    lap: np.ndarray  # NEVER for none
    compound: np.ndarray
    earliest: np.ndarray  # first lap for it while the track is dry and open and nobody else stops
    quiet_until: int  # the first of those


@dataclass(frozen=True, eq=False)
class OpponentPlans:
    """Of a batch, (S, E, N) unless said; column 0, ours, is not used."""

    lap: np.ndarray  # at whose end, 0: no such stop
    compound: np.ndarray
    gamble_lap: np.ndarray  # (E,)
    full: bool = False  # Grand Prix: longer than a set lasts, so that a car on worn tyres stops whatever its plan
    _kept: list[Any] = field(default_factory=lambda: [(None, None)])

    def open_stops(self, stops: np.ndarray) -> OpenStops:
        """What is still to come of the plans after so many stops (E, N). Kept until somebody stops."""
        known = self._kept[0]
        if known[0] is not stops:  # states share the array as long as nobody stops
            lap, compound = self._laps[0], self.compound[0]
            if len(self.lap) > 1:
                nth = np.minimum(stops, len(self.lap) - 1)[None]
                lap, compound = (np.take_along_axis(table, nth, axis=0)[0] for table in (self._laps, self.compound))
            lap = np.where(stops < len(self.lap), lap, NEVER)
            earliest = lap - by_column(EARLY_REACH, lap.shape[1])
            known = self._kept[0] = stops, OpenStops(lap, compound, earliest, int(earliest.min()))
        return known[1]

    @cached_property
    def _laps(self) -> np.ndarray:
        return np.where(self.lap > 0, self.lap, NEVER)

    @cached_property
    def gambles(self) -> frozenset[int]:
        """The laps in which somebody takes intermediates on a forecast, whether or not the rain comes."""
        return frozenset(self.gamble_lap.tolist())

    def take(self, episodes: np.ndarray) -> OpponentPlans:
        """These episodes, in this order."""
        return OpponentPlans(self.lap[:, episodes], self.compound[:, episodes], self.gamble_lap[episodes], self.full)

    @property
    def alone(self) -> OpponentPlans:
        """Without opponents."""
        return OpponentPlans(self.lap[:, :, :1], self.compound[:, :, :1], self.gamble_lap, self.full)
