"""Noise that depends only on its key (seed, lap, car, purpose): a counter-based generator.

The same key gives the same bits alone, in any batch, in any process and on any machine with IEEE 754 doubles. To
guarantee that, only operations that the standard rounds exactly are used (+ - * / sqrt, comparisons, powers of two).
`log`, `exp` and `sin` of a library are not: their last bit differs between processors. Draws are keyed by car number,
not by column, so reordering the grid reorders the noise, and a race forked at any lap gets the same noise again.
"""
from __future__ import annotations

import math

import numpy as np

from f1_pipelines.sim.engine.compiled import compiled

LAP, PASS, STOP, HAZARD, PUNCTURE, CLIFF = range(6)  # purposes of draws per car and lap
EVENT, DURATION, SLOT = 16, 17, 18  # purposes of draws per episode (or per place) and lap
EPISODE = 1 << 20  # the "car" of draws for a whole episode; places in the queue count on from here

_LAP_STEP, _CAR_STEP, _PURPOSE_STEP = (np.uint64(k) for k in (
    0x9E3779B97F4A7C15, 0xD1B54A32D192ED03, 0x8CB92BA72F3D8DD7))  # odd, from the golden ratio and its generalisations
_M1, _M2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)  # splitmix64, Vigna 2015
_S30, _S27, _S31, _S11 = (np.uint64(k) for k in (30, 27, 31, 11))
_LN_2, _SQRT_HALF = 0.6931471805599453, 0.7071067811865476


@compiled
def _mix(z: np.uint64) -> np.uint64:
    """The finaliser of splitmix64: every input bit affects every output bit."""
    z = (z ^ (z >> _S30)) * _M1
    z = (z ^ (z >> _S27)) * _M2
    return z ^ (z >> _S31)


@compiled
def lap_key(seed: np.uint64, lap: int) -> np.uint64:
    """The key of a lap of an episode, for `uniform`."""
    return _mix(_mix(np.uint64(seed) + _LAP_STEP) + np.uint64(lap) * _LAP_STEP)


@compiled
def uniform(key: np.uint64, car: int, purpose: int) -> float:
    """A uniform draw from the open interval (0, 1), a multiple of 2^-53 shifted by half a step.

    Args:
        key: Key of the lap.
        car: Car number.
        purpose: One of the purposes of this module.
    """
    z = _mix(_mix(key + np.uint64(car) * _CAR_STEP) + np.uint64(purpose) * _PURPOSE_STEP)
    return float(z >> _S11) * 2.0**-53 + 2.0**-54


@compiled
def _fill_uniforms(seeds: np.ndarray, laps: np.ndarray, cars: np.ndarray, purposes: np.ndarray,
                   out: np.ndarray) -> None:
    for lap in range(len(laps)):
        for episode in range(len(seeds)):
            key = lap_key(seeds[episode], laps[lap])
            for car in range(cars.shape[1]):
                for purpose in range(len(purposes)):
                    out[purpose, lap, episode, car] = uniform(key, cars[episode, car], purposes[purpose])


def uniforms(seeds: np.ndarray, laps: np.ndarray, cars: np.ndarray, purposes: tuple[int, ...]) -> np.ndarray:
    """Draw uniforms from the open interval (0, 1).

    Args:
        seeds: Seeds of the episodes, (E,) uint64.
        laps: Lap numbers, (L,).
        cars: Car numbers, (E, N) or (1, N).
        purposes: The P purposes to draw for.

    Returns:
        (P, L, E, N) float64, multiples of 2^-53 shifted by half a step.
    """
    seeds = np.asarray(seeds, dtype=np.uint64).ravel()
    laps, wanted = np.asarray(laps, dtype=np.uint64).ravel(), np.array(purposes, dtype=np.uint64)
    numbers = np.empty((len(seeds), np.shape(cars)[-1]), dtype=np.uint64)
    numbers[:] = cars
    out = np.empty((len(wanted), len(laps), *numbers.shape))
    _fill_uniforms(seeds, laps, numbers, wanted, out)
    return out


@compiled
def heavy_tailed_quantile(u: float, below: float, above: float, least: float, most: float) -> float:
    """Quantile of a split Student t with two degrees of freedom: median 0, a scale of its own on either side.

    docs/physics.md#lap-time reports 2.4 degrees of freedom, and five times as many laps that lose a second as laps
    that gain one. Two degrees have a closed form that only needs a square root.

    Args:
        u: Uniform in (0, 1).
        below: Scale of the negative side.
        above: Scale of the positive side.
        least, most: Bounds of the result: the distribution has no variance.
    """
    centred = u - 0.5
    t = centred * math.sqrt(2.0 / (u * (1.0 - u)))
    return min(max((below if centred < 0 else above) * t, least), most)


@compiled
def log(x: float) -> float:
    """Natural logarithm of a positive double by exactly rounded operations (absolute error below 1e-12)."""
    mantissa, exponent = math.frexp(x)  # exact: x = mantissa * 2^exponent, mantissa in [0.5, 1)
    s = (mantissa - _SQRT_HALF) / (mantissa + _SQRT_HALF)  # |s| <= 0.172
    s2 = s * s
    series = 1.0 / 15.0
    for k in range(13, 0, -2):
        series = series * s2 + 1.0 / k
    return 2.0 * s * series + (exponent - 0.5) * _LN_2


@compiled
def logistic_quantile(u: float) -> float:
    """Quantile of the standard logistic distribution (sd 1.81) at `u` in (0, 1)."""
    return log(u / (1.0 - u))


def heavy_tailed(u: np.ndarray, below: float, above: float, least: float, most: float) -> np.ndarray:
    """`heavy_tailed_quantile` of each element."""
    quantiles = np.empty(u.size)
    _fill_heavy_tailed(u.ravel(), below, above, least, most, quantiles)
    return quantiles.reshape(u.shape)


@compiled
def _fill_heavy_tailed(u: np.ndarray, below: float, above: float, least: float, most: float, out: np.ndarray) -> None:
    for k in range(len(u)):
        out[k] = heavy_tailed_quantile(u[k], below, above, least, most)


def logistic(u: np.ndarray) -> np.ndarray:
    """`logistic_quantile` of each element."""
    quantiles = np.empty(u.size)
    _fill_logistic(u.ravel(), quantiles)
    return quantiles.reshape(u.shape)


@compiled
def _fill_logistic(u: np.ndarray, out: np.ndarray) -> None:
    for k in range(len(u)):
        out[k] = logistic_quantile(u[k])
