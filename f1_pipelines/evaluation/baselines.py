"""Predictors that learn nothing. Every result is printed beside them."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class Baseline:
    """Ranks a field by one rule. `places` gives what is lowest for the car expected first; missing = unknown."""

    name: str
    places: Callable[[pd.DataFrame], pd.Series]

    def fit(self, train: pd.DataFrame) -> None:
        """Nothing to learn."""

    def scores(self, race: pd.DataFrame) -> np.ndarray:
        """Minus the places; cars without one share the last rank."""
        places = self.places(race).astype("float64")
        return -places.fillna(places.max() + 1 if places.notna().any() else 0.0).to_numpy()


def by_grid(race: pd.DataFrame) -> pd.Series:
    """Places on the grid, pit-lane starters last as they are stored."""
    return race["grid_position"]


def by_qualifying(race: pd.DataFrame) -> pd.Series:
    """Places in qualifying; cars that were not placed come behind it, in grid order."""
    position, behind = race["qualifying_position"], race["grid_position"].rank()
    return position.fillna(len(race) + behind)


def by_last3(race: pd.DataFrame) -> pd.Series:
    """Mean finish of the last three starts; a first start is expected behind everybody."""
    return race["mean_last3_finish"]


def by_season_mean(race: pd.DataFrame) -> pd.Series:
    """Mean finish of the season so far; before the first start of a season the form of earlier ones."""
    form = race["driver_finish_form"] * (len(race) - 1) + 1
    return race["season_mean_finish"].fillna(form)


def by_rank_sum(race: pd.DataFrame) -> pd.Series:
    """Ranks by grid, qualifying and season mean, added up: the strongest rule known that needs no training.

    A driver without a start this season counts as midfield, so that the first race goes by grid and qualifying.
    """
    season = race["season_mean_finish"].fillna((len(race) + 1) / 2)
    return by_grid(race).rank() + by_qualifying(race).rank() + season.rank()


BASELINES = (Baseline("grid", by_grid), Baseline("qualifying", by_qualifying), Baseline("last3", by_last3),
             Baseline("season_mean", by_season_mean), Baseline("rank_sum", by_rank_sum))
