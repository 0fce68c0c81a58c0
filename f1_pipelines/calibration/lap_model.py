"""The lap model of one race: lap time = driver + trend + compound + wear + traffic, fitted robustly on clean laps.

    lap_time_s = pace[driver] + trend (lap - half) + offset[compound] + slope[compound] wear + loss[gap < 1, 1-2, 2-3 s]

(docs/physics.md#lap-time). `lap` and `wear` are counted like the engine's fuel and wear (`stage`): wear is 0 on a new
set. Driver columns have no prior in effect; the nine other terms have wide priors by default, or those of earlier races
at the circuit (`races.TermPriors`).
"""
from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from f1_pipelines.calibration.robust import huber_ridge, mad_sd
from f1_pipelines.calibration.stage import SLICKS

TERMS = ("trend", "offset_soft", "offset_hard", "slope_soft", "slope_medium", "slope_hard",
         "traffic_1", "traffic_2", "traffic_3")
# Medians over races of 2018-26 and half to twice their spread between races (docs/physics.md#lap-time).
WIDE_MEAN = np.array([-0.055, 0.0, 0.10, 0.05, 0.05, 0.04, 0.35, 0.17, 0.09])
WIDE_SD = np.array([0.04, 0.40, 0.40, 0.08, 0.06, 0.05, 0.30, 0.20, 0.15])
# AR(1) from lap to lap (docs/physics.md#lap-time): errors are sqrt((1 + c) / (1 - c)) times those of independent laps.
CARRY = 0.42
SE_FACTOR = float(np.sqrt((1 + CARRY) / (1 - CARRY)))
FREE_GAP_S = 1.5  # with a larger gap a car laps at nearly its own pace
LEAST_LAPS = 5  # clean laps needed for a driver's pace to count as fitted


@dataclass(frozen=True)
class Prior:
    """Prior means and standard deviations of the terms of a race, in the order of `TERMS`."""

    mean: np.ndarray = field(default_factory=WIDE_MEAN.copy)
    sd: np.ndarray = field(default_factory=WIDE_SD.copy)


@dataclass(frozen=True)
class RaceFit:
    """Fit of one race: terms [s or s/lap] in the order of `TERMS`, and each driver's pace [s].

    Pace is a lap at half distance on new medium tyres in free air. Scatter is that of laps in free air, because traffic
    adds to it.
    """

    terms: np.ndarray
    terms_se: np.ndarray
    pace_s: dict[str, float]
    pace_se: dict[str, float]
    laps_of: dict[str, int]
    half: float
    scatter_s: float
    n_laps: int

    def predict(self, laps: pd.DataFrame) -> np.ndarray:
        """Expected lap times [s] of staged laps; NaN for drivers without a fit."""
        pace = laps["driver"].map(self.pace_s).to_numpy(float)
        return pace + design(laps, self.half) @ self.terms


def design(laps: pd.DataFrame, half: float) -> np.ndarray:
    """(n, 9) regressors of the terms of staged laps."""
    compound, wear = laps["compound"].to_numpy(object), laps["wear_laps"].to_numpy(float)
    gap = laps["gap_s"].to_numpy(float)
    soft, medium, hard = (compound == name for name in SLICKS)
    columns = [laps["fuel_laps"].to_numpy(float) - half, soft, hard, soft * wear, medium * wear, hard * wear,
               gap < 1.0, (gap >= 1.0) & (gap < 2.0), (gap >= 2.0) & (gap < 3.0)]
    return np.column_stack([np.asarray(column, dtype=float) for column in columns])


def fit_race(laps: pd.DataFrame, half: float, prior: Prior | None = None) -> RaceFit:
    """Fit one race.

    Args:
        laps: Clean staged laps of one race; drivers without any get no pace.
        half: Half the race distance [laps], to which pace refers.
        prior: Prior of the terms; wide by default.
    """
    prior = prior or Prior()
    drivers, column = np.unique(laps["driver"].to_numpy(str), return_inverse=True)
    k, x, y = len(drivers), design(laps, half), laps["lap_time_s"].to_numpy(float)
    centre = float(np.median(y))
    fit = huber_ridge(x, y - centre, column, k, np.concatenate([np.zeros(k), prior.mean]),
                      np.concatenate([np.full(k, 5.0), prior.sd]))  # 5 s: no prior in effect
    counts = np.bincount(column, minlength=k)
    residual = y - centre - fit.coef[column] - x @ fit.coef[k:]
    free = laps["gap_s"].to_numpy(float) > FREE_GAP_S
    return RaceFit(
        terms=fit.coef[k:], terms_se=fit.se[k:] * SE_FACTOR,
        pace_s={str(d): float(p) for d, p in zip(drivers, fit.coef[:k] + centre, strict=True)},
        pace_se={str(d): float(p) for d, p in zip(drivers, fit.se[:k] * SE_FACTOR, strict=True)},
        laps_of={str(d): int(n) for d, n in zip(drivers, counts, strict=True)}, half=half,
        scatter_s=mad_sd(residual[free] if free.sum() >= 2 * k else residual), n_laps=len(laps))
