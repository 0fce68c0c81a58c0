"""A batch of races prepared for the engine: `prepare(setup) -> Race`.

Everything that depends only on the seed is drawn here, once, so a forked race gets the same noise.
"""
from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from f1_pipelines.sim.engine.parameters import EngineParameters
from f1_pipelines.sim.engine.race_tables import Batch, tables_of
from f1_pipelines.sim.engine.setup import RaceSetup, check_setup
from f1_pipelines.sim.engine.tables import Tables


@dataclass(frozen=True, eq=False)
class Race:
    """The tables of a batch; nothing in them changes during a race."""

    table_setup: RaceSetup  # of the races of the tables
    tables: Tables

    @property
    def episodes(self) -> int:
        """Number of races."""
        return len(self.tables.row_of)

    @property
    def cars(self) -> int:
        """Cars of a race."""
        return int(self.tables.of_car.shape[1])

    @property
    def first(self) -> int:
        """Laps already driven when the tables begin."""
        return self.tables.first

    @property
    def laps(self) -> int:
        """Laps of the longest race of the tables."""
        return self.tables.first + len(self.tables.lap_of_car)

    @property
    def engine(self) -> EngineParameters:
        """Parameters shared by the whole batch."""
        return self.table_setup.engine

    @cached_property
    def setup(self) -> RaceSetup:
        """The setup of the batch."""
        row_of = self.tables.row_of
        whole = np.array_equal(row_of, np.arange(len(self.tables.of_race)))
        return self.table_setup if whole else self.table_setup.take(row_of)

    def of_race(self, name: str) -> np.ndarray:
        """A field of OF_RACE, (E,)."""
        return np.asarray(self.tables.of_race[name][self.tables.row_of])

    def of_lap(self, name: str, lap: int) -> np.ndarray:
        """A field of LAP_OF_RACE in a lap, (E,)."""
        return np.asarray(self.tables.lap_of_race[name][self.row(lap), self.tables.row_of])

    def tyre(self, name: str) -> np.ndarray:
        """A field of TYRE, (E, 5) by compound."""
        return np.asarray(self.tables.tyres[name][self.tables.row_of])

    @property
    def race_laps(self) -> np.ndarray:
        """Race distance of each race [laps], (E,)."""
        return self.of_race("race_laps")

    @property
    def fuel_burn(self) -> np.ndarray:
        """Fuel of a lap in mode race under green [kg], (E,)."""
        return self.of_race("fuel_burn")

    @property
    def wetness(self) -> np.ndarray:
        """Wetness of the track by lap, (L, E)."""
        return np.asarray(self.tables.lap_of_race["wetness"][:-1, self.tables.row_of])

    def row(self, lap: int) -> int:
        """Row of a lap in the tables by lap."""
        return lap - self.first - 1

    def take(self, episodes: np.ndarray) -> Race:
        """Select episodes, in this order and with repetitions: `prepare(setup.take(episodes))` without new draws."""
        return replace(self, tables=self.tables._replace(row_of=self.tables.row_of[episodes]))

    def with_lap_of_car(self, **changes: Any) -> Race:
        """The race with these fields of LAP_OF_CAR changed, each (L, T, N) or broadcast to it."""
        table = self.tables.lap_of_car.copy()
        for name, value in changes.items():
            table[name] = value
        return replace(self, tables=self.tables._replace(lap_of_car=table))


def prepare(setup: RaceSetup, first: int = 0) -> Race:
    """Draw the noise of every lap after `first` and build the tables.

    Raises:
        BadSetup: A field of the setup is out of range; the message names it.
    """
    batch = Batch.of(setup, first)
    check_setup(setup, batch.race_laps, batch.numbers, batch.grid, first)
    return Race(setup, tables_of(batch))
