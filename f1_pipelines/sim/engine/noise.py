"""Noise that depends only on its key (seed, lap, car, purpose): a counter-based generator in numpy.

The same key gives the same bits alone, in any batch, in any process and on any machine with IEEE 754 doubles. To
guarantee that, only operations that the standard rounds exactly are used (+ - * / sqrt, comparisons, powers of two).
`np.log`, `np.exp` and `np.sin` are not: their last bit may differ between the vector body and the tail of a loop, and
between processors. Draws are keyed by car number, not by column, so reordering the grid reorders the noise, and a race
forked at any lap gets the same noise again.
"""
from __future__ import annotations

import numpy as np

LAP, PASS, STOP, HAZARD, PUNCTURE, CLIFF = range(6)  # purposes of draws per car and lap
EVENT, DURATION, SLOT = 16, 17, 18  # purposes of draws per episode (or per place) and lap
EPISODE = 1 << 20  # the "car" of draws for a whole episode; places in the queue count on from here

_LAP_STEP, _CAR_STEP, _PURPOSE_STEP = (np.array(k, dtype=np.uint64) for k in (
    0x9E3779B97F4A7C15, 0xD1B54A32D192ED03, 0x8CB92BA72F3D8DD7))  # odd, from the golden ratio and its generalisations
_M1, _M2 = (np.array(k, dtype=np.uint64) for k in (0xBF58476D1CE4E5B9, 0x94D049BB133111EB))  # splitmix64, Vigna 2015
_S30, _S27, _S31, _S11 = (np.array(k, dtype=np.uint64) for k in (30, 27, 31, 11))


def _mix(z: np.ndarray) -> np.ndarray:
    """The finaliser of splitmix64: every input bit affects every output bit. uint64 array -> same shape."""
    z = (z ^ (z >> _S30)) * _M1
    z = (z ^ (z >> _S27)) * _M2
    return z ^ (z >> _S31)


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
    episode = _mix(np.asarray(seeds, dtype=np.uint64).reshape(1, -1) + _LAP_STEP)
    lap = _mix(episode + np.asarray(laps, dtype=np.uint64).reshape(-1, 1) * _LAP_STEP)
    car = _mix(lap[:, :, None] + np.asarray(cars, dtype=np.uint64)[None] * _CAR_STEP)
    steps = np.array(purposes, dtype=np.uint64).reshape(-1, 1, 1, 1) * _PURPOSE_STEP
    return (_mix(car[None] + steps) >> _S11) * 2.0**-53 + 2.0**-54


def heavy_tailed(u: np.ndarray, below: np.ndarray | float, above: np.ndarray | float, least: float,
                 most: float) -> np.ndarray:
    """Quantiles of a split Student t with two degrees of freedom: median 0, a scale of its own on either side.

    docs/physics.md#lap-time reports 2.4 degrees of freedom, and five times as many laps that lose a second as laps
    that gain one. Two degrees have a closed form that only needs a square root.

    Args:
        u: Uniforms in (0, 1).
        below: Scale of the negative side.
        above: Scale of the positive side.
        least, most: Bounds of the result: the distribution has no variance.
    """
    centred = u - 0.5
    t = centred * np.sqrt(2.0 / (u * (1.0 - u)))
    return np.minimum(np.maximum(np.where(centred < 0, below, above) * t, least), most)


def log(x: np.ndarray) -> np.ndarray:
    """Natural logarithm of positive doubles by exactly rounded operations (absolute error below 1e-12)."""
    mantissa, exponent = np.frexp(x)  # exact: x = mantissa * 2^exponent, mantissa in [0.5, 1)
    s = (mantissa - 0.7071067811865476) / (mantissa + 0.7071067811865476)  # |s| <= 0.172
    s2 = s * s
    series = 1.0 / 15.0
    for k in (13.0, 11.0, 9.0, 7.0, 5.0, 3.0, 1.0):
        series = series * s2 + 1.0 / k
    return 2.0 * s * series + (exponent - 0.5) * 0.6931471805599453


def logistic(u: np.ndarray) -> np.ndarray:
    """Quantiles of the standard logistic distribution (sd 1.81) at `u` in (0, 1)."""
    return log(u / (1.0 - u))
