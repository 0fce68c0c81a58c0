"""How close scores come to an official order, one race at a time.

Tied scores are worth what breaking the tie at random would earn on average, so that rows which happen to lie in the
order of the result can't help (a constant score once scored 1.000 that way). A field of one car has no order: NaN.

The values are the same for every order of the rows and on every processor: sums are of whole or half numbers, or
exactly rounded (`math.fsum`). BLAS adds up in an order of its own on each kind of processor; the ratio of two of its
sums once gave a perfect NDCG of 1.0000000000000002.
"""
from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata

from f1_pipelines.tables.bounds import clip_rounding

# Points of the first ten: what a place is worth in NDCG.
GAINS = np.array([25.0, 18.0, 15.0, 12.0, 10.0, 8.0, 6.0, 4.0, 2.0, 1.0])
NDCG_PLACES = len(GAINS)
DISCOUNTS = np.array([1 / math.log2(place + 1) for place in range(1, NDCG_PLACES + 1)])
PODIUM_PLACES = 3

Array = NDArray[np.float64]


def spearman(scores: ArrayLike, order: ArrayLike) -> float:
    """Rank correlation with mean ranks for ties, 1 = the official order; 0 where all scores tie.

    Args:
        scores: One per car, higher = further ahead.
        order: Official order of the same cars, 1 = first; any ascending numbers will do.
    """
    return rank_correlation(*_ranks(scores, order))


def rank_correlation(first: Array, second: Array) -> float:
    """Pearson correlation of two rankings of the same cars; 0 where one of them ties all, NaN for a single car.

    Ranks are whole or half numbers: every sum is exact, whatever adds it up.

    Args:
        first: Ranks as `scipy.stats.rankdata` gives them, mean ranks for ties.
        second: Ranks of the other order.
    """
    if len(first) < 2:
        return float("nan")
    first, second = first - first.mean(), second - second.mean()
    spread = np.sqrt((first @ first) * (second @ second))
    return clip_rounding(float(first @ second / spread), -1.0, 1.0) if spread else 0.0


def kendall(scores: ArrayLike, order: ArrayLike) -> float:
    """Kendall's tau-b, 1 = the official order; 0 where all scores tie. Arguments as for `spearman`.

    Counted pair by pair: whole numbers, so that a perfect order is exactly 1 (scipy gives 0.9999999999999998).
    """
    predicted, actual = _ranks(scores, order)
    if len(actual) < 2:
        return float("nan")
    ahead = [np.sign(ranks[:, None] - ranks[None, :]) for ranks in (predicted, actual)]  # (N, N), each pair twice
    untied = [int(np.count_nonzero(sign)) for sign in ahead]
    return float((ahead[0] * ahead[1]).sum()) / math.sqrt(untied[0] * untied[1]) if all(untied) else 0.0


def ndcg10(scores: ArrayLike, order: ArrayLike) -> float:
    """Expected DCG of the first ten places over the best one; gains are the points 25-18-15-12-10-8-6-4-2-1."""
    odds = _place_odds(scores, order)
    if len(odds) < 2:
        return float("nan")
    counted = min(NDCG_PLACES, len(odds))
    worth = GAINS[:counted, None] * DISCOUNTS[:counted]  # (cars, places)
    earned = math.fsum((odds[:counted, :counted] * worth).ravel())
    return clip_rounding(earned / math.fsum(worth.diagonal()), 0.0, 1.0)


def top1(scores: ArrayLike, order: ArrayLike) -> float:
    """Chance that the winner is ranked first: 1 or 0, a share where the lead is tied."""
    odds = _place_odds(scores, order)
    return float(odds[0, 0]) if len(odds) > 1 else float("nan")


def podium_overlap(scores: ArrayLike, order: ArrayLike) -> float:
    """Share of the podium that is predicted on it, whatever the step."""
    odds = _place_odds(scores, order)
    if len(odds) < 2:
        return float("nan")
    steps = min(PODIUM_PLACES, len(odds))
    return clip_rounding(math.fsum(odds[:steps, :steps].ravel()) / steps, 0.0, 1.0)


def mae_positions(scores: ArrayLike, order: ArrayLike) -> float:
    """Mean distance of a car from its official place [places]."""
    odds = _place_odds(scores, order)
    if len(odds) < 2:
        return float("nan")
    place = np.arange(len(odds))
    return math.fsum((odds * np.abs(place[None, :] - place[:, None])).ravel()) / len(odds)


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


def _place_odds(scores: ArrayLike, order: ArrayLike) -> Array:
    """Odds of each car for each place (columns, N) with ties broken at random; cars in their official order (rows, N).
    """
    ranks, actual = _ranks(scores, order)
    if len(np.unique(actual)) < len(actual):
        raise ValueError("two cars share a place: an official order has none")
    ranks = ranks[actual.argsort()]
    first = (ranks[:, None] > ranks).sum(axis=1)[:, None]  # places from 0 that a car shares with those it ties with
    last = (ranks[:, None] >= ranks).sum(axis=1)[:, None] - 1
    place = np.arange(len(ranks))[None, :]
    return ((place >= first) & (place <= last)) / (last - first + 1)
