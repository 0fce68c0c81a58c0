"""A real race as arrays by lap and car, counted like the engine's: the inputs and the reference of replays."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from f1_pipelines.sim.engine.parameters import COMPOUNDS, GREEN, MEDIUM, RED, SC, VSC

CODE = {"SOFT": 0, "MEDIUM": 1, "HARD": 2, "INTERMEDIATE": 3, "WET": 4}
assert COMPOUNDS == ("soft", "medium", "hard", "inter", "wet")
SAW_FLAG = ("finished", "lapped", "disqualified")
LEADERS = 3  # the track status of a lap is that of most of the three leading cars (docs/physics.md#safety-car)


@dataclass(frozen=True)
class RealRace:
    """A race of L laps and the N cars that started and have laps, in grid order."""

    weekend: str
    season: int
    circuit: str
    laps: int
    drivers: tuple[str, ...]
    constructors: tuple[str, ...]
    finish: np.ndarray  # (N,) classified place, NaN for the others
    laps_done: np.ndarray  # (N,)
    stopped: np.ndarray  # (N,) bool: did not take the flag
    status: np.ndarray  # (L,) track status on the leaders' lap
    start_compound: np.ndarray  # (N,)
    start_wear: np.ndarray  # (N,) laps
    pit: np.ndarray  # (L, N) compound fitted at the end of the lap, -1: no stop
    set_wear: np.ndarray  # (L, N) wear of the fitted set [laps]
    line_s: np.ndarray  # (L, N) session clock at the end of the lap, NaN if unknown

    @property
    def finishers(self) -> np.ndarray:
        return np.isfinite(self.finish)


def real_race(staged: pd.DataFrame, results: pd.DataFrame, circuit: str, laps: int) -> RealRace:
    """Build the arrays of one race.

    Args:
        staged: Staged laps of this race.
        results: Rows of `race.results` of this race, newest version.
        circuit: Circuit id.
        laps: Race distance.
    """
    started = results[results["driver"].isin(staged["driver"]) & results["grid_position"].notna()]
    started = started.sort_values("grid_position")
    drivers = started["driver"].astype(str).tolist()
    place = {driver: n for n, driver in enumerate(drivers)}
    own = staged[staged["driver"].isin(drivers) & (staged["lap"] <= laps)]
    at = (own["lap"].to_numpy() - 1, own["driver"].map(place).to_numpy())
    shape = (laps, len(drivers))

    def by_lap(values: np.ndarray, fill: float) -> np.ndarray:
        table = np.full(shape, fill, dtype=float)
        table[at] = values
        return table

    compound = by_lap(own["compound"].map(CODE).to_numpy(float), np.nan)
    compound = pd.DataFrame(compound).ffill().bfill().fillna(MEDIUM).to_numpy(int)
    wear = np.nan_to_num(by_lap(own["wear_laps"].to_numpy(float), np.nan))
    pit_in = by_lap(own["pit_in"].to_numpy(float), 0.0) > 0
    driven = np.isfinite(by_lap(np.zeros(len(own)), np.nan))
    pit, set_wear = np.full(shape, -1), np.zeros(shape)
    stops = pit_in[:-1] & driven[1:]  # an in-lap without a following lap is a retirement
    pit[:-1][stops], set_wear[:-1][stops] = compound[1:][stops], wear[1:][stops]
    classified = started["finish_position"].where(started["classified"].astype(bool))
    return RealRace(
        weekend=str(staged["weekend"].iloc[0]), season=int(staged["season"].iloc[0]), circuit=circuit, laps=laps,
        drivers=tuple(drivers), constructors=tuple(started["constructor"].astype(str)),
        finish=classified.to_numpy("float64", na_value=np.nan),
        laps_done=started["laps"].to_numpy("float64", na_value=0.0).astype(int),
        stopped=~started["status"].isin(SAW_FLAG).to_numpy(bool), status=lap_status(own, laps),
        start_compound=compound[0], start_wear=wear[0], pit=pit, set_wear=set_wear,
        line_s=by_lap(own["session_time_s"].to_numpy(float), np.nan))


def lap_status(own: pd.DataFrame, laps: int) -> np.ndarray:
    """(L,) status of each lap for most of the leading cars; laps without records are green."""
    leading = own[own["position"] <= LEADERS]
    share = leading.groupby("lap")[["red", "sc", "vsc", "vsc_ending"]].mean().reindex(range(1, laps + 1))
    most = share.fillna(0.0).to_numpy() >= 0.5
    return np.select([most[:, 0], most[:, 1], most[:, 2] | most[:, 3]], [RED, SC, VSC], GREEN)
