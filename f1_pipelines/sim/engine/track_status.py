"""Green, VSC, safety car, red flag: when each comes, and for how long.

A status covers whole laps. It is either given for every lap (scenarios, replays) or drawn lap by lap, from a background
rate and the retirements of the lap (docs/physics.md#safety-car: an accident brings an SC with .34, a VSC with .04, red
with .03 within two laps; another retirement an SC with .07, a VSC with .15).
"""
from __future__ import annotations

import numpy as np

from f1_pipelines.sim.engine.parameters import GREEN, RED, SC, VSC

AFTER_ACCIDENT = {SC: 0.34, VSC: 0.04, RED: 0.03}
AFTER_OTHER = {SC: 0.07, VSC: 0.15, RED: 0.0}
# Share of the measured rate that simulated retirements do not cause (20 cars at .055 + .055 + .018 retirements).
BACKGROUND = {SC: 0.42, VSC: 0.62, RED: 0.70}
# Per race; docs/physics.md#safety-car: 27 % of SC start in lap 1, 5 % of VSC.
BACKGROUND_FIRST_LAP = {SC: 0.08, VSC: 0.01, RED: 0.02}
# Laps of a period, docs/physics.md#safety-car: SC 2 / 4 / 7 and VSC 1 / 2 / 3 at 10 / 50 / 90 %. Cumulative
# chance of 1, 2, 3 ... laps.
SC_LAPS = np.cumsum([0.05, 0.14, 0.20, 0.20, 0.15, 0.12, 0.08, 0.04])
VSC_LAPS = np.cumsum([0.35, 0.40, 0.20])


def periods(status: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How far each lap is into its period.

    Args:
        status: Status of each lap, (L, E).

    Returns:
        Laps of the period so far and still to come, both with the lap itself, (L, E) each.
    """
    lap = np.arange(len(status))[:, None]
    change = status[1:] != status[:-1]
    first, last = np.zeros_like(status), np.full_like(status, len(status) - 1)
    first[1:] = np.maximum.accumulate(lap[1:] * change, axis=0)
    last[:-1] = np.minimum.accumulate(np.where(change, lap[:-1], len(status) - 1)[::-1], axis=0)[::-1]
    return lap - first + 1, last - lap + 1


def next_status(status: np.ndarray, age: np.ndarray, left: np.ndarray,
                accidents: np.ndarray | int, others: np.ndarray | int, rates: np.ndarray, factors: np.ndarray,
                event_u: np.ndarray, duration_u: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw the status of the coming lap.

    Args:
        status: Status of the lap just driven, (E,).
        age: Laps of its period so far, that lap included, (E,).
        left: Laps of its period still to come, that lap included, (E,).
        accidents: Cars that crashed in that lap, (E, 1).
        others: Cars that retired in it for another reason, (E, 1).
        rates: Background chance of each status in that lap, (E, 4).
        factors: How readily retirements bring each status at this circuit, (E, 4); 1 is average.
        event_u: Uniform draws that decide the status, (E,).
        duration_u: Uniform draws that decide how long it lasts, (E,).

    Returns:
        Status, age and laps left of the coming lap, (E,) each.
    """
    chance = rates + factors * (accidents * _AFTER_ACCIDENT + others * _AFTER_OTHER)
    red, sc, vsc = chance[:, RED], chance[:, RED] + chance[:, SC], chance[:, RED] + chance[:, SC] + chance[:, VSC]
    new = np.where(event_u < red, RED, np.where(event_u < sc, SC, np.where(event_u < vsc, VSC, GREEN)))
    laps = np.where(new == SC, 1 + np.searchsorted(SC_LAPS, duration_u),
                    np.where(new == VSC, 1 + np.searchsorted(VSC_LAPS, duration_u), 1))
    on = (status != GREEN) & (left > 1)
    fresh = ~on & (new != GREEN)
    return (np.where(on, status, new), np.where(on | (~fresh & (status == GREEN)), age + 1, 1),
            np.where(on, left - 1, np.where(fresh, laps, 1)))


def _by_status(chances: dict[int, float]) -> np.ndarray:
    return np.array([chances.get(status, 0.0) for status in (GREEN, VSC, SC, RED)])


_AFTER_ACCIDENT, _AFTER_OTHER = _by_status(AFTER_ACCIDENT), _by_status(AFTER_OTHER)
