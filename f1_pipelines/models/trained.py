"""A trained ranker: the weights and everything else needed to score a race."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from torch import nn

from f1_pipelines.models.batch import RaceBatch, to_batch
from f1_pipelines.models.config import TrainConfig
from f1_pipelines.models.f1net import F1Net, F1NetConfig
from f1_pipelines.models.position_model import PositionModel
from f1_pipelines.models.ranker import Ranker, RankerConfig
from f1_pipelines.models.vocabulary import Vocabulary

# Best laps of practice have long tails (rain, no clear lap), so their rank is used instead of the gap.
AS_PLACES = ("practice_1_gap_pct", "practice_2_gap_pct", "practice_3_gap_pct")
# Replacements for inputs that no car in a race has yet: qualifying order for the grid, and each driver's usual gap to
# pole for the qualifying gap. Without them Spearman is .008 and .003 to .007 lower (docs/lab-notes/probabilities.md).
FALLBACK_INPUTS = {"grid_place": "qualifying_place", "qualifying_gap_pct": "driver_qualifying_gap_form_pct"}


@dataclass(frozen=True)
class TrainedRanker:
    """A model, its vocabularies and its training races: `n_races` from `trained_from` to `trained_through`.

    `places` turns scores into probabilities; updates keep the position model of the pretrained ranker.
    """

    model: nn.Module
    config: TrainConfig
    drivers: Vocabulary
    constructors: Vocabulary
    seasons: tuple[int, ...]
    trained_from: str
    trained_through: str
    n_races: int
    places: PositionModel | None = None

    def position_model(self) -> PositionModel:
        """The position model, which turns scores into probabilities.

        Raises:
            ValueError: The ranker was stored without one.
        """
        if self.places is None:
            raise ValueError("this ranker was stored without probabilities; train it again")
        return self.places

    def batch(self, frame: pd.DataFrame) -> RaceBatch:
        """Convert a frame to the inputs of this model."""
        if self.config.model == "champion":
            frame = with_fallback_inputs(frame)
        return to_batch(frame, self.config.features, self.drivers, self.constructors)

    def scores(self, frame: pd.DataFrame) -> np.ndarray:
        """Score each row, higher = further ahead; comparable within a race only.

        Args:
            frame: Feature rows of one race or many, every row an entered car; missing = unknown.
        """
        batch = self.batch(frame)
        self.model.eval()
        with torch.inference_mode():
            return batch.rows(self.model(*batch.inputs()))


def with_fallback_inputs(frame: pd.DataFrame) -> pd.DataFrame:
    """Fill inputs with their `FALLBACK_INPUTS` in races where no car has them."""
    filled = {}
    for name, fallback in FALLBACK_INPUTS.items():
        if name in frame.columns and fallback in frame.columns:
            all_missing = frame[name].isna().groupby(frame["weekend"]).transform("all")
            filled[name] = frame[name].mask(all_missing, frame[fallback])
    return frame.assign(**filled)


def fresh_model(config: TrainConfig, drivers: Vocabulary, constructors: Vocabulary) -> nn.Module:
    """Create a model with random weights from torch's random state."""
    if config.model == "f1net_reference":
        return F1Net(F1NetConfig(len(config.features), len(drivers), len(constructors)))
    if config.model == "champion":
        places = tuple(config.features.index(name) for name in AS_PLACES if name in config.features)
        return Ranker(RankerConfig(len(config.features), as_places=places))
    raise ValueError(f'"{config.model}" is no model; wanted champion or f1net_reference')
