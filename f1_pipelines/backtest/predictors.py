"""The models as predictors of the evaluation protocols: fit on past races, score one race, draw its places."""
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
    """Trains afresh on what each fold gives it; named as the model is.

    Attributes:
        config: Dial settings; the seasons are taken from what `fit` is given.
        last_seasons: How many of the latest seasons to learn from, None for all.
    """

    config: TrainConfig
    last_seasons: int | None = None
    trained: TrainedRanker | None = field(default=None, repr=False)
    _rows: pd.DataFrame | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        return self.config.model

    def fit(self, train_rows: pd.DataFrame) -> None:
        """Learn from the latest seasons of these races, unless that was done."""
        seasons = sorted(int(season) for season in train_rows["season"].unique())
        used = seasons if self.last_seasons is None else seasons[-self.last_seasons:]
        rows = train_rows[train_rows["season"].isin(used)]
        if self._rows is None or not rows.equals(self._rows):
            self._rows = rows
            self.trained, _ = train(rows, replace(self.config, seasons=tuple(used)))

    def scores(self, race: pd.DataFrame) -> np.ndarray:
        """Score one race, higher = further ahead."""
        return self.ranker_for(race).scores(race)

    def drawn(self, race: pd.DataFrame) -> np.ndarray:
        """Places of many races, (DRAWS, N). What turns scores into them is fitted on the races of `fit`, when asked."""
        trained, [stage] = self.ranker_for(race), race["stage"].unique()
        if trained.places is None or stage not in trained.places.weights:
            trained = self.trained = with_position_model(trained, self._rows, [stage])
        return draw(trained.position_model(), race, trained.scores(race), self.name)

    def ranker_for(self, race: pd.DataFrame) -> TrainedRanker:
        """What scores this race."""
        if self.trained is None:
            raise RuntimeError(f"{self.name} has learnt nothing yet: call fit first")
        return self.trained


@dataclass
class GridLogit:
    """The grid and nothing else, with probabilities learnt from past races: what a model of chances has to beat."""

    name: str = "grid_logit"
    _places: PositionModel | None = field(default=None, repr=False)

    def fit(self, train_rows: pd.DataFrame) -> None:
        """Learn how much a place on the grid is worth."""
        self._places = fit_position_model({"grid": train_rows}, {"grid": np.zeros(len(train_rows))}, GRID_INPUTS)

    def scores(self, race: pd.DataFrame) -> np.ndarray:
        """The order of the grid."""
        return -by_grid(race).astype("float64").fillna(len(race) + 1.0).to_numpy()

    def drawn(self, race: pd.DataFrame) -> np.ndarray:
        """Places of many races, (DRAWS, N)."""
        if self._places is None:
            raise RuntimeError(f"{self.name} has learnt nothing yet: call fit first")
        return draw(self._places, race.assign(stage="grid"), np.zeros(len(race)), self.name)


def draw(places: PositionModel, race: pd.DataFrame, scores: np.ndarray, *names: str) -> np.ndarray:
    """Places of `DRAWS` races of this field, (DRAWS, N): always the same for the same race and names."""
    return places.drawn(race, scores, rng_for(str(race["weekend"].iloc[0]), str(race["stage"].iloc[0]), *names))


def f1net_reference() -> TrainedPredictor:
    """F1Net as described: its own inputs, trained on the four seasons before."""
    return TrainedPredictor(F1NET, last_seasons=4)


def champion() -> TrainedPredictor:
    """Our ranker, trained on every season before."""
    return TrainedPredictor(RANKER)
