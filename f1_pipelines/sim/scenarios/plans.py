"""The opponents' planned stops, and which character each column has."""
from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from f1_pipelines.sim.engine.compiled import compiled
from f1_pipelines.sim.scenarios.families import CHARACTERS

UNDERCUTTER, OPPORTUNIST, GAMBLER, DEFENDER = 2, 3, 4, 5  # columns; 1 is the plan follower, from 6 on they repeat
KINDS = len(CHARACTERS)
NEVER = 1 << 30  # later than any lap of a race


@compiled
def kind_of(column: int) -> int:
    """Index into CHARACTERS of the opponent in a column; the characters repeat."""
    return (column - 1) % KINDS


class PlanTables(NamedTuple):
    """The plans of a batch for compiled code; T rows."""

    row_of: np.ndarray  # (E,) row of each episode
    lap: np.ndarray  # (S, T, N)
    compound: np.ndarray  # (S, T, N)
    gamble_lap: np.ndarray  # (T,)
    full: bool


@dataclass(frozen=True, eq=False)
class OpponentPlans:
    """The plans of a batch; column 0, our car, is not used."""

    row_of: np.ndarray  # (E,) row of each episode
    lap: np.ndarray  # (S, T, N) stop at the end of this lap, NEVER: no such stop
    compound: np.ndarray  # (S, T, N)
    gamble_lap: np.ndarray  # (T,)
    full: bool = False  # Grand Prix: longer than a tyre set lasts, so a car on worn tyres stops whatever its plan

    @classmethod
    def of(cls, lap: np.ndarray, compound: np.ndarray, gamble_lap: np.ndarray, full: bool = False) -> OpponentPlans:
        """The plans of a batch, (S, E, N); lap 0: no such stop."""
        planned = np.ascontiguousarray(np.where(lap > 0, lap, NEVER), dtype=np.int64)
        return cls(np.arange(lap.shape[1]), planned, np.ascontiguousarray(compound, dtype=np.int64),
                   np.asarray(gamble_lap, dtype=np.int64), full)

    @cached_property
    def tables(self) -> PlanTables:
        """The plans for compiled code."""
        return PlanTables(self.row_of, self.lap, self.compound, self.gamble_lap, self.full)

    def take(self, episodes: np.ndarray) -> OpponentPlans:
        """Select episodes, in this order."""
        return replace(self, row_of=self.row_of[episodes])

    @property
    def alone(self) -> OpponentPlans:
        """The plans without opponents: column 0 alone."""
        lap, compound = (np.ascontiguousarray(table[:, :, :1]) for table in (self.lap, self.compound))
        return replace(self, lap=lap, compound=compound)
