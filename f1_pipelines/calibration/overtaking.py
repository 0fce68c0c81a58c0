"""Passes between pairs of cars at the line: pass probability by era and circuit, and time lost behind another car.

    P(pass in the lap) = logistic(intercept + per_advantage adv - per_gap gap + circuit), gap < 1.5 s

Measured in docs/physics.md#overtaking. `adv` is the difference of the two cars' fitted lap times in free air. It is
fitted on the same race; a forecast's advantage is noisier.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from f1_pipelines.calibration.lap_model import SE_FACTOR, RaceFit, design
from f1_pipelines.calibration.robust import mad_sd
from f1_pipelines.calibration.stage import CAR

FIT_GAP_S = 1.5
ERAS = ((2018, 2021), (2022, 2025), (2026, 9999))  # technical regulations
POOLED = np.array([-0.3, 2.4, -4.4])  # docs/physics.md#overtaking: intercept, per s of advantage, per s of gap
POOLED_SD = np.array([0.5, 1.0, 1.0])
CIRCUIT_SD = 1.5  # sd of circuits in the logit: Monaco is 3 below the others (docs/physics.md#circuits: .02 to .70)
REACH_S = 3.0  # up to this gap dirty air is linear, as in the engine


def free_air_s(clean: pd.DataFrame, fits: Mapping[str, RaceFit]) -> pd.Series:
    """Fitted time of each staged lap without its traffic term [s], for the fitted races."""
    parts = []
    for weekend, laps in clean.groupby("weekend"):
        fit = fits[weekend]
        free = design(laps.assign(gap_s=np.inf), fit.half) @ fit.terms
        parts.append(pd.Series(laps["driver"].map(fit.pace_s).to_numpy(float) + free, laps.index))
    return pd.concat(parts)


def pairs(staged: pd.DataFrame, fits: Mapping[str, RaceFit]) -> pd.DataFrame:
    """One row per car and green lap that started directly behind another car on the same lap.

    Returns:
        `weekend`, `season`, `driver`, `lap`, `ahead` (driver), `gap_s` (at the start of the lap), `advantage_s` (of the
        follower), `passed`, `loss_s` (lap time over free air). Laps 1 and 2 and laps with a stop are left out.
    """
    laps = staged[staged["weekend"].isin(list(fits))]
    frame = laps[[*CAR, "season", "lap", "lap_time_s", "session_time_s", "green", "before_slow", "pit_in", "pit_out",
                  "compound"]].copy()
    frame["free_s"] = free_air_s(laps, fits)
    frame["line_s"] = laps.groupby(CAR)["session_time_s"].shift()
    usable = frame["line_s"].notna() & frame["free_s"].notna()
    frame = frame[usable].sort_values(["weekend", "lap", "line_s"], kind="stable")
    ahead = frame.groupby(["weekend", "lap"])[
        ["driver", "line_s", "session_time_s", "free_s", "pit_in", "pit_out"]].shift()
    frame["ahead"], frame["gap_s"] = ahead["driver"], frame["line_s"] - ahead["line_s"]
    frame["advantage_s"] = ahead["free_s"] - frame["free_s"]
    frame["passed"] = frame["session_time_s"] < ahead["session_time_s"]
    frame["loss_s"] = frame["lap_time_s"] - frame["free_s"]
    # A lapped car in between holds the follower up: the gap on the road must equal the gap to the car ahead.
    on_road = laps.loc[frame.index, "gap_s"]
    keep = (frame["ahead"].notna() & frame["green"] & ~frame["before_slow"] & ~frame["pit_in"] & ~frame["pit_out"]
            & ahead["pit_in"].eq(False) & ahead["pit_out"].eq(False) & (frame["lap"] > 2)
            & ((on_road - frame["gap_s"]).abs() < 0.01))
    return frame.loc[keep, [*CAR, "season", "lap", "ahead", "gap_s", "advantage_s", "passed", "loss_s"]]


@dataclass(frozen=True)
class PassRule:
    """Fitted pass probability: (intercept, per s of advantage, per s of gap) by era, shift and error by circuit."""

    era: dict[tuple[int, int], np.ndarray]
    era_se: dict[tuple[int, int], np.ndarray]
    circuit: dict[str, tuple[float, float]]
    n_pairs: int
    auc: float

    def of_season(self, season: int) -> tuple[np.ndarray, np.ndarray] | None:
        """Coefficients and errors of the season's era; None if it has no pairs."""
        for era, coef in self.era.items():
            if era[0] <= season <= era[1]:
                return coef, self.era_se[era]
        return None


def fit_pass_rule(passes: pd.DataFrame, circuits: Mapping[str, str], rounds: int = 30) -> PassRule:
    """Fit by logistic regression (Newton's method) with a prior on each coefficient.

    Args:
        passes: Rows of `pairs`.
        circuits: Circuit by weekend.
    """
    near = passes[(passes["gap_s"] < FIT_GAP_S) & passes["advantage_s"].abs().lt(5.0)]
    season = near["season"].to_numpy()
    eras = [era for era in ERAS if ((season >= era[0]) & (season <= era[1])).any()]
    names, circuit = np.unique(near["weekend"].map(circuits).to_numpy(str), return_inverse=True)
    x = np.zeros((len(near), 3 * len(eras) + len(names)))
    base = np.column_stack([np.ones(len(near)), near["advantage_s"], near["gap_s"]])
    for n, (low, high) in enumerate(eras):
        x[:, 3 * n:3 * n + 3] = base * ((season >= low) & (season <= high))[:, None]
    x[np.arange(len(near)), 3 * len(eras) + circuit] = 1.0
    y = near["passed"].to_numpy(float)
    mean = np.r_[np.tile(POOLED, len(eras)), np.zeros(len(names))]
    strength = 1 / np.square(np.r_[np.tile(POOLED_SD, len(eras)), np.full(len(names), CIRCUIT_SD)])
    coef = mean.copy()
    for _ in range(rounds):
        p = 1 / (1 + np.exp(-np.clip(x @ coef, -30, 30)))
        hessian = (x * (p * (1 - p))[:, None]).T @ x + np.diag(strength)
        move = np.linalg.solve(hessian, x.T @ (y - p) - strength * (coef - mean))
        coef = coef + move
        if np.abs(move).max() < 1e-6:
            break
    se = np.sqrt(np.diag(np.linalg.inv(hessian)))
    k = 3 * len(eras)
    return PassRule({era: coef[3 * n:3 * n + 3] for n, era in enumerate(eras)},
                    {era: se[3 * n:3 * n + 3] for n, era in enumerate(eras)},
                    {str(name): (float(c), float(e)) for name, c, e in zip(names, coef[k:], se[k:], strict=True)},
                    len(near), _auc(x @ coef, y))


def dirty_air_by_race(passes: pd.DataFrame) -> pd.DataFrame:
    """Time lost by a follower without an advantage, as the engine's slope: `weekend`, `value` [s at gap 0], `se`, `n`.

    Fits loss = value (1 - gap / 3 s) by least absolute error, because lap noise has median 0, not mean 0. Quicker cars
    are left out: they are also held up, which the engine simulates separately.
    """
    slow = passes[(passes["advantage_s"] < 0) & (passes["gap_s"] < REACH_S) & ~passes["passed"]]
    close = 1 - slow["gap_s"] / REACH_S
    rows = []
    for weekend, laps in slow.assign(close=close, ratio=slow["loss_s"] / close).groupby("weekend"):
        if len(laps) >= 20:
            ranked = laps.sort_values("ratio")
            weight = ranked["close"].cumsum()
            value = float(ranked["ratio"].iloc[int(np.searchsorted(weight, weight.iloc[-1] / 2))])
            sd = mad_sd((laps["loss_s"] - value * laps["close"]).to_numpy())
            rows.append((weekend, value, 1.25 * SE_FACTOR * sd / np.sqrt((laps["close"] ** 2).sum()), len(laps)))
    return pd.DataFrame(rows, columns=["weekend", "value", "se", "n"])


def _auc(score: np.ndarray, y: np.ndarray) -> float:
    rank = pd.Series(score).rank().to_numpy()
    positives = y.sum()
    if positives in (0, len(y)):
        return float("nan")
    return float((rank[y > 0].sum() - positives * (positives + 1) / 2) / (positives * (len(y) - positives)))
