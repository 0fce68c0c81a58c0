"""Rows of `ranking.simulated_predictions`, and simulated races as a predictor of the evaluation protocols."""
from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pandas as pd

from f1_pipelines.evaluation.probabilities import position_probabilities
from f1_pipelines.forecast.monte_carlo import FieldPace, RaceField, circuit_for, learn_pace, pace_s, simulate
from f1_pipelines.forecast.predictions import knows_outcome
from f1_pipelines.identity.weekends import weekend as known_weekend
from f1_pipelines.settings import settings
from f1_pipelines.sim import CircuitParameters
from f1_pipelines.tables.ranking import SIMULATED_PREDICTIONS

if TYPE_CHECKING:
    from f1_pipelines.models.trained import TrainedRanker

EVALUATED_RACES = 500  # simulated races per test race of a protocol, at most: 0.2 s per test race


def simulated_rows(features: pd.DataFrame, trained: TrainedRanker, checkpoint: str, pace: FieldPace,
                   circuits: dict[str, CircuitParameters], races: int, made_at: datetime) -> pd.DataFrame:
    """Rows of `ranking.simulated_predictions`. Takes 0.5 s per weekend and 1,000 races.

    Args:
        features: Rows of `features.ranking`, one stage per weekend; cars that are not entered are left out.
        trained: Ranker whose scores give the pace.
        checkpoint: Id of the ranker.
        pace: Pace per unit of score (`monte_carlo.learn_pace`).
        circuits: Fitted circuits by id; the others use their prior.
        races: Number of simulated races.
        made_at: Time of the prediction, timezone-aware.
    """
    rows = []
    for key, race in features[features["entered"]].groupby("weekend"):
        weekend, stage = known_weekend(str(key), settings().calendar_path), race["stage"].iloc[0]
        circuit, fitted = circuit_for(weekend, circuits), circuits.get(weekend.circuit)
        inputs = {"pct_per_score": pace.pct_per_score, "circuit": asdict(fitted) if fitted else None}
        cars = field_of(race, trained.scores(race), f"{key}/{stage}/{checkpoint}")
        probabilities = position_probabilities(simulate(cars, weekend, circuit, pace, races), race["constructor"])
        probabilities = probabilities.assign(pace_s=pace_s(cars, pace, circuit),
                                             circuit_provenance=circuit.provenance,
                                             inputs=json.dumps(inputs))
        probabilities["predicted_position"] = probabilities["expected_position"].rank(method="first").astype(int)
        rows.append(race[["weekend", "driver", "stage", "constructor"]].join(probabilities))
    frame = pd.concat(rows).assign(checkpoint=checkpoint, races=races, made_at=made_at)
    frame["in_sample"] = knows_outcome(trained, features.loc[frame.index])
    return SIMULATED_PREDICTIONS.conform(frame[SIMULATED_PREDICTIONS.column_names])


def simulated_again(features: pd.DataFrame, trained: TrainedRanker, stored: pd.DataFrame) -> pd.DataFrame:
    """Recompute the `stored` rows of one simulated prediction from its feature rows and ranker."""
    first = stored.iloc[0]
    inputs = json.loads(first["inputs"])
    fields: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value
                              for name, value in (inputs["circuit"] or {}).items()}
    circuit = CircuitParameters(**fields) if fields else None
    return simulated_rows(features, trained, first["checkpoint"], FieldPace(inputs["pct_per_score"]),
                          {circuit.circuit: circuit} if circuit else {}, int(first["races"]), first["made_at"])


def field_of(race: pd.DataFrame, scores: np.ndarray, name: str) -> RaceField:
    """The cars of one race for the simulator. They start in grid order, or in qualifying order if no grid is known."""
    start = race["grid_position"].to_numpy("float64", na_value=np.nan)
    if np.isnan(start).all():
        start = race["qualifying_position"].to_numpy("float64", na_value=np.nan)
    return RaceField(name, np.asarray(scores, dtype="float64"), start, tuple(race["constructor"].fillna("?")),
                     tuple(race["driver"]))


def evaluated_races() -> int:
    """Number of simulated races per test race of an evaluation."""
    return min(EVALUATED_RACES, settings().f1_simulated_races)


class HasRanker(Protocol):
    """A predictor with a trained ranker behind it."""

    @property
    def name(self) -> str:
        """Its name in `ranking.evaluation.predictor`."""
        ...

    def fit(self, train_rows: pd.DataFrame) -> None:
        """Train on races."""
        ...

    def ranker_for(self, race: pd.DataFrame) -> TrainedRanker:
        """The ranker that scores this race."""
        ...


@dataclass
class SimulatedRaces:
    """Predictor that simulates races with the scores of another predictor as pace.

    Attributes:
        of: The other predictor; `fit` also fits it.
        results: Rows of `race.results`, whose gaps at the flag give the pace per unit of score.
        races: Simulated races per real race.
    """

    of: HasRanker
    results: pd.DataFrame
    races: int = field(default_factory=evaluated_races)
    _rows: pd.DataFrame | None = field(default=None, repr=False)
    _pace: tuple[object, FieldPace] | None = field(default=None, repr=False)
    _drawn: dict[str, np.ndarray] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        return f"{self.of.name}_simulated"

    def fit(self, train_rows: pd.DataFrame) -> None:
        """Train on races; of the results, only those of these races are used."""
        self.of.fit(train_rows)
        self._rows, self._pace, self._drawn = train_rows, None, {}

    def scores(self, race: pd.DataFrame) -> np.ndarray:
        """Minus the mean finishing place."""
        return -self.drawn(race).mean(axis=0)

    def drawn(self, race: pd.DataFrame) -> np.ndarray:
        """Finishing places of simulated races, (races, N)."""
        key = str(race["weekend"].iloc[0])
        if key not in self._drawn:
            trained = self.of.ranker_for(race)
            pace = self._pace_of(trained)
            weekend = known_weekend(key, settings().calendar_path)
            self._drawn[key] = simulate(field_of(race, trained.scores(race), f"{key}/{self.name}"), weekend,
                                        circuit_for(weekend, {}), pace, self.races)
        return self._drawn[key]

    def _pace_of(self, trained: TrainedRanker) -> FieldPace:
        """Pace per unit of this ranker's score, cached until the ranker changes."""
        if self._pace is None or self._pace[0] is not trained.model:
            if self._rows is None:
                raise RuntimeError(f"{self.name} is not trained yet: call fit first")
            rows = self._rows[self._rows["season"].isin(trained.seasons)]
            self._pace = trained.model, learn_pace(rows, trained.scores(rows), self.results)
        return self._pace[1]
