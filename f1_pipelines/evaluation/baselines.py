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
    """Mean finish of the last three starts; a first start is expected in the middle of the field."""
    return _or_midfield(race["mean_last3_finish"], race)


def by_season_mean(race: pd.DataFrame) -> pd.Series:
    """Mean finish of the season so far; the middle of the field before a first start."""
    return _or_midfield(race["season_mean_finish"], race)


def by_rank_sum(race: pd.DataFrame) -> pd.Series:
    """Ranks by grid, qualifying and season mean, added up: the strongest rule known that needs no training."""
    return sum(places(race).rank() for places in (by_grid, by_qualifying, by_season_mean))


def _or_midfield(places: pd.Series, race: pd.DataFrame) -> pd.Series:
    return places.fillna((len(race) + 1) / 2)


BASELINES = (Baseline("grid", by_grid), Baseline("qualifying", by_qualifying), Baseline("last3", by_last3),
             Baseline("season_mean", by_season_mean), Baseline("rank_sum", by_rank_sum))
