"""Convert a simulated race to rows of `race.laps`, so that the same code measures simulated and real laps."""
from __future__ import annotations

import numpy as np
import pandas as pd

from f1_pipelines.calibration.real_race import CODE, RealRace
from f1_pipelines.calibration.replay import Replay
from f1_pipelines.sim.engine.parameters import GREEN, RED, SC, VSC
from f1_pipelines.sim.engine.state import OUT_S

DIGITS = {GREEN: "1", VSC: "6", SC: "4", RED: "5"}
VSC_ENDS = "67"
_NAMES = {code: name for name, code in CODE.items()}


def simulated_laps(result: Replay, real: RealRace, episode: int) -> pd.DataFrame:
    """Build the rows of `race.laps`, without provenance, of one episode of a replay from the grid.

    The engine adds the whole stop to the in-lap; in-lap and out-lap together cost the same as in reality.
    """
    line = result.line_s[:, episode, :]
    laps, cars = len(line) - 1, line.shape[1]
    driven = line[1:] < 0.5 * OUT_S
    pit = (real.pit >= 0) & np.vstack([driven[1:], np.zeros((1, cars), dtype=bool)])
    pit_out = np.vstack([np.zeros((1, cars), dtype=bool), pit[:-1]])
    compound, age = np.empty((laps, cars), dtype=int), np.empty((laps, cars))
    fitted, wear = real.start_compound, real.start_wear
    for lap in range(laps):
        compound[lap], age[lap] = fitted, wear + 1.0
        fitted = np.where(pit[lap], real.pit[lap], fitted)
        wear = np.where(pit[lap], real.set_wear[lap], wear + 1.0)
    digits = np.array([DIGITS[int(status)] for status in real.status], dtype=object)
    ends = (real.status == VSC) & (np.r_[real.status[1:], GREEN] != VSC)
    digits[ends] = VSC_ENDS
    frame = pd.DataFrame({
        "weekend": real.weekend, "driver": np.tile(np.array(real.drivers, dtype=object), laps),
        "lap": np.repeat(np.arange(1, laps + 1), cars), "lap_time_s": np.diff(line, axis=0).ravel(),
        "compound": np.vectorize(_NAMES.get, otypes=[object])(compound).ravel(), "tyre_age_laps": np.floor(age).ravel(),
        "stint": (1 + pit_out.cumsum(axis=0)).ravel(), "track_status": np.repeat(digits, cars),
        "position": np.argsort(np.argsort(line[1:], axis=1), axis=1).ravel() + 1, "is_pit_in": pit.ravel(),
        "is_pit_out": pit_out.ravel(), "is_accurate": True, "session_time_s": line[1:].ravel()})
    return frame[driven.ravel()].reset_index(drop=True)
