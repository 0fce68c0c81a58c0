"""Position model: turns a ranker's scores into probabilities of finishing places. Stored with the checkpoint.

Notable choices, each measured in docs/lab-notes/probabilities.md:
- Six inputs of each car relative to its field. The score gives the order; its square, the starting place on three
  scales and the order by form adjust how much it counts at the front, where the probabilities are.
- Each stage has its own weights: a forecast from form alone has to be less certain.
- The starting place is the grid; before it is known, the order of qualifying, before that, of practice.
- The fit has a prior that pulls the heads together, so that a season of 21 races gives no certainty.
- The chance of retiring depends on the first input only; all six predict it no better.
- The fit uses the ranker's scores on its own training races. This costs nothing measurable, because the prior of the
  ranker's twenty weights prevents overfitting: scores of rankers not trained on a race are no more certain.
"""
from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from f1_pipelines.evaluation.probabilities import DRAWS
from f1_pipelines.features.ranking import as_known_at
from f1_pipelines.models.plackett_luce import fit_heads, fit_stops, sample_places
from f1_pipelines.tables.features import STAGES

if TYPE_CHECKING:
    from f1_pipelines.models.trained import TrainedRanker

INPUTS = ("score", "score_squared", "start", "start_squared", "start_log", "form_log")
GRID_INPUTS = ("start", "start_log")  # the fair baseline: nothing but the grid
OUTLIER = 3.0  # clip at this many standard deviations from the mean of the race, as in the ranker
PRIOR = 0.3  # strength of the prior [races]; 0.1 to 3 give equal results
_STARTS = ("grid_position", "qualifying_position", "practice_gap_pct")  # the first one known for any car counts
_FORM = "driver_finish_form"


@dataclass(frozen=True)
class PositionModel:
    """Weights of the position model.

    Attributes:
        inputs: Names from `INPUTS`.
        weights: By stage, (inputs, heads) float64.
        stops: By stage, (2,) float64: log odds of retiring of a car with first input 0, and their slope per unit of it.
    """

    inputs: tuple[str, ...]
    weights: dict[str, np.ndarray]
    stops: dict[str, np.ndarray]

    def of(self, race: pd.DataFrame, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Strengths of the cars of one race, (N, heads), and their chances of retiring, (N,).

        Args:
            race: Feature rows of the race at one stage; missing = unknown.
            scores: (N,) ranker scores, higher = further ahead.

        Raises:
            ValueError: The stage has no weights.
        """
        [stage] = race["stage"].unique()
        if stage not in self.weights:
            raise ValueError(f"probabilities were fitted for {', '.join(self.weights)}, not for {stage}: train again")
        x, (level, slope) = race_inputs(race, scores, self.inputs), self.stops[stage]
        return x @ self.weights[stage], 1.0 / (1.0 + np.exp(-level - slope * x[:, 0]))

    def drawn(self, race: pd.DataFrame, scores: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Sample the finishing places of `DRAWS` races of this field, (DRAWS, N). Arguments as for `of`."""
        return sample_places(*self.of(race, scores), DRAWS, rng)


def with_position_model(trained: TrainedRanker, rows: pd.DataFrame, stages: Collection[str] = STAGES) -> TrainedRanker:
    """Add a position model to the ranker, fitted on these races at each stage. Takes 1 s for four seasons.

    Args:
        trained: The ranker.
        rows: Starters of completed races with features, `official_order` and `classified`; features of later stages are
            masked here.
        stages: Stages to fit.
    """
    by_stage = {stage: as_known_at(rows, stage) for stage in stages}
    scores = {stage: trained.scores(known) for stage, known in by_stage.items()}
    return replace(trained, places=fit_position_model(by_stage, scores))


def fit_position_model(rows: dict[str, pd.DataFrame], scores: dict[str, np.ndarray],
                       inputs: tuple[str, ...] = INPUTS) -> PositionModel:
    """Fit the weights of each stage.

    Args:
        rows: By stage: starters of completed races with `official_order`, `classified` and the features known then.
        scores: By stage: ranker scores of these rows.
        inputs: Names from `INPUTS`.
    """
    fits = {stage: _fit(known, scores[stage], inputs) for stage, known in rows.items()}
    return PositionModel(inputs, {stage: heads for stage, (heads, _) in fits.items()},
                         {stage: stops for stage, (_, stops) in fits.items()})


def race_inputs(race: pd.DataFrame, scores: np.ndarray, inputs: tuple[str, ...] = INPUTS) -> np.ndarray:
    """Inputs of the cars of one race, (N, len(inputs)): mean 0 over the known values, 0 where unknown."""
    return _inputs(_columns(race), scores, inputs)


def _inputs(race: dict[str, np.ndarray], scores: np.ndarray, inputs: tuple[str, ...]) -> np.ndarray:
    """As `race_inputs`, from plain columns: slicing a wide frame race by race takes longer than the fit."""
    score = np.asarray(scores, dtype="float64")
    score = score - score.mean()
    start, form = _ranks(_start(race)), _ranks(race[_FORM])
    standard = _standard(start)
    values = {
        "score": score, "score_squared": _centred(score**2 / 5.0), "start": standard,
        "start_squared": _centred(standard**2),
        "start_log": _centred(-np.log(start)), "form_log": _centred(-np.log(form)),
    }
    return np.stack([np.nan_to_num(values[name], nan=0.0) for name in inputs], axis=1)


def _fit(rows: pd.DataFrame, scores: np.ndarray, inputs: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Fit the weights of the heads, (inputs, heads), and of retiring, (2,)."""
    columns, order = _columns(rows), rows["official_order"].to_numpy("float64")
    starters = rows.groupby("weekend").indices.values()
    races = [_inputs({name: values[at] for name, values in columns.items()}, scores[at], inputs)[order[at].argsort()]
             for at in starters]
    is_classified = rows["classified"].to_numpy(bool)
    classified = [int(is_classified[at].sum()) for at in starters]
    return fit_heads(races, classified, PRIOR), fit_stops(races, classified, PRIOR)


def _columns(rows: pd.DataFrame) -> dict[str, np.ndarray]:
    return {name: rows[name].to_numpy("float64", na_value=np.nan) for name in (*_STARTS, _FORM) if name in rows.columns}


def _start(race: dict[str, np.ndarray]) -> np.ndarray:
    """The best known starting order, lowest first; all missing before any session."""
    for name in _STARTS:
        if not np.isnan(race[name]).all():
            break
    return race[name]


def _ranks(values: np.ndarray) -> np.ndarray:
    """1 = lowest, mean ranks for ties, NaN where unknown."""
    known = ~np.isnan(values)
    ranks = np.full(len(values), np.nan)
    ranks[known] = rankdata(values[known])
    return ranks


def _centred(values: np.ndarray) -> np.ndarray:
    known = ~np.isnan(values)
    return values - (values[known].mean() if known.any() else 0.0)


def _standard(values: np.ndarray) -> np.ndarray:
    """Scale to mean 0 and standard deviation 1, clipped at `OUTLIER`; 0 if all values are equal."""
    centred = _centred(values)
    known = centred[~np.isnan(centred)]
    spread = float(np.sqrt((known**2).sum() / max(len(known) - 1, 1)))
    return np.clip(centred / spread, -OUTLIER, OUTLIER) if spread > 0 else centred
