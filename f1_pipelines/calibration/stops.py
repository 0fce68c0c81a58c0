"""Time lost in stops (in-lap and out-lap together) by track status (docs/physics.md#stops)."""
from __future__ import annotations

import numpy as np
import pandas as pd

from f1_pipelines.calibration.robust import mad_sd
from f1_pipelines.calibration.stage import CAR

KINDS = ("green", "vsc", "vsc_ending", "sc", "sc_later")
CLEAN_LAPS = 4  # before and after a green stop
WITHIN_S = 20.0  # a stop under a neutralisation is compared with cars this near that stay out
SANE_S = (-15.0, 60.0)  # outside: a repair, a penalty, a gap in the clock
LEAST_SD_S = 1.4  # robust sd within a race (docs/physics.md#stops), for races with few stops
LEAST_GREEN_S = 10.0  # shorter than any pit lane: a gap in the clock
SLOW_SD_S = 5.0  # under VSC and SC, due to the car's track position (quartiles of docs/physics.md#stops)
SHARED_SD_S = 4.0  # due to the leader's track position, common to all cars of a race


def stop_losses(staged: pd.DataFrame) -> pd.DataFrame:
    """One row per measurable stop: `weekend`, `driver`, `lap` (the in-lap), `kind`, `loss_s`.

    Green: in-lap and out-lap less the medians of up to four clean laps before and after. Under VSC and SC: time of both
    laps less the median of cars within 20 s that stayed out. `sc` is a stop in the lap of deployment; after an
    `sc_later` stop the car regains time in the queue but loses places.
    """
    dry = staged[staged["dry"]]
    by_car = dry.groupby(CAR)
    frame = dry[[*CAR, "lap", "pit_in", "lap_time_s", "session_time_s", "sc", "vsc", "vsc_ending", "slow", "red",
                 "before_slow"]].copy()
    for name in ("lap_time_s", "sc", "vsc", "vsc_ending", "slow", "red", "pit_in", "pit_out", "session_time_s"):
        frame[f"{name}_out"] = by_car[name].shift(-1)
    frame["line_s"] = by_car["session_time_s"].shift()
    frame["sc_before"] = by_car["sc"].shift(fill_value=False)
    usual = dry["lap_time_s"].where(dry["clean"])
    before = usual.groupby([dry["weekend"], dry["driver"]]).transform(lambda lap: lap.dropna().rolling(
        CLEAN_LAPS, min_periods=2).median().reindex(lap.index).ffill())
    backwards = usual[::-1]
    after = backwards.groupby([dry["weekend"], dry["driver"]]).transform(lambda lap: lap.dropna().rolling(
        CLEAN_LAPS, min_periods=2).median().reindex(lap.index).ffill())[::-1]
    frame["usual_s"] = before + after
    stops = frame[frame["pit_in"] & frame["pit_out_out"].eq(True) & ~frame["pit_in_out"].eq(True) & (frame["lap"] > 1)
                  & ~frame["red"] & ~frame["red_out"].eq(True)].copy()
    stops["both_s"] = stops["lap_time_s"] + stops["lap_time_s_out"]
    stops["kind"] = np.select(
        [stops["sc"] & ~stops["sc_before"], stops["sc"] & stops["sc_before"],
         stops["vsc"] & (stops["vsc_out"].eq(True) | stops["vsc_ending_out"].eq(True)),
         stops["vsc"] | stops["vsc_ending"], ~stops["slow"] & ~stops["slow_out"].eq(True) & ~stops["before_slow"]],
        ["sc", "sc_later", "vsc", "vsc_ending", "green"], "")
    green = stops["kind"] == "green"
    stops["loss_s"] = np.where(green, stops["both_s"] - stops["usual_s"], _against_others(stops, frame))
    sane = stops["kind"].ne("") & stops["loss_s"].between(*SANE_S) & (~green | (stops["loss_s"] > LEAST_GREEN_S))
    return stops.loc[sane, [*CAR, "lap", "kind", "loss_s"]].reset_index(drop=True)


def _against_others(stops: pd.DataFrame, frame: pd.DataFrame) -> np.ndarray:
    """Time of both laps less the median of nearby cars that drove the same two laps without a stop."""
    others = frame[~frame["pit_in"] & ~frame["pit_in_out"].eq(True) & ~frame["pit_out_out"].eq(True)]
    others = others.assign(both=others["session_time_s_out"] - others["line_s"])
    by_lap = dict(list(others[others["both"].notna()].groupby(["weekend", "lap"])))
    loss = np.full(len(stops), np.nan)
    slow = stops["kind"].isin(KINDS[1:]).to_numpy()
    for n, stop in zip(np.flatnonzero(slow), stops[slow].itertuples(), strict=True):
        near = by_lap.get((stop.weekend, stop.lap))
        if near is None:
            continue
        near = near.loc[(near["line_s"] - stop.line_s).abs() < WITHIN_S, "both"]
        if len(near):
            loss[n] = stop.session_time_s_out - stop.line_s - near.median()
    return loss


def loss_by_race(stops: pd.DataFrame, kind: str) -> pd.DataFrame:
    """Median loss [s] of one kind of stop by race: `weekend`, `value`, `se`, `n`."""
    of_kind = stops[stops["kind"] == kind].groupby("weekend")["loss_s"]
    n = of_kind.size()
    least, shared = (LEAST_SD_S, 0.0) if kind == "green" else (SLOW_SD_S, SHARED_SD_S)
    spread = of_kind.agg(lambda loss: mad_sd(loss.to_numpy())).clip(lower=least)
    return pd.DataFrame({"value": of_kind.median(), "se": np.hypot(1.25 * spread / np.sqrt(n), shared),
                         "n": n}).reset_index()


def scatter_by_race(stops: pd.DataFrame) -> pd.DataFrame:
    """Robust sd of green stops within a race [s]: `weekend`, `value`, `se`, `n`; races with at least eight stops."""
    green = stops[stops["kind"] == "green"].groupby("weekend")["loss_s"]
    n = green.size()
    sd = green.agg(lambda loss: mad_sd(loss.to_numpy()))
    frame = pd.DataFrame({"value": sd, "se": sd / np.sqrt(n), "n": n})  # MAD: about 1.65 / sqrt(2 n) of the sd
    return frame[(frame["n"] >= 8) & (frame["se"] > 0)].reset_index()
