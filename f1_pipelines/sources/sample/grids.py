"""Grids of the sample: penalties, pit-lane starts, and cars that do not start."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from f1_pipelines.identity.line_ups import Entry
from f1_pipelines.identity.weekend import Weekend
from f1_pipelines.sim.teams.seeded_draws import uniform

# About 1.2 cars per race start three places or more off their qualifying position, and 50 of 5 000 from the pit lane.
DROP_EARLY, DROP_LATE = 0.015, 0.055  # chance of a penalty of 3, 5 or 10 places at the start and the end of a season
BACK_EARLY, BACK_LATE = 0.002, 0.030  # new power units: to the back of the grid
PIT_LANE, NOT_STARTED = 0.010, 0.004
SPRINT_PIT_LANE = 0.004
_PLACES = (3, 3, 5, 5, 10)


@dataclass(frozen=True)
class Grid:
    """(N,) by car of the line-up. Slots are 1..N, pit-lane starters last; cars that do not start have one too."""

    slot: np.ndarray
    pit_lane: np.ndarray  # bool
    starts: np.ndarray  # bool, known only at lights out


def race_grid(weekend: Weekend, entries: tuple[Entry, ...], order: np.ndarray) -> Grid:
    """Draw the grid of the Grand Prix. `order` (N,) has the car indices in the order of the session that sets it."""
    drivers = [entry.driver for entry in entries]
    u_drop, u_size, u_back, u_pits, u_start = uniform(f"{weekend.key}/grid", drivers, 5)
    season = min(max((weekend.race_start.timetuple().tm_yday - 75) / 260.0, 0.0), 1.0)  # mid-March to December
    drop = u_drop < DROP_EARLY + (DROP_LATE - DROP_EARLY) * season
    back = u_back < BACK_EARLY + (BACK_LATE - BACK_EARLY) * season
    penalty = np.where(drop, np.array(_PLACES)[np.floor(len(_PLACES) * u_size).astype(int)] + 0.5, 0.0)
    return _grid(order, penalty + 100.0 * back, u_pits < PIT_LANE, u_start >= NOT_STARTED)


def sprint_grid(weekend: Weekend, entries: tuple[Entry, ...], order: np.ndarray) -> Grid:
    """Draw the grid of the sprint. All cars start."""
    pits = uniform(f"{weekend.key}/sprint grid", [entry.driver for entry in entries])[0] < SPRINT_PIT_LANE
    return _grid(order, np.zeros(len(entries)), pits, np.ones(len(entries), dtype=bool))


def _grid(order: np.ndarray, penalty: np.ndarray, pit_lane: np.ndarray, starts: np.ndarray) -> Grid:
    rank = np.empty(len(order))
    rank[order] = np.arange(len(order))
    slot = np.empty(len(order), dtype=np.int64)
    slot[(rank + penalty + 1000.0 * pit_lane).argsort(kind="stable")] = np.arange(1, len(order) + 1)
    return Grid(slot, pit_lane, starts)
