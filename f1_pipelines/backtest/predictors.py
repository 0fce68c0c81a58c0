"""The models as predictors of the evaluation protocols: fit on past races, score one race, sample its places."""
from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from f1_pipelines.evaluation.baselines import by_grid
from f1_pipelines.evaluation.probabilities import rng_for
from f1_pipelines.models.config import F1NET, RANKER, TrainConfig
from f1_pipelines.models.position_model import GRID_INPUTS, PositionModel, fit_position_model, with_position_model
from f1_pipelines.models.trained import TrainedRanker
from f1_pipelines.models.training import train


@dataclass
class TrainedPredictor:
    """Trains a new ranker on each fold; has the name of its model.

    Attributes:
        config: Hyperparameters; the seasons come from the rows of `fit`.
        last_seasons: Number of latest seasons to learn from, None for all.
    """

    config: TrainConfig
    last_seasons: int | None = None
    trained: TrainedRanker | None = field(default=None, repr=False)
    _rows: pd.DataFrame | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        return self.config.model

    def fit(self, train_rows: pd.DataFrame) -> None:
        """Train on the latest seasons of these races, unless these rows are the same as last time."""
        seasons = sorted(int(season) for season in train_rows["season"].unique())
        latest = seasons if self.last_seasons is None else seasons[-self.last_seasons:]
        rows = train_rows[train_rows["season"].isin(latest)]
        if self._rows is None or not rows.equals(self._rows):
            self._rows = rows
            self.trained, _ = train(rows, replace(self.config, seasons=tuple(latest)))

    def scores(self, race: pd.DataFrame) -> np.ndarray:
        """Score one race, higher = further ahead."""
        return self.ranker_for(race).scores(race)

    def drawn(self, race: pd.DataFrame) -> np.ndarray:
        """Finishing places of many races, (DRAWS, N). The position model is fitted on the `fit` rows, on first use."""
        trained, [stage] = self.ranker_for(race), race["stage"].unique()
        if trained.places is None or stage not in trained.places.weights:
            trained = self.trained = with_position_model(trained, self._rows, [stage])
        return draw(trained.position_model(), race, trained.scores(race), self.name)

    def ranker_for(self, race: pd.DataFrame) -> TrainedRanker:
        """The trained ranker, the same for every race."""
        if self.trained is None:
            raise RuntimeError(f"{self.name} is not trained yet: call fit first")
        return self.trained


@dataclass
class GridLogit:
    """Grid order, with probabilities fitted on past races: the baseline for probabilistic predictors."""

    name: str = "grid_logit"
    _position_model: PositionModel | None = field(default=None, repr=False)

    def fit(self, train_rows: pd.DataFrame) -> None:
        """Fit the probabilities of each grid position."""
        scores = {"grid": np.zeros(len(train_rows))}
        self._position_model = fit_position_model({"grid": train_rows}, scores, GRID_INPUTS)

    def scores(self, race: pd.DataFrame) -> np.ndarray:
        """Score by grid order."""
        return -by_grid(race).astype("float64").fillna(len(race) + 1.0).to_numpy()

    def drawn(self, race: pd.DataFrame) -> np.ndarray:
        """Finishing places of many races, (DRAWS, N)."""
        if self._position_model is None:
            raise RuntimeError(f"{self.name} is not trained yet: call fit first")
        return draw(self._position_model, race.assign(stage="grid"), np.zeros(len(race)), self.name)


def draw(position_model: PositionModel, race: pd.DataFrame, scores: np.ndarray, *names: str) -> np.ndarray:
    """Sample the finishing places of `DRAWS` races of this field, (DRAWS, N); race and names determine the seed."""
    return position_model.drawn(race, scores, rng_for(str(race["weekend"].iloc[0]), str(race["stage"].iloc[0]), *names))


def f1net_reference() -> TrainedPredictor:
    """F1Net as published: its own inputs, trained on the previous four seasons."""
    return TrainedPredictor(F1NET, last_seasons=4)


def champion() -> TrainedPredictor:
    """Our ranker, trained on all previous seasons."""
    return TrainedPredictor(RANKER)
