"""Lap 1, retirements, and the noise of laps: what happens to cars by chance.

Measured in docs/physics.md#lap-time, #first-lap and #retirements.
"""
from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from f1_pipelines.calibration.lap_model import RaceFit
from f1_pipelines.calibration.stage import CAR
from f1_pipelines.tables.race import NON_STARTERS

CONTACT = ("accident", "collision", "spun", "damage", "undertray", "front wing")  # words of f1db and FastF1
START_SE = 0.1  # places
LOSS_SE = 1.0  # s: quartiles of docs/physics.md#first-lap
NOT_CONTACT = ("puncture damage",)


def first_laps(staged: pd.DataFrame, results: pd.DataFrame) -> pd.DataFrame:
    """One row per car that started from the grid and did lap 1: `weekend`, `driver`, `grid`, `place`, `clean_start`.

    Grid slots and places are counted among these cars. A start is clean when lap 1 saw no SC, VSC or red.
    """
    lap = staged[(staged["lap"] == 1) & staged["session_time_s"].notna()]
    lap = lap[[*CAR, "session_time_s", "slow", "pit_out", "lap_time_s"]]
    started = results[results["grid_status"].isin(["grid", "unknown"]) & results["grid_position"].notna()]
    cars = lap.merge(started[["weekend", "driver", "grid_position"]].astype({"weekend": object, "driver": object}),
                     on=CAR)
    cars = cars[~cars["pit_out"]]
    by_race = cars.groupby("weekend")
    return cars.assign(grid=by_race["grid_position"].rank().astype(int),
                       place=by_race["session_time_s"].rank(method="first").astype(int),
                       clean_start=~by_race["slow"].transform("any"))


def places_by_race(starts: pd.DataFrame) -> pd.DataFrame:
    """Mean |places changed| in lap 1: `weekend`, `value`, `se`, `n`.

    The error stands for the timing alone: how starts differ is the race level of `fits.shrink`.
    """
    places = (starts["place"] - starts["grid"]).abs()
    moved = places.groupby(starts["weekend"])
    n = moved.size()
    return pd.DataFrame({"value": moved.mean(), "se": START_SE, "n": n}).reset_index()


def first_lap_loss_by_race(staged: pd.DataFrame, starts: pd.DataFrame) -> pd.DataFrame:
    """Lap 1 of its leader less the median of its laps 2-5 [s], clean starts: `weekend`, `value`, `se`.

    The first lap is not timed for everybody: the clock from the lights is unknown, so laps without a time are left out.
    """
    early = staged[(staged["lap"].between(2, 5)) & staged["green"] & ~staged["pit_in"] & ~staged["pit_out"]]
    usual = early.groupby(CAR)["lap_time_s"].median().rename("usual_s")
    front = starts[(starts["place"] == 1) & starts["clean_start"]].merge(usual.reset_index(), on=CAR)
    loss = (front["lap_time_s"] - front["usual_s"]).where(lambda lost: lost.between(-3, 15))
    by_race = loss.groupby(front["weekend"])
    return by_race.mean().rename("value").dropna().to_frame().assign(se=LOSS_SE).reset_index()


def retirements(results: pd.DataFrame) -> pd.DataFrame:
    """One row per starter: `weekend`, `driver`, `accident`, `mechanical` (did not finish, for that kind of reason)."""
    rows = results[~results["status"].isin(NON_STARTERS)]
    out = rows["status"].isin(["retired", "not_classified"]) & ~rows["classified"].astype(bool)
    text = rows["status_text"].fillna("").str.lower()
    contact = text.apply(lambda reason: any(word in reason for word in CONTACT)) & ~text.isin(NOT_CONTACT)
    return pd.DataFrame({"weekend": rows["weekend"].astype(object), "driver": rows["driver"].astype(object),
                         "accident": (out & contact).astype(bool), "mechanical": (out & ~contact).astype(bool)})


def hazard(rows: pd.DataFrame, circuits: Mapping[str, str], kind: str, season: int,
           strength: float = 60.0) -> pd.DataFrame:
    """Chance per car and race by circuit, shrunk as if `strength` starts more had been seen at the pooled rate.

    The pooled rate is the season's, other seasons counting half for each year between. Index circuit and `""`.
    """
    year = rows["weekend"].str[:4].astype(int)
    weight = 0.5 ** (year - season).abs()
    pooled = float(np.average(rows[kind], weights=weight))
    era = rows[kind].astype(float).groupby(year).transform("mean").clip(lower=0.01)
    relative = rows[kind] * pooled / era  # a season's reliability is not the circuit's doing
    by_circuit = relative.groupby(rows["weekend"].map(circuits)).agg(["sum", "size"])
    seen = by_circuit["size"] + strength
    value = (by_circuit["sum"] + strength * pooled) / seen
    frame = pd.DataFrame({"value": value, "se": np.sqrt(value / seen), "starts": by_circuit["size"]})
    frame.loc[""] = (pooled, np.sqrt(pooled / strength), 0)
    return frame


def residuals(clean: pd.DataFrame, fits: Mapping[str, RaceFit]) -> pd.DataFrame:
    """Clean laps of the fitted races with `residual_s`: lap time less what the race's own fit expects."""
    parts = [laps.assign(residual_s=laps["lap_time_s"] - fits[weekend].predict(laps))
             for weekend, laps in clean.groupby("weekend")]
    frame = pd.concat(parts)
    return frame[[*CAR, "lap", "stint", "age_laps", "compound", "gap_s", "residual_s"]]


def fresh_gain_by_race(staged: pd.DataFrame, rest: pd.DataFrame) -> pd.DataFrame:
    """How much quicker than its line the first flying lap of a later stint is [s]: `weekend`, `value`, `se`, `n`."""
    out_laps = staged[staged["pit_out"] & (staged["lap"] > 1)][[*CAR, "lap"]].assign(lap=lambda laps: laps["lap"] + 1)
    flying = rest.merge(out_laps, on=[*CAR, "lap"])
    by_race = flying.groupby("weekend")["residual_s"]
    n = by_race.size()
    frame = pd.DataFrame({"value": -by_race.median(), "se": 0.6 / np.sqrt(n), "n": n})  # .6 s: sd of such a lap
    return frame[frame["n"] >= 5].reset_index()


def noise_shape(rest: pd.DataFrame) -> dict[str, float]:
    """Correlation of residuals from lap to lap, shares of free-air laps that lose or gain: docs/physics.md#lap-time."""
    following = rest.merge(rest.assign(lap=rest["lap"] + 1), on=[*CAR, "lap", "stint"], suffixes=("", "_before"))
    near = following[["residual_s", "residual_s_before"]].abs().max(axis=1) < 3.0
    free = rest.loc[rest["gap_s"] > 3.0, "residual_s"]
    return {"carry": float(following.loc[near, "residual_s"].corr(following.loc[near, "residual_s_before"])),
            "lose_1s": float((free > 1).mean()), "lose_2s": float((free > 2).mean()),
            "gain_1s": float((free < -1).mean())}
