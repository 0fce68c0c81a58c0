"""Green, VSC, safety car, red: which comes when, and how long it stays.

A status covers whole laps. It is either given for every lap (scenarios, replays) or drawn: a background rate and,
lap by lap, the retirements that bring one out (docs/physics.md#safety-car: an accident brings SC .34, VSC .04, red .03
within two laps, another stop SC .07, VSC .15).
"""
from __future__ import annotations

import numpy as np

from f1_pipelines.sim.engine.parameters import GREEN, RED, SC, VSC

AFTER_ACCIDENT = {SC: 0.34, VSC: 0.04, RED: 0.03}
AFTER_OTHER = {SC: 0.07, VSC: 0.15, RED: 0.0}
# Share of the events that no retirement of ours brings: measured rate less 20 cars at .055 + .055 + .018 retirements.
BACKGROUND = {SC: 0.42, VSC: 0.62, RED: 0.70}
# Per race; docs/physics.md#safety-car: 27 % of SC start in lap 1, 5 % of VSC.
BACKGROUND_FIRST_LAP = {SC: 0.08, VSC: 0.01, RED: 0.02}
# Laps of a period, docs/physics.md#safety-car: SC 2 / 4 / 7 and VSC 1 / 2 / 3 at 10 / 50 / 90 %. Cumulated chance of
# 1, 2, 3 ... laps.
SC_LAPS = np.cumsum([0.05, 0.14, 0.20, 0.20, 0.15, 0.12, 0.08, 0.04])
VSC_LAPS = np.cumsum([0.35, 0.40, 0.20])


def periods(status: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How far along each lap is in its period.

    Args:
        status: (L, E) status of each lap.

    Returns:
        Laps of the period so far and still to come, both counting the lap itself, (L, E) each.
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
    """Status of the coming lap.

    Args:
        status: (E,) of the lap just driven, with its `age` and `left` (laps, itself included).
        accidents: (E, 1) cars that crashed in it; `others` those that stopped for another reason.
        rates: (E, 4) background chance of each status in this lap.
        factors: (E, 4) how readily this circuit answers a retirement with each status (1 = as everywhere).
        event_u, duration_u: (E,) uniform draws.

    Returns:
        status, age, left of the coming lap.
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
