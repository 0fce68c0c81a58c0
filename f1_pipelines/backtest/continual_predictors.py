"""The continually learning ranker as a predictor of the evaluation protocols."""
from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from f1_pipelines.backtest.predictors import draw
from f1_pipelines.backtest.pretraining_cache import PretrainingCache
from f1_pipelines.features.history import data_version
from f1_pipelines.models.config import PRETRAINING_SEASONS, RANKER, TrainConfig
from f1_pipelines.models.continual.fisher import fisher_information
from f1_pipelines.models.continual.settings import PULLED_BACK, UpdateConfig
from f1_pipelines.models.continual.update import LearntState, learn, window_of
from f1_pipelines.models.position_model import PositionModel, with_position_model
from f1_pipelines.models.trained import TrainedRanker
from f1_pipelines.models.training import train


@dataclass
class ContinualPredictor:
    """Pretrains on the seasons before a race's, then learns from that season's races one by one, as the chain does.

    Learnt states are cached: calling `fit` before each race of a season costs one update per race.

    Attributes:
        settings: Hyperparameters of the update after each race.
        config: Hyperparameters of the pretraining; its seasons come from the rows of `fit`.
        last_seasons: Number of seasons to pretrain on.
        stored: Cache to look up pretrainings in before training one.
    """

    settings: UpdateConfig
    config: TrainConfig = RANKER
    last_seasons: int = len(PRETRAINING_SEASONS)
    stored: PretrainingCache | None = None
    _rows: pd.DataFrame | None = field(default=None, repr=False)
    _digests: pd.Series | None = field(default=None, repr=False)
    _by_season: dict[int, tuple[pd.DataFrame, str, LearntState]] = field(default_factory=dict, repr=False)
    _learnt: dict[tuple[str, ...], LearntState] = field(default_factory=dict, repr=False)
    _position_models: dict[tuple[str, str], PositionModel] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        return f"{self.config.model}_{self.settings.method}"

    def fit(self, train_rows: pd.DataFrame) -> None:
        """Set the known races. Training waits for a race to score: its season tells which races are pretraining."""
        if self._rows is None or not train_rows.equals(self._rows):
            self._rows, self._by_season = train_rows, {}
            self._digests = pd.util.hash_pandas_object(train_rows, index=False)

    def scores(self, race: pd.DataFrame) -> np.ndarray:
        """Score one race, higher = further ahead."""
        return self.ranker_for(race).scores(race)

    def ranker_for(self, race: pd.DataFrame) -> TrainedRanker:
        """The ranker that scores this race."""
        return self.known_before(int(race["season"].iloc[0])).trained

    def drawn(self, race: pd.DataFrame) -> np.ndarray:
        """Finishing places of many races, (DRAWS, N). The position model is fitted on the pretraining, on first use."""
        return self.drawn_by(self.known_before(int(race["season"].iloc[0])), race, self.name)

    def drawn_by(self, known: LearntState, race: pd.DataFrame, name: str) -> np.ndarray:
        """As `drawn`, for any ranker that descends from this pretraining; `name` is part of the seed."""
        rows, version, _ = self._before(int(race["season"].iloc[0]))
        [stage] = race["stage"].unique()
        if (version, stage) not in self._position_models:
            pretrained = with_position_model(self._learnt[version,].trained, rows, [stage])
            self._position_models[version, stage] = pretrained.position_model()
        return draw(self._position_models[version, stage], race, known.trained.scores(race), name)

    def pretrained_before(self, season: int) -> LearntState:
        """The state before the first race of a season."""
        return self._learnt[self._before(season)[1],]

    def known_before(self, season: int) -> LearntState:
        """The state after the races of `fit`: pretrained on earlier seasons, updated by each race of this one."""
        return self._before(season)[2]

    def _before(self, season: int) -> tuple[pd.DataFrame, str, LearntState]:
        """Pretraining rows of a season, their version, and the state after the races of `fit`; cached per `fit`."""
        rows = self._fitted_rows()
        if season not in self._by_season:
            seasons = sorted({s for s in rows["season"] if s < season})[-self.last_seasons:]
            pretraining_rows = rows[rows["season"].isin(seasons)]
            version = self._version(pretraining_rows)
            if (version,) not in self._learnt:
                self._learnt[version,] = self._pretrained(pretraining_rows)
            self._by_season[season] = pretraining_rows, version, self._learn_since(season, pretraining_rows, version)
        return self._by_season[season]

    def _learn_since(self, season: int, pretraining_rows: pd.DataFrame, version: str) -> LearntState:
        pretrained = known = self._learnt[version,]
        if self.settings.method == "none":
            return pretrained
        steps: tuple[str, ...] = (version,)
        rows = self._fitted_rows()
        since = rows[rows["season"] == season].sort_values(["race_start", "driver"])
        for weekend in since["weekend"].drop_duplicates():
            window = window_of(since, weekend, self.settings.window_races)
            steps = (*steps, self._version(window))
            if steps not in self._learnt:
                self._learnt[steps] = learn(known, pretrained, window, self.settings, pretraining_rows).known
            known = self._learnt[steps]
        return known

    def _fitted_rows(self) -> pd.DataFrame:
        if self._rows is None:
            raise RuntimeError(f"{self.name} is not trained yet: call fit first")
        return self._rows

    def _version(self, rows: pd.DataFrame) -> str:
        """Identify a selection of our rows, like `data_version`, but hash each row only once."""
        if self._digests is None:
            raise RuntimeError(f"{self.name} is not trained yet: call fit first")
        return self._digests[rows.index].to_numpy().tobytes().hex()

    def _pretrained(self, rows: pd.DataFrame) -> LearntState:
        seasons = tuple(sorted(int(season) for season in rows["season"].unique()))
        config = replace(self.config, seasons=seasons)
        stored = self.stored.load(config, data_version(rows)) if self.stored else None
        if stored is not None:
            return stored
        trained, _ = train(rows, config)
        known = LearntState(trained, fisher_information(trained, rows) if self.settings.method in PULLED_BACK else None)
        if self.stored:
            self.stored.save(known, data_version(rows))
        return known


@dataclass
class PretrainedPredictor:
    """The pretrained ranker that a `ContinualPredictor` starts from, without any update."""

    continual: ContinualPredictor

    @property
    def name(self) -> str:
        return self.continual.config.model

    def fit(self, train_rows: pd.DataFrame) -> None:
        """Set the known races; only seasons before that of the scored race count."""
        self.continual.fit(train_rows)

    def scores(self, race: pd.DataFrame) -> np.ndarray:
        """Score one race, higher = further ahead."""
        return self.continual.pretrained_before(int(race["season"].iloc[0])).trained.scores(race)

    def drawn(self, race: pd.DataFrame) -> np.ndarray:
        """Finishing places of many races, (DRAWS, N)."""
        known = self.continual.pretrained_before(int(race["season"].iloc[0]))
        return self.continual.drawn_by(known, race, self.name)
