"""The models as predictors of the evaluation protocols: fit on past races, score one race."""
from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from f1_pipelines.models.config import F1NET, RANKER, TrainConfig
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

    @property
    def name(self) -> str:
        return self.config.model

    def fit(self, train_rows: pd.DataFrame) -> None:
        """Learn from the latest seasons of these races."""
        seasons = sorted(int(season) for season in train_rows["season"].unique())
        kept = seasons if self.last_seasons is None else seasons[-self.last_seasons:]
        self.trained, _ = train(train_rows, replace(self.config, seasons=tuple(kept)))

    def scores(self, race: pd.DataFrame) -> np.ndarray:
        """Score one race, higher = further ahead."""
        if self.trained is None:
            raise RuntimeError(f"{self.name} has learnt nothing yet: call fit first")
        return self.trained.scores(race)


def f1net_reference() -> TrainedPredictor:
    """F1Net as described: its own inputs, trained on the four seasons before."""
    return TrainedPredictor(F1NET, last_seasons=4)


def champion() -> TrainedPredictor:
    """Our ranker, trained on every season before."""
    return TrainedPredictor(RANKER)
