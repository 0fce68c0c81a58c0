"""Rain, the water on the track, and its effects on each tyre.

Wetness runs from 0 (dry) to 1 (standing water). It rises quickly to the intensity of the rain, and falls slowly as the
cars dry a line. Each compound's lap ratio to a dry lap is a curve of wetness, fitted to the crossovers of
docs/physics.md#rain: slicks and intermediates at 1.115 (wetness .25), intermediates and full wets at 1.27 (.80).
"""
from __future__ import annotations

import numpy as np

from f1_pipelines.sim.engine.compiled import compiled
from f1_pipelines.sim.engine.noise import EPISODE, EVENT, uniforms
from f1_pipelines.sim.engine.parameters import HARD, INTER

SOAK_PER_LAP = 0.5  # share of the difference to the rain's intensity, per lap; assumption
# docs/physics.md#rain: slicks run at 1.10, 1.07, 1.05, 1.03 in laps 1, 2, 3, 5 after the field's switch.
DRY_PER_LAP = 0.18
SLICK_INTER_CROSSOVER, INTER_WET_CROSSOVER = 0.25, 0.80  # wetness
DAMP = 0.10  # above this wetness the race counts as wet and laps scatter more
WET_SCATTER = 1.45  # docs/physics.md#rain: .53-.56 s against .36-.39


def wetness_by_lap(rain: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Wetness of the track in each lap, (L, E).

    Args:
        rain: Intensity during each lap, 0 to 1, (L, E).
        start: Wetness before the first lap, (E,).
    """
    wet = np.empty(rain.shape)
    now = np.asarray(start, dtype=float)
    for lap, intensity in enumerate(rain):
        now = now + (intensity - now) * np.where(intensity > now, SOAK_PER_LAP, DRY_PER_LAP)
        wet[lap] = now
    return wet


@compiled
def lap_ratio(compound: int, wetness: float) -> float:
    """Lap time over a dry lap: inters 1.11-1.16, full wets 1.21-1.28 (docs/physics.md#rain).

    >>> [round(lap_ratio(compound, 0.5), 2) for compound in range(5)]
    [1.31, 1.31, 1.31, 1.15, 1.24]
    """
    if compound <= HARD:
        return 1.0 + wetness * (0.30 + 0.64 * wetness)
    if compound == INTER:
        return 1.095 + wetness * (0.05 + 0.26 * wetness * wetness)
    return 1.20 + 0.08 * wetness


@compiled
def wear_ratio(compound: int, wetness: float) -> float:
    """Wear over normal: water spares slicks, a drying track wears out rain tyres. Assumption."""
    if compound <= HARD:
        return 1.0 - 0.5 * min(wetness, 1.0)
    if compound == INTER:
        return 1.0 + 16.0 * max(SLICK_INTER_CROSSOVER - wetness, 0.0)
    return 1.0 + 10.0 * max(0.5 - wetness, 0.0)


@compiled
def accident_ratio(compound: int, wetness: float) -> float:
    """Accident hazard over dry. Assumption: slicks crash in the wet."""
    return 1.0 + 14.0 * wetness if compound <= HARD else 1.0 + 2.0 * wetness


def showers(seeds: np.ndarray, laps: int, chance: np.ndarray | float) -> np.ndarray:
    """Draw the rain of whole races: at most one shower each, of random start, length and strength.

    Args:
        seeds: Seeds of the episodes, (E,) uint64.
        laps: Race distance [laps].
        chance: Probability that it rains at all, (E,) or one number.

    Returns:
        Intensity, 0 to 1, ramping up and down over two laps, (laps, E).
    """
    u = uniforms(seeds, np.arange(4), np.array([[EPISODE + 1]]), (EVENT,))[0, :, :, 0]
    start = u[1] * laps * 1.15 - 0.15 * laps  # some begin before the race
    length = (0.1 + 0.5 * u[2] * u[2]) * laps + 2.0
    peak = 0.3 + 0.65 * u[3]
    lap = np.arange(1, laps + 1)[:, None]
    shape = np.clip(np.minimum(lap - start, start + length - lap) / 2.0, 0.0, 1.0)
    return np.where(u[0] < chance, shape * peak, 0.0)
