"""Rain, the water on the track, and its effects on each tyre.

Wetness runs from 0 (dry) to 1 (standing water). It rises quickly to the intensity of the rain, and falls slowly as the
cars dry a line. Each compound's lap ratio to a dry lap is a curve of wetness, fitted to the crossovers of
docs/physics.md#rain: slicks and intermediates at 1.115 (wetness .25), intermediates and full wets at 1.27 (.80).
"""
from __future__ import annotations

import numpy as np

from f1_pipelines.sim.engine.noise import EPISODE, EVENT, uniforms

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


def lap_ratio(wetness: np.ndarray) -> np.ndarray:
    """Lap time over a dry lap by compound, (..., 5): inters 1.11-1.16, full wets 1.21-1.28 (docs/physics.md#rain).

    >>> [round(float(r), 2) for r in lap_ratio(np.array(0.5))]
    [1.31, 1.31, 1.31, 1.15, 1.24]
    """
    w = np.asarray(wetness, dtype=float)
    slick = 1.0 + w * (0.30 + 0.64 * w)
    return np.stack([slick, slick, slick, 1.095 + w * (0.05 + 0.26 * w * w), 1.20 + 0.08 * w], axis=-1)


def wear_ratio(wetness: np.ndarray) -> np.ndarray:
    """Wear over normal by compound, (..., 5): water spares slicks, a drying track wears out rain tyres. Assumption."""
    w = np.asarray(wetness, dtype=float)
    slick = 1.0 - 0.5 * np.minimum(w, 1.0)
    inter = 1.0 + 16.0 * np.maximum(SLICK_INTER_CROSSOVER - w, 0.0)
    wet = 1.0 + 10.0 * np.maximum(0.5 - w, 0.0)
    return np.stack([slick, slick, slick, inter, wet], axis=-1)


def accident_ratio(wetness: np.ndarray) -> np.ndarray:
    """Accident hazard over dry by compound, (..., 5). Assumption: slicks crash in the wet."""
    w = np.asarray(wetness, dtype=float)
    slick, rain_tyre = 1.0 + 14.0 * w, 1.0 + 2.0 * w
    return np.stack([slick, slick, slick, rain_tyre, rain_tyre], axis=-1)


_DRY = np.stack([table(np.zeros((1, 1))) for table in (lap_ratio, wear_ratio, accident_ratio)], axis=1)


def by_tyre(wetness: np.ndarray, base_lap_s: np.ndarray) -> np.ndarray:
    """Effects of water by episode and compound, (L, 3, E * 5): s/lap, x wear, x accidents.

    Args:
        wetness: Wetness of each lap, (L, E).
        base_lap_s: Dry lap of each episode's circuit [s], (E, 1).
    """
    if wetness.any():
        table = np.stack([lap_ratio(wetness), wear_ratio(wetness), accident_ratio(wetness)], axis=1)
    else:  # rain tyres are slow in the dry as well
        table = np.zeros((*wetness.shape, 5))[:, None] + _DRY
    table[:, 0] = (table[:, 0] - 1.0) * base_lap_s
    return table.reshape(len(wetness), 3, -1)


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
