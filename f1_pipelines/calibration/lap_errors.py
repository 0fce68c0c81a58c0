"""Errors of the lap model on held-out laps by race, compared with two simpler models (docs/physics.md#lap-time).

Three tests: a random fifth of a race (all five in turn); the last quarter of a race, fitted on the rest; and a whole
race predicted from earlier seasons. In the last, only the level comes from the race: each driver's median residual, or
that of their first ten clean laps, which are then not scored (`ten_laps`). In the first two the terms have the
circuit's prior from earlier seasons, except in `race_alone`.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from f1_pipelines.calibration.lap_model import Prior, design, fit_race
from f1_pipelines.calibration.races import TermPriors
from f1_pipelines.calibration.robust import huber_ridge

FOLDS, LAST_QUARTER, FIRST_LAPS = 5, 0.75, 10
GLOBAL_SLOPE = 0.03  # s per lap of age: best single slope without a trend (docs/physics.md#lap-time)
INPUTS = "the race's other clean laps; tyres and gaps of all"
LEVEL = "tyres and gaps of its laps, and each driver's median residual in the race; the rest is of earlier seasons"
TEN = "tyres and gaps of its laps, and each driver's first ten clean laps; the rest is of earlier seasons"

Model = Callable[[pd.DataFrame, pd.DataFrame], np.ndarray]  # training laps, held-out laps -> predicted times [s]


def lap_errors(clean: pd.DataFrame, distance: Mapping[str, int], terms: pd.DataFrame, circuit: Mapping[str, str],
               seed: int = 1) -> pd.DataFrame:
    """Build the rows of `sim.validation` about lap times: weekend, method, real_inputs, n_laps, lap_mae_s, lap_rmse_s.

    Args:
        clean: Clean laps of the dry races.
        distance: Laps of each race.
        terms: Terms of the fitted races (`races.term_values`); a race's priors use earlier seasons only.
        seed: Seed of the random fifths.
    """
    rng, rows = np.random.default_rng(seed), []
    priors = {season: TermPriors(terms, season) for season in sorted(set(clean["season"]))}
    for weekend, laps in clean.groupby("weekend"):
        half = distance[weekend] / 2
        prior = priors[int(weekend[:4])].of(circuit[weekend])
        late = (laps["lap"] > LAST_QUARTER * distance[weekend]).to_numpy()
        fifth = rng.permutation(np.arange(len(laps)) % FOLDS)
        for method, model in _models(half, prior):
            time = laps["lap_time_s"].to_numpy()
            error = time[late] - model(laps[~late], laps[late])
            rows.append((weekend, f"laps_last_quarter{method}", INPUTS, *_errors(error)))
            errors = [time[fifth == n] - model(laps[fifth != n], laps[fifth == n]) for n in range(FOLDS)]
            rows.append((weekend, f"laps_random_fifth{method}", INPUTS, *_errors(np.concatenate(errors))))
        if prior is not None:
            rows += [(weekend, *row) for row in _later_race(laps, half, prior)]
    columns = ["weekend", "method", "real_inputs", "n_laps", "lap_mae_s", "lap_rmse_s"]
    return pd.DataFrame(rows, columns=columns).dropna(subset=["lap_mae_s"], ignore_index=True)


def _models(half: float, prior: Prior | None) -> Iterator[tuple[str, Model]]:
    if prior is not None:
        yield "", lambda train, held_out: fit_race(train, half, prior).predict(held_out)
    yield "_race_alone", lambda train, held_out: fit_race(train, half).predict(held_out)
    yield "_driver_median", _driver_median
    yield "_linear", _linear


def _driver_median(train: pd.DataFrame, held_out: pd.DataFrame) -> np.ndarray:
    return held_out["driver"].map(train.groupby("driver")["lap_time_s"].median()).to_numpy(float)


def _linear(train: pd.DataFrame, held_out: pd.DataFrame) -> np.ndarray:
    """A model without the trend: driver + compound + one slope of tyre age."""
    drivers, column = np.unique(train["driver"].to_numpy(str), return_inverse=True)

    def regressors(laps: pd.DataFrame) -> np.ndarray:
        compounds = [(laps["compound"] == name).to_numpy(float) for name in ("SOFT", "HARD")]
        return np.column_stack([*compounds, laps["age_laps"].to_numpy(float)])

    centre, k = train["lap_time_s"].median(), len(drivers)
    fit = huber_ridge(regressors(train), train["lap_time_s"].to_numpy() - centre, column, k, np.zeros(k + 3),
                      np.r_[np.full(k, 5.0), 0.5, 0.5, 0.1])
    level = held_out["driver"].map(dict(zip(drivers.tolist(), fit.coef[:k], strict=True))).to_numpy(float)
    return centre + level + regressors(held_out) @ fit.coef[k:]


def _later_race(laps: pd.DataFrame, half: float, prior: Prior) -> Iterator[tuple[Any, ...]]:
    """Errors of the prior alone, with the level known or from ten laps; also with one slope and without any terms."""
    time = laps["lap_time_s"]
    residuals = {"": time - design(laps, half) @ prior.mean, "_driver_median": time,
                 "_linear": time - GLOBAL_SLOPE * laps["age_laps"]}
    first = (laps.groupby("driver").cumcount() < FIRST_LAPS).to_numpy()
    for method, residual in residuals.items():
        error = residual - residual.groupby(laps["driver"]).transform("median")
        yield (f"laps_later_race{method}", LEVEL, *_errors(error.to_numpy()))
        level = laps["driver"].map(residual[first].groupby(laps["driver"][first]).median())
        yield (f"laps_later_race_ten_laps{method}", TEN, *_errors((residual - level)[~first].to_numpy()))


def _errors(error: np.ndarray) -> tuple[int, float, float]:
    """Number of laps, mean absolute and root mean square error [s], without drivers missing from the training laps."""
    finite = error[np.isfinite(error)]
    if not len(finite):
        return 0, float("nan"), float("nan")
    return len(finite), float(np.abs(finite).mean()), float(np.sqrt(np.square(finite).mean()))
