"""The types of a batch's tables: structured arrays, so that compiled code passes one record around.

Axes: T races of the tables, N cars, L laps. Lap tables use the row `lap - first - 1`.
"""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from f1_pipelines.sim.engine.parameters import EngineParameters


def record(numbers: str, counts: str = "", flags: str = "", count: str = "i8") -> np.dtype[Any]:
    """The type of a record of float64 `numbers`, integer `counts` of type `count`, and bool `flags`, given as names."""
    return np.dtype([(name, kind) for names, kind in ((numbers, "f8"), (counts, count), (flags, "?"))
                     for name in names.split()], align=True)


OF_RACE = record(
    "base_lap_s gap_ratio "  # s of advantage that a second of gap asks for
    "fuel_effect fuel_burn "  # s/kg, kg/lap
    "dirty_air dirty_reach "  # s, 1/s
    "wear_scale heat_c lapped_loss fresh_s "  # x, C, s/lap, s that a new set adds to a lap (negative)
    "first_lap_loss standstill "  # s, s (part of the stop's loss)
    "start_wetness",
    "race_laps",
    "standing_start "  # whether it starts from the grid in these tables
    "given_status "  # whether the status of every lap is given, or else drawn
    "two_compounds")  # whether the two-compound rule holds
OF_CAR = record(
    "start_key "  # sort key of the order after lap 1
    "accident accident_first mechanical other",  # chance per lap; other: mechanical failure or puncture by debris
    "grid_place mate")  # column of the car in this place before the start; column of the team mate, own if none
LAP_OF_RACE = record(
    "circuit_s "  # circuit and trend
    "neutral_s "  # green lap of a median car on used mediums, without its fuel
    "wetness event_u duration_u",  # 0 to 1; draws for the status of the next lap
    "status status_age status_left")  # where they are given
LAP_OF_CAR = record(
    "lap_s noise_s unseen_s "  # circuit, trend, car, driver and noise; noise; minus the part that opens no pass
    "needed_s "  # advantage needed to pass with no gap
    "follow_s "  # by place: least time behind the leader of a train, summed up
    "stop_s hazard_u puncture_u cliff_factor")  # the last one of a set put on after that lap
TYRE = record("offset_s slope_s cliff_laps")  # s, s per lap of wear, laps of wear
ENGINE = record(" ".join(name for name, value in vars(EngineParameters()).items() if not isinstance(value, tuple)))
STATUS_EFFECT = record("wear fuel temp_c hazard")  # x, x, C added to the tyres, x


class Tables(NamedTuple):
    """Everything that does not change during a race."""

    row_of: np.ndarray  # (E,) race of the tables that each episode drives
    of_race: np.ndarray  # (T,) OF_RACE
    of_car: np.ndarray  # (T, N) OF_CAR
    lap_of_race: np.ndarray  # (L + 1, T) LAP_OF_RACE; of the last row only the status counts
    lap_of_car: np.ndarray  # (L, T, N) LAP_OF_CAR
    tyres: np.ndarray  # (T, 5) TYRE by compound
    stop_loss_s: np.ndarray  # (T, 5) under green, VSC, SC, red, ending VSC
    slow_ratio: np.ndarray  # (T, 2, K) x green lap: leader and others; VSC, its end, SC by lap
    status_rates: np.ndarray  # (T, 2, 4) background chance of each status in lap 1 and in others
    status_factors: np.ndarray  # (T, 4) how readily retirements close the track
    status_effects: np.ndarray  # (4,) STATUS_EFFECT
    drives: np.ndarray  # (256,) DRIVE
    engine: np.ndarray  # (1,) ENGINE
    first: int  # laps already driven
