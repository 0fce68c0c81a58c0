"""Schedules that differ from another one by one change: `neighbours_of(row, turn)`."""
from __future__ import annotations

import numpy as np

from f1_pipelines.sim.engine.compiled import compiled
from f1_pipelines.sim.engine.drive import CONSERVE, FUEL_SAVE, PUSH, RACE, TEMP_COOL, TEMP_WARM, TYRE_SAVE
from f1_pipelines.sim.engine.parameters import COMPOUNDS
from f1_pipelines.sim.scoring.schedules import ATTACK, DEFEND, MODE, NOTHING, PIT, TEMP

LONG_LAPS = 20
MODES_TRIED = (PUSH, FUEL_SAVE, CONSERVE, TYRE_SAVE)
SPRINT_LENGTHS, LONG_LENGTHS = (2, 4), (4, 10)  # laps that a mode is tried for, besides the rest of the race
EARLY_LAPS = 4  # free laps in which a tyre temperature is tried
MOST_PER_LAP = 26  # changes of a lap


def neighbours_of(row: np.ndarray, turn: int = 0) -> np.ndarray:
    """Schedules (K, L) with the same stops as `row` (L,) and one other change; in a long race a subset per `turn`."""
    free = np.flatnonzero((row < PIT) | (row >= PIT + len(COMPOUNDS)))
    plans = np.empty((MOST_PER_LAP * len(row), len(row)), dtype=np.int64)
    return plans[:_fill_neighbours(row, turn, free, plans)]


@compiled
def _fill_neighbours(row: np.ndarray, turn: int, free: np.ndarray, plans: np.ndarray) -> int:
    long = len(row) >= LONG_LAPS
    every, count = len(row) // 8 if long else 1, 0
    for k in range(len(free)):
        lap = free[k]
        if (lap + turn) % every and row[lap] == NOTHING:
            continue
        if row[lap] != NOTHING:
            count = _add(row, lap, NOTHING, plans, count)
            for other in range(max(k - 2, 0), min(k + 3, len(free))):
                if row[free[other]] == NOTHING:
                    count = _add(row, lap, NOTHING, plans, count)
                    _change(free[other], row[lap], plans, count)
        count = _add(row, lap, ATTACK, plans, count)
        count = _add(row, lap, DEFEND, plans, count)
        if k < EARLY_LAPS:
            count = _add(row, lap, TEMP + TEMP_WARM, plans, count)
            count = _add(row, lap, TEMP + TEMP_COOL, plans, count)
        for mode in MODES_TRIED:
            for length in LONG_LENGTHS if long else SPRINT_LENGTHS:
                end = k
                while end < len(free) and free[end] < lap + length:
                    end += 1
                if end < len(free):
                    count = _add(row, lap, MODE + mode, plans, count)
                    _change(free[end], MODE + RACE, plans, count)
            count = _add(row, lap, MODE + mode, plans, count)
        count = _add(row, lap, MODE + RACE, plans, count)
    return _add_later_stints(row, free, plans, count)


@compiled
def _add_later_stints(row: np.ndarray, free: np.ndarray, plans: np.ndarray, count: int) -> int:
    """Add the same stint of each command, one and two free laps later."""
    for start in range(len(free)):
        if row[free[start]] == NOTHING:
            continue
        end = start + 1
        while end < len(free) and row[free[end]] == NOTHING:
            end += 1
        for later in range(1, 3):
            if start + later < end:
                count = _add(row, free[start], NOTHING, plans, count)
                if end < len(free):
                    _change(free[end], NOTHING, plans, count)
                _change(free[start + later], row[free[start]], plans, count)
                if end + later < len(free):
                    _change(free[end + later], row[free[end]], plans, count)
    return count


@compiled
def _add(row: np.ndarray, lap: int, code: int, plans: np.ndarray, count: int) -> int:
    """Add a copy of the schedule with one change. Returns the number of plans."""
    for at in range(len(row)):
        plans[count, at] = row[at]
    plans[count, lap] = code
    return count + 1


@compiled
def _change(lap: int, code: int, plans: np.ndarray, count: int) -> None:
    """Change one more lap of the last plan."""
    plans[count - 1, lap] = code
