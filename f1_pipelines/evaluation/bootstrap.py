"""Confidence intervals of means over races. Whole races are resampled, because cars of one race are not independent."""
from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

DRAWS = 10_000


def mean_interval(per_race: ArrayLike, draws: int = DRAWS, seed: int = 0, level: float = 0.95) -> tuple[float, float]:
    """Percentile bootstrap interval of the mean over races.

    Args:
        per_race: One value per race; for a paired comparison the difference of two predictors in each race.
            NaN values are ignored.
        draws: Number of resamples.
        seed: The same seed and values give the same interval.
        level: Share of the resampled means inside the interval.

    Returns:
        Lower and upper bound; NaN without any values.
    """
    values = np.asarray(per_race, dtype="float64")
    values = values[~np.isnan(values)]
    if not len(values):
        return float("nan"), float("nan")
    rng = np.random.default_rng(seed)
    means = values[rng.integers(len(values), size=(draws, len(values)))].mean(axis=1)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
