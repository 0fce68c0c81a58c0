"""Plackett-Luce with a head for each part of the field, and cars that stop.

The winner is drawn by softmax from all cars. Of the others some stop, each with a chance of its own. The next places
are filled from the front by softmax among the cars that are left and go on; behind them come those that stopped, in any
order.

Notable choices:
- The win, the podium, the points and the rest have strengths of their own. One temperature for all of them gives no win
  probability (log loss 1.9 on 2019-2025, worse than the grid): the back of the field, where the retired cars are, would
  set it.
- Who stops is drawn before the places are: without it a quick car that missed the podium was all but sure of a place
  among the first ten, as if it had only been slow (.93 said, .89 seen).
- The fit is Newton's method on a concave likelihood: one maximum, found to the last digit in ten steps.
- Winners are drawn evenly spread over their exact probabilities, the places behind them by exponential clocks.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

HEADS = (1, 3, 10)  # last place of each head; one more fills the places behind, as far as cars were classified
_HOPELESS = 80.0  # log odds against the strongest, within float32: further behind is no further behind
_STOPPED = np.float32(1e37)  # on the clock of a car that stopped: later than any that goes on
_STEPS = 50  # of Newton's method, which needs ten

Posterior = Callable[[np.ndarray], tuple[float, np.ndarray, np.ndarray]]


def fit_heads(races: Sequence[np.ndarray], classified: Sequence[int], prior: float) -> np.ndarray:
    """Weights of most likelihood under a prior that pulls the heads together.

    Args:
        races: Inputs of each race's cars in their official order, winner first, (N, F); any number of cars.
        classified: How many of them were classified, race by race; the others count for the win alone.
        prior: Strength of the prior [races]: its square is that of a mean of all heads and of each one's own part.

    Returns:
        (F, len(HEADS) + 1) weights; a strength is inputs @ weights.
    """
    inputs = races[0].shape[1]
    cars = np.array([len(race) for race in races])
    x = np.zeros((len(races), cars.max(), inputs))
    for number, race in enumerate(races):
        x[number, :len(race)] = race
    seat = np.arange(x.shape[1])
    there, going = seat < cars[:, None], seat < np.asarray(classified)[:, None]
    # Own part and mean, each with the same prior, add up to this covariance of the heads.
    heads = len(HEADS) + 1
    precision = 2.0 * prior * np.linalg.inv(np.eye(heads) + np.ones((heads, heads)))
    return _highest(lambda weights: _posterior(x, there, going, weights, precision), np.zeros((heads, inputs))).T


def fit_stops(races: Sequence[np.ndarray], classified: Sequence[int], prior: float) -> np.ndarray:
    """How often a car that does not win stops, by a logit in its first input, which says who is ahead.

    Args:
        races: As for `fit_heads`.
        classified: How many of them were classified, race by race.
        prior: Strength of the prior on the slope [races]. The level has one car more of each kind, so that a season
            without retirements does not end in certainty.

    Returns:
        (2,): log odds of a car in the middle of the field, and what a unit of the input adds to them.
    """
    outcomes = np.concatenate([race[1:, 0] for race in races] + [np.zeros(2)])
    stopped = np.concatenate([np.arange(1, len(race)) >= n for race, n in zip(races, classified, strict=True)]
                             + [np.array([True, False])])
    x, precision = np.stack([np.ones_like(outcomes), outcomes], axis=1), np.diag([0.0, 2.0 * prior])

    def posterior(weights: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        odds = x @ weights
        chance = 1.0 / (1.0 + np.exp(-odds))
        value = odds[stopped].sum() - np.logaddexp(0.0, odds).sum() - 0.5 * weights @ precision @ weights
        return value, x.T @ (stopped - chance) - precision @ weights, (x.T * chance * (1 - chance)) @ x + precision

    return _highest(posterior, np.zeros(2))


def _highest(posterior: Posterior, weights: np.ndarray) -> np.ndarray:
    """Weights at the top of a concave function of them, by Newton's method.

    Args:
        posterior: Value, gradient and minus the Hessian, (weights.size, weights.size).
        weights: Where to start.
    """
    value, slope, curve = posterior(weights)
    for _ in range(_STEPS):
        step = np.linalg.solve(curve, slope.ravel()).reshape(weights.shape)
        size = 1.0
        while True:  # a full step may overshoot far from the top
            tried = weights + size * step
            values = posterior(tried)
            if values[0] >= value or size < 1e-6:
                break
            size /= 2.0
        gained, weights = values[0] - value, tried
        value, slope, curve = values
        if gained < 1e-9:
            break
    return weights


def _posterior(x: np.ndarray, there: np.ndarray, going: np.ndarray, weights: np.ndarray,
               precision: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Log posterior, its gradient (heads, F), and minus its Hessian (heads F, heads F)."""
    heads, inputs = weights.shape
    curve = np.kron(precision, np.eye(inputs))
    slope = -precision @ weights
    value = 0.5 * float((slope * weights).sum())
    for head, (start, end) in enumerate(_ranges(x.shape[1])):
        if start >= end:
            continue
        among = there if start == 0 else going
        strength = np.where(among, x @ weights[head], -np.inf)
        behind = np.arange(x.shape[1])[None, :] >= np.arange(start, end)[:, None]  # (places, N) not placed yet
        open_ = among[:, start:end]  # (B, places) somebody takes that place
        left = np.where(behind, strength[:, None, :], -np.inf)  # (B, places, N)
        most = np.where(open_, left.max(axis=2), 0.0)[:, :, None]
        odds = np.exp(left - most) * open_[:, :, None]
        total = np.where(open_, odds.sum(axis=2), 1.0)
        odds /= total[:, :, None]
        mean = np.einsum("bpn,bnf->bpf", odds, x)
        taken = np.where(open_, strength[:, start:end], 0.0)
        value += float((taken - np.where(open_, most[:, :, 0] + np.log(total), 0.0)).sum())
        slope[head] += ((x[:, start:end] - mean) * open_[:, :, None]).sum(axis=(0, 1))
        spread = np.einsum("bn,bnf,bng->fg", odds.sum(axis=1), x, x) - np.einsum("bpf,bpg->fg", mean, mean)
        block = slice(head * inputs, (head + 1) * inputs)
        curve[block, block] += spread
    return value, slope, curve


def sample_places(strengths: np.ndarray, stops: np.ndarray, draws: int, rng: np.random.Generator) -> np.ndarray:
    """Finishing places of one race.

    Args:
        strengths: (N, len(HEADS) + 1) of its cars.
        stops: (N,) chance of each that it stops, if it does not win.
        draws: Races to draw.
        rng: Where chance comes from; the same state gives the same places.

    Returns:
        (draws, N) int, each row a permutation of 1..N.
    """
    cars, row = len(strengths), np.arange(draws)
    place, left = np.zeros((draws, cars), dtype=np.int64), np.ones((draws, cars), dtype=bool)
    chance = np.exp(strengths[:, 0] - strengths[:, 0].max()).cumsum()
    won = np.searchsorted(chance / chance[-1], (row + rng.random()) / draws, side="right").clip(max=cars - 1)
    place[row, won], left[row, won] = 1, False
    row = row[:, None]
    stopped = rng.random((draws, cars)) < stops
    stopped_at = _STOPPED * (1 + rng.random((draws, cars), dtype=np.float32))
    for head, (start, end) in list(enumerate(_ranges(cars)))[1:]:
        if start >= end:
            continue
        # Who comes first in a race of exponential clocks is a softmax draw, and who comes next one among the rest.
        behind = np.minimum(strengths[:, head].max() - strengths[:, head], _HOPELESS)
        slow = np.exp(behind).astype(np.float32)
        clock = np.where(stopped, stopped_at, rng.standard_exponential((draws, cars), dtype=np.float32) * slow)
        clock[~left] = np.inf
        ahead = clock.argsort(axis=1)[:, :end - start]
        place[row, ahead], left[row, ahead] = np.arange(start + 1, end + 1), False
    return place


def _ranges(cars: int) -> list[tuple[int, int]]:
    """Places that each head fills in a field, from 0, the end left out; a small field leaves heads without any."""
    ends = [min(last, cars) for last in (*HEADS, cars)]
    return list(zip([0, *ends[:-1]], ends, strict=True))
