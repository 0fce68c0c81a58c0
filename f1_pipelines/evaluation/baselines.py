"""Baseline predictors without training, for comparison with every result."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class Baseline:
    """Rank a field by one rule. `places` returns the lowest value for the car expected first; missing = unknown."""

    name: str
    places: Callable[[pd.DataFrame], pd.Series]

    def fit(self, train: pd.DataFrame) -> None:
        """Nothing to learn."""

    def scores(self, race: pd.DataFrame) -> np.ndarray:
        """Return the negative places; cars without one share the last rank."""
        places = self.places(race).astype("float64")
        return -places.fillna(places.max() + 1 if places.notna().any() else 0.0).to_numpy()


def by_grid(race: pd.DataFrame) -> pd.Series:
    """Grid positions; pit-lane starters are last, as stored."""
    return race["grid_position"]


def by_qualifying(race: pd.DataFrame) -> pd.Series:
    """Qualifying positions; cars without one follow in grid order."""
    return race["qualifying_position"].fillna(len(race) + race["grid_position"].rank())


def by_last3(race: pd.DataFrame) -> pd.Series:
    """Mean finish of the last three starts; a driver without a start is expected last."""
    return race["mean_last3_finish"]


def by_season_mean(race: pd.DataFrame) -> pd.Series:
    """Mean finish of the season so far; before its first start, the form from earlier seasons."""
    form = race["driver_finish_form"] * (len(race) - 1) + 1
    return race["season_mean_finish"].fillna(form)


def by_rank_sum(race: pd.DataFrame) -> pd.Series:
    """Sum of the ranks by grid, qualifying and season mean: the strongest known rule without training.

    Drivers without a start this season count as midfield, so grid and qualifying decide the first race.
    """
    season = race["season_mean_finish"].fillna((len(race) + 1) / 2)
    return by_grid(race).rank() + by_qualifying(race).rank() + season.rank()


BASELINES = (Baseline("grid", by_grid), Baseline("qualifying", by_qualifying), Baseline("last3", by_last3),
             Baseline("season_mean", by_season_mean), Baseline("rank_sum", by_rank_sum))
