"""Metrics of scores against the official order of one race.

Ties score the average of breaking them at random, so rows that happen to be in the order of the result give no
advantage (a constant score once got 1.000 that way). A field of one car has no order: NaN.

The values do not depend on the order of the rows or on the processor: sums are of whole or half numbers, or exactly
rounded (`math.fsum`). BLAS sums in a different order on each processor type; the ratio of two such sums once gave a
perfect NDCG of 1.0000000000000002.
"""
from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata

from f1_pipelines.tables.bounds import clip_rounding

# NDCG gains: the points of the first ten places.
GAINS = np.array([25.0, 18.0, 15.0, 12.0, 10.0, 8.0, 6.0, 4.0, 2.0, 1.0])
NDCG_PLACES = len(GAINS)
DISCOUNTS = np.array([1 / math.log2(place + 1) for place in range(1, NDCG_PLACES + 1)])
PODIUM_PLACES = 3

Array = NDArray[np.float64]


def spearman(scores: ArrayLike, order: ArrayLike) -> float:
    """Rank correlation with mean ranks for ties: 1 = the official order, 0 = all scores tied.

    Args:
        scores: One per car, higher = further ahead.
        order: Official order of the same cars, 1 = first; may have gaps.
    """
    return rank_correlation(*_ranks(scores, order))


def rank_correlation(first: Array, second: Array) -> float:
    """Pearson correlation of two rankings of the same cars: 0 if one ties all cars, NaN for a single car.

    Ranks are whole or half numbers, so sums are exact in any order.

    Args:
        first, second: Ranks from `scipy.stats.rankdata`, with mean ranks for ties.
    """
    if len(first) < 2:
        return float("nan")
    first, second = first - first.mean(), second - second.mean()
    spread = np.sqrt((first @ first) * (second @ second))
    return clip_rounding(float(first @ second / spread), -1.0, 1.0) if spread else 0.0


def kendall(scores: ArrayLike, order: ArrayLike) -> float:
    """Kendall's tau-b: 1 = the official order, 0 = all scores tied. Arguments as for `spearman`.

    It counts pairs, so a perfect order is exactly 1 (scipy gives 0.9999999999999998).
    """
    predicted, actual = _ranks(scores, order)
    if len(actual) < 2:
        return float("nan")
    ahead = [np.sign(ranks[:, None] - ranks[None, :]) for ranks in (predicted, actual)]  # (N, N), each pair twice
    untied = [int(np.count_nonzero(sign)) for sign in ahead]
    return float((ahead[0] * ahead[1]).sum()) / math.sqrt(untied[0] * untied[1]) if all(untied) else 0.0


def ndcg10(scores: ArrayLike, order: ArrayLike) -> float:
    """Expected NDCG of the first ten places; gains are the points 25-18-15-12-10-8-6-4-2-1."""
    probability = _place_probabilities(scores, order)
    if len(probability) < 2:
        return float("nan")
    counted = min(NDCG_PLACES, len(probability))
    gains = GAINS[:counted, None] * DISCOUNTS[:counted]  # (cars, places)
    dcg = math.fsum((probability[:counted, :counted] * gains).ravel())
    return clip_rounding(dcg / math.fsum(gains.diagonal()), 0.0, 1.0)


def top1(scores: ArrayLike, order: ArrayLike) -> float:
    """Probability that the winner is ranked first: 1 or 0, between them if the lead is tied."""
    probability = _place_probabilities(scores, order)
    return float(probability[0, 0]) if len(probability) > 1 else float("nan")


def podium_overlap(scores: ArrayLike, order: ArrayLike) -> float:
    """Share of the podium finishers predicted on the podium, in any order."""
    probability = _place_probabilities(scores, order)
    if len(probability) < 2:
        return float("nan")
    places = min(PODIUM_PLACES, len(probability))
    return clip_rounding(math.fsum(probability[:places, :places].ravel()) / places, 0.0, 1.0)


def mae_positions(scores: ArrayLike, order: ArrayLike) -> float:
    """Mean absolute error of the predicted places [places]."""
    probability = _place_probabilities(scores, order)
    if len(probability) < 2:
        return float("nan")
    place = np.arange(len(probability))
    return math.fsum((probability * np.abs(place[None, :] - place[:, None])).ravel()) / len(probability)


METRICS: dict[str, Callable[[ArrayLike, ArrayLike], float]] = {
    "spearman": spearman, "kendall": kendall, "ndcg10": ndcg10, "mae_positions": mae_positions, "top1": top1,
    "podium_overlap": podium_overlap,
}


def race_metrics(scores: ArrayLike, order: ArrayLike) -> dict[str, float]:
    """All metrics of one race by name."""
    return {name: metric(scores, order) for name, metric in METRICS.items()}


def _ranks(scores: ArrayLike, order: ArrayLike) -> tuple[Array, Array]:
    """Predicted and official rank of each car, 1 = first, mean ranks for ties."""
    predicted, actual = np.asarray(scores, dtype="float64"), np.asarray(order, dtype="float64")
    if predicted.shape != actual.shape or predicted.ndim != 1:
        raise ValueError(f"scores of shape {predicted.shape}, order of shape {actual.shape}; wanted one score per car")
    if np.isnan(predicted).any() or np.isnan(actual).any():
        raise ValueError(f"{int(np.isnan(predicted).sum())} scores and {int(np.isnan(actual).sum())} places of "
                         f"{len(actual)} cars are NaN; wanted both for every car")
    return rankdata(-predicted), rankdata(actual)


def _place_probabilities(scores: ArrayLike, order: ArrayLike) -> Array:
    """Probability of each place (columns, N) for each car in official order (rows, N), ties broken at random."""
    ranks, actual = _ranks(scores, order)
    if len(np.unique(actual)) < len(actual):
        raise ValueError("two cars share a place; wanted an official order without ties")
    ranks = ranks[actual.argsort()]
    first = (ranks[:, None] > ranks).sum(axis=1)[:, None]  # first and last place from 0 of the car's tie
    last = (ranks[:, None] >= ranks).sum(axis=1)[:, None] - 1
    place = np.arange(len(ranks))[None, :]
    return ((place >= first) & (place <= last)) / (last - first + 1)
