"""Random effects on cars: lap 1, retirements and lap noise.

Measured in docs/physics.md#lap-time, #first-lap and #retirements.
"""
from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from f1_pipelines.calibration.lap_model import RaceFit
from f1_pipelines.calibration.stage import CAR
from f1_pipelines.tables.race import NON_STARTERS

CONTACT = ("accident", "collision", "spun", "damage", "undertray", "front wing")  # words in f1db and FastF1
NOT_CONTACT = ("puncture damage",)
START_SE = 0.1  # places
LOSS_SE = 1.0  # s: quartiles of docs/physics.md#first-lap


def first_laps(staged: pd.DataFrame, results: pd.DataFrame) -> pd.DataFrame:
    """One row per car that started from the grid and did lap 1: `weekend`, `driver`, `grid`, `place`, `clean_start`.

    Grid slots and places are ranks among these cars. A start is clean without an SC, VSC or red flag in lap 1.
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

    The error is of the timing only: the race effect of `empirical_bayes` covers differences between starts.
    """
    by_race = (starts["place"] - starts["grid"]).abs().groupby(starts["weekend"])
    return pd.DataFrame({"value": by_race.mean(), "se": START_SE, "n": by_race.size()}).reset_index()


def first_lap_loss_by_race(staged: pd.DataFrame, starts: pd.DataFrame) -> pd.DataFrame:
    """The leader's lap 1 less the median of the same car's laps 2-5 [s], clean starts: `weekend`, `value`, `se`.

    Not every lap 1 has a time, because the clock at lights out is unknown; laps without a time are left out.
    """
    early = staged[(staged["lap"].between(2, 5)) & staged["green"] & ~staged["pit_in"] & ~staged["pit_out"]]
    usual = early.groupby(CAR)["lap_time_s"].median().rename("usual_s")
    front = starts[(starts["place"] == 1) & starts["clean_start"]].merge(usual.reset_index(), on=CAR)
    loss = (front["lap_time_s"] - front["usual_s"]).where(lambda lost: lost.between(-3, 15))
    by_race = loss.groupby(front["weekend"])
    return by_race.mean().rename("value").dropna().to_frame().assign(se=LOSS_SE).reset_index()


def retirements(results: pd.DataFrame) -> pd.DataFrame:
    """One row per starter: `weekend`, `driver`, `accident`, `mechanical` (not finished for that reason)."""
    rows = results[~results["status"].isin(NON_STARTERS)]
    out = rows["status"].isin(["retired", "not_classified"]) & ~rows["classified"].astype(bool)
    text = rows["status_text"].fillna("").str.lower()
    contact = text.apply(lambda reason: any(word in reason for word in CONTACT)) & ~text.isin(NOT_CONTACT)
    return pd.DataFrame({"weekend": rows["weekend"].astype(object), "driver": rows["driver"].astype(object),
                         "accident": (out & contact).astype(bool), "mechanical": (out & ~contact).astype(bool)})


def hazard(rows: pd.DataFrame, circuits: Mapping[str, str], kind: str, season: int,
           strength: float = 60.0) -> pd.DataFrame:
    """Probability per car and race by circuit, shrunk as by `strength` additional starts at the pooled rate.

    The pooled rate is the season's; the weight of other seasons halves per year of distance.

    Returns:
        `value`, `se`, `starts` on the circuit, and on `""` for the pooled rate.
    """
    year = rows["weekend"].str[:4].astype(int)
    weight = 0.5 ** (year - season).abs()
    pooled = float(np.average(rows[kind], weights=weight))
    era = rows[kind].astype(float).groupby(year).transform("mean").clip(lower=0.01)
    relative = rows[kind] * pooled / era  # removes differences in reliability between seasons
    by_circuit = relative.groupby(rows["weekend"].map(circuits)).agg(["sum", "size"])
    starts = by_circuit["size"] + strength
    value = (by_circuit["sum"] + strength * pooled) / starts
    frame = pd.DataFrame({"value": value, "se": np.sqrt(value / starts), "starts": by_circuit["size"]})
    frame.loc[""] = (pooled, np.sqrt(pooled / strength), 0)
    return frame


def residuals(clean: pd.DataFrame, fits: Mapping[str, RaceFit]) -> pd.DataFrame:
    """Clean laps of the fitted races with `residual_s`: lap time less the prediction of the race's fit."""
    parts = [laps.assign(residual_s=laps["lap_time_s"] - fits[weekend].predict(laps))
             for weekend, laps in clean.groupby("weekend")]
    frame = pd.concat(parts)
    return frame[[*CAR, "lap", "stint", "age_laps", "compound", "gap_s", "residual_s"]]


def fresh_gain_by_race(staged: pd.DataFrame, residual: pd.DataFrame) -> pd.DataFrame:
    """Gain over the fit of the first flying lap of later stints [s]: `weekend`, `value`, `se`, `n`."""
    out_laps = staged[staged["pit_out"] & (staged["lap"] > 1)][[*CAR, "lap"]].assign(lap=lambda laps: laps["lap"] + 1)
    flying = residual.merge(out_laps, on=[*CAR, "lap"])
    by_race = flying.groupby("weekend")["residual_s"]
    n = by_race.size()
    frame = pd.DataFrame({"value": -by_race.median(), "se": 0.6 / np.sqrt(n), "n": n})  # .6 s: sd of such a lap
    return frame[frame["n"] >= 5].reset_index()


def noise_shape(residual: pd.DataFrame) -> dict[str, float]:
    """Lap-to-lap correlation and shares of large free-air residuals: docs/physics.md#lap-time."""
    before = residual.assign(lap=residual["lap"] + 1)
    following = residual.merge(before, on=[*CAR, "lap", "stint"], suffixes=("", "_before"))
    near = following[["residual_s", "residual_s_before"]].abs().max(axis=1) < 3.0
    free = residual.loc[residual["gap_s"] > 3.0, "residual_s"]
    return {"carry": float(following.loc[near, "residual_s"].corr(following.loc[near, "residual_s_before"])),
            "lose_1s": float((free > 1).mean()), "lose_2s": float((free > 2).mean()),
            "gain_1s": float((free < -1).mean())}
