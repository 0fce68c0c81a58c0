"""Probabilities of each car from many simulated races of one field, whichever model draws them."""
from __future__ import annotations

import numpy as np
import pandas as pd

from f1_pipelines.sim.engine.hashing import stable_hash_64

DRAWS = 10_000
PODIUM, POINTS = 3, 10  # last place on the podium, last place with points
PROBABILITIES = ("p_win", "p_podium", "p_points", "expected_position", "p_beats_teammate")


def position_probabilities(places: np.ndarray, constructors: pd.Series) -> pd.DataFrame:
    """Probabilities of each car; they sum to 1 for the win, 3 for the podium, and mean places to n(n+1)/2.

    Args:
        places: (draws, N) finishing places, each row a permutation of 1..N.
        constructors: (N,) team of each car; missing = unknown.

    Returns:
        On the index of `constructors`: p_win, p_podium, p_points (first ten of a Grand Prix), expected_position and
        p_beats_teammate, the share of races in which the car is the first of its team. It sums to 1 over a team of any
        size, and is missing for a car without a teammate.
    """
    table = pd.DataFrame({
        "p_win": (places == 1).mean(axis=0), "p_podium": (places <= PODIUM).mean(axis=0),
        "p_points": (places <= POINTS).mean(axis=0), "expected_position": places.mean(axis=0),
        "p_beats_teammate": np.nan,
    }, index=constructors.index)
    teams = constructors.reset_index(drop=True).groupby(constructors.to_numpy()).indices
    for mates in teams.values():
        if len(mates) > 1:
            first = places[:, mates].argmin(axis=1)
            table.iloc[mates, table.columns.get_loc("p_beats_teammate")] = np.bincount(
                first, minlength=len(mates)) / len(places)
    return table


def rng_for(*parts: str) -> np.random.Generator:
    """Create a random generator seeded by these names, the same on every machine."""
    return np.random.default_rng(stable_hash_64(*parts))
