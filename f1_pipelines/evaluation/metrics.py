"""How close scores come to an official order, one race at a time.

Tied scores are worth what breaking the tie at random would earn on average, so that rows which happen to lie in the
order of the result can't help (a constant score once scored 1.000 that way). A field of one car has no order: NaN.
"""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import kendalltau, rankdata

# Points of the first ten: what a place is worth in NDCG.
GAINS = np.array([25.0, 18.0, 15.0, 12.0, 10.0, 8.0, 6.0, 4.0, 2.0, 1.0])
NDCG_PLACES = len(GAINS)
PODIUM_PLACES = 3

Array = NDArray[np.float64]


def spearman(scores: ArrayLike, order: ArrayLike) -> float:
    """Rank correlation with mean ranks for ties, 1 = the official order; 0 where all scores tie.

    Args:
        scores: One per car, higher = further ahead.
        order: Official order of the same cars, 1 = first; any ascending numbers will do.
    """
    predicted, actual = _ranks(scores, order)
    if len(actual) < 2:
        return float("nan")
    predicted, actual = predicted - predicted.mean(), actual - actual.mean()
    spread = np.sqrt((predicted @ predicted) * (actual @ actual))
    return float(predicted @ actual / spread) if spread else 0.0


def kendall(scores: ArrayLike, order: ArrayLike) -> float:
    """Kendall's tau-b, 1 = the official order; 0 where all scores tie. Arguments as for `spearman`."""
    predicted, actual = _ranks(scores, order)
    if len(actual) < 2:
        return float("nan")
    if np.ptp(predicted) == 0 or np.ptp(actual) == 0:
        return 0.0
    return float(kendalltau(predicted, actual).statistic)


def ndcg10(scores: ArrayLike, order: ArrayLike) -> float:
    """Expected DCG of the first ten places over the best one; gains are the points 25-18-15-12-10-8-6-4-2-1."""
    places, actual = _place_odds(scores, order)
    if len(actual) < 2:
        return float("nan")
    gain = np.zeros(len(actual))
    counted = min(NDCG_PLACES, len(actual))
    gain[:counted] = GAINS[:counted]
    discount = 1 / np.log2(np.arange(counted) + 2)
    earned = places[:, :counted] @ discount @ gain[actual.astype(int) - 1]
    return float(earned / (gain[:counted] @ discount))


def top1(scores: ArrayLike, order: ArrayLike) -> float:
    """Chance that the winner is ranked first: 1 or 0, a share where the lead is tied."""
    places, actual = _place_odds(scores, order)
    return float(places[actual == 1, 0].sum()) if len(actual) > 1 else float("nan")


def podium_overlap(scores: ArrayLike, order: ArrayLike) -> float:
    """Share of the podium that is predicted on it, whatever the step."""
    places, actual = _place_odds(scores, order)
    if len(actual) < 2:
        return float("nan")
    steps = min(PODIUM_PLACES, len(actual))
    return float(places[actual <= steps, :steps].sum() / steps)


def mae_positions(scores: ArrayLike, order: ArrayLike) -> float:
    """Mean distance of a car from its official place [places]."""
    places, actual = _place_odds(scores, order)
    if len(actual) < 2:
        return float("nan")
    distance = np.abs(np.arange(1, len(actual) + 1)[None, :] - actual[:, None])
    return float((places * distance).sum() / len(actual))


METRICS: dict[str, Callable[[ArrayLike, ArrayLike], float]] = {
    "spearman": spearman, "kendall": kendall, "ndcg10": ndcg10, "mae_positions": mae_positions, "top1": top1,
    "podium_overlap": podium_overlap,
}


def race_metrics(scores: ArrayLike, order: ArrayLike) -> dict[str, float]:
    """Every metric of one race, by name."""
    return {name: metric(scores, order) for name, metric in METRICS.items()}


def _ranks(scores: ArrayLike, order: ArrayLike) -> tuple[Array, Array]:
    """Predicted and actual place of each car, 1 = first, mean places for ties."""
    predicted, actual = np.asarray(scores, dtype="float64"), np.asarray(order, dtype="float64")
    if predicted.shape != actual.shape or predicted.ndim != 1:
        raise ValueError(f"scores of shape {predicted.shape} for an order of shape {actual.shape}: one score per car")
    if np.isnan(predicted).any() or np.isnan(actual).any():
        raise ValueError(f"{int(np.isnan(predicted).sum())} scores and {int(np.isnan(actual).sum())} places of "
                         f"{len(actual)} cars are NaN: every car needs both")
    return rankdata(-predicted), rankdata(actual)


def _place_odds(scores: ArrayLike, order: ArrayLike) -> tuple[Array, Array]:
    """Odds of each car (rows, n) for each place (columns, n) with ties broken at random, and its actual place 1..n."""
    ranks, actual = _ranks(scores, order)
    if len(np.unique(actual)) < len(actual):
        raise ValueError("two cars share a place: an official order has none")
    first = rankdata(ranks, method="min")[:, None]
    last = rankdata(ranks, method="max")[:, None]
    place = np.arange(1, len(actual) + 1)[None, :]
    return ((place >= first) & (place <= last)) / (last - first + 1), actual
