"""From a ranker's scores to probabilities of places: the inputs, the fit, and what is stored with a checkpoint.

Notable choices, each measured in docs/lab-notes/probabilities.md:
- Six inputs of one car against its field. The score says who is ahead; its square, the starting place on three scales
  and the order by form say how much more that means at the front, where the probabilities are.
- Weights of their own for each stage: a forecast from form alone knows less, and has to be less sure.
- The starting place is the grid, before that the order of qualifying, before that of practice.
- Maximum likelihood under a prior that pulls the heads together: a season of 21 races must not end in certainty.
- How often a car stops goes with the first input alone; all six of them say no more.
- The score is the trained ranker's own, on the races that it learnt from. That it knows them costs nothing measurable:
  its twenty weights are held back by its own prior. Scores of rankers that did not know the race are no surer.
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
OUTLIER = 3.0  # spreads from the mean of the race, as in the ranker
PRIOR = 0.3  # strength of the prior [races]; 0.1 to 3 are one plateau
_STARTS = ("grid_position", "qualifying_position", "practice_gap_pct")  # the first one that anybody has
_FORM = "driver_finish_form"


@dataclass(frozen=True)
class PositionModel:
    """What turns inputs into chances.

    Attributes:
        inputs: Names out of `INPUTS`.
        weights: By stage, (inputs, heads) float64.
        stops: By stage, (2,) float64: log odds that a car stops, in the middle of the field and by unit of the first
            input.
    """

    inputs: tuple[str, ...]
    weights: dict[str, np.ndarray]
    stops: dict[str, np.ndarray]

    def of(self, race: pd.DataFrame, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Strengths of the cars of one race, (N, heads), and their chances to stop, (N,).

        Args:
            race: Its feature rows, at a stage that these weights know; missing = unknown.
            scores: (N,) of the ranker, higher = further ahead.
        """
        [stage] = race["stage"].unique()
        if stage not in self.weights:
            raise ValueError(f"probabilities were fitted for {', '.join(self.weights)}, not for {stage}: train again")
        seen, (level, slope) = race_inputs(race, scores, self.inputs), self.stops[stage]
        return seen @ self.weights[stage], 1.0 / (1.0 + np.exp(-level - slope * seen[:, 0]))

    def drawn(self, race: pd.DataFrame, scores: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Places of `DRAWS` races of this field, (DRAWS, N). Arguments as for `of`, and where chance comes from."""
        return sample_places(*self.of(race, scores), DRAWS, rng)


def with_position_model(trained: TrainedRanker, rows: pd.DataFrame, stages: Collection[str] = STAGES) -> TrainedRanker:
    """The ranker with probabilities, fitted on these races at each stage. A second for four seasons.

    Args:
        trained: The ranker.
        rows: Starters of run races with features, `official_order` and `classified`; what comes after a stage is masked
            here.
        stages: Stages to fit for.
    """
    known = {stage: as_known_at(rows, stage) for stage in stages}
    return replace(trained, places=fit_position_model(known, {stage: trained.scores(seen) for stage,
                                                              seen in known.items()}))


def fit_position_model(rows: dict[str, pd.DataFrame], scores: dict[str, np.ndarray],
                       inputs: tuple[str, ...] = INPUTS) -> PositionModel:
    """Fit the weights of each stage.

    Args:
        rows: By stage: starters of run races with `official_order`, `classified` and the features as known then.
        scores: By stage: what the ranker says of these rows.
        inputs: Names out of `INPUTS`.
    """
    weights = {stage: _fit(seen, scores[stage], inputs) for stage, seen in rows.items()}
    return PositionModel(inputs, {stage: heads for stage, (heads, _) in weights.items()},
                         {stage: stops for stage, (_, stops) in weights.items()})


def race_inputs(race: pd.DataFrame, scores: np.ndarray, inputs: tuple[str, ...] = INPUTS) -> np.ndarray:
    """Inputs of the cars of one race, (N, len(inputs)): mean 0 over the cars that have them, 0 where unknown."""
    return _inputs(_columns(race), scores, inputs)


def _inputs(race: dict[str, np.ndarray], scores: np.ndarray, inputs: tuple[str, ...]) -> np.ndarray:
    """`race_inputs` of plain columns: slicing a wide frame race by race takes longer than the fit."""
    raw = np.asarray(scores, dtype="float64")
    raw = raw - raw.mean()
    start, form = _ranks(_start(race)), _ranks(race[_FORM])
    apart = _standard(start)
    known = {
        "score": raw, "score_squared": _centred(raw**2 / 5.0), "start": apart, "start_squared": _centred(apart**2),
        "start_log": _centred(-np.log(start)), "form_log": _centred(-np.log(form)),
    }
    return np.stack([np.nan_to_num(known[name], nan=0.0) for name in inputs], axis=1)


def _fit(rows: pd.DataFrame, scores: np.ndarray, inputs: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Weights of most likelihood: of the heads, (inputs, heads), and of stopping, (2,)."""
    columns, order = _columns(rows), rows["official_order"].to_numpy("float64")
    starters = rows.groupby("weekend").indices.values()
    races = [_inputs({name: values[at] for name, values in columns.items()}, scores[at], inputs)[order[at].argsort()]
             for at in starters]
    went_on = rows["classified"].to_numpy(bool)
    classified = [int(went_on[at].sum()) for at in starters]
    return fit_heads(races, classified, PRIOR), fit_stops(races, classified, PRIOR)


def _columns(rows: pd.DataFrame) -> dict[str, np.ndarray]:
    return {name: rows[name].to_numpy("float64", na_value=np.nan) for name in (*_STARTS, _FORM) if name in rows.columns}


def _start(race: dict[str, np.ndarray]) -> np.ndarray:
    """What is known of the starting order, lowest first; all missing before any session."""
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
    """Mean 0, spread 1, at most `OUTLIER`; 0 where all are alike."""
    apart = _centred(values)
    known = apart[~np.isnan(apart)]
    spread = float(np.sqrt((known**2).sum() / max(len(known) - 1, 1)))
    return np.clip(apart / spread, -OUTLIER, OUTLIER) if spread > 0 else apart
