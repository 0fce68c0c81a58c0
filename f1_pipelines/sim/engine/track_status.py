"""Green, VSC, safety car, red flag: when each comes, and for how long.

A status covers whole laps. It is either given for every lap (scenarios, replays) or drawn lap by lap, from a background
rate and the retirements of the lap (docs/physics.md#safety-car: an accident brings an SC with .34, a VSC with .04, red
with .03 within two laps; another retirement an SC with .07, a VSC with .15).
"""
from __future__ import annotations

import numpy as np

from f1_pipelines.sim.engine.compiled import compiled
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


def _by_status(chances: dict[int, float]) -> np.ndarray:
    return np.array([chances.get(status, 0.0) for status in (GREEN, VSC, SC, RED)])


_AFTER_ACCIDENT, _AFTER_OTHER = _by_status(AFTER_ACCIDENT), _by_status(AFTER_OTHER)


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


@compiled
def next_status(status: int, age: int, left: int, accidents: int, others: int, rates: np.ndarray,
                factors: np.ndarray, race: int, lap: int, event_u: float, duration_u: float) -> tuple[int, int, int]:
    """Draw the status of the coming lap.

    Args:
        status: Status of the lap just driven.
        age: Laps of its period so far, that lap included.
        left: Laps of its period still to come, that lap included.
        accidents: Number of cars that crashed in that lap.
        others: Number of cars that retired in it for another reason.
        rates: Background chance of each status in the first lap and in others, (T, 2, 4).
        factors: How readily retirements bring each status at this circuit, (T, 4); 1 is average.
        race: Row of the race in these tables.
        lap: 0 for the first lap, else 1.
        event_u: Uniform draw that decides the status.
        duration_u: Uniform draw that decides how long it lasts.

    Returns:
        Status, age and laps left of the coming lap.
    """
    if status != GREEN and left > 1:
        return status, age + 1, left - 1
    red = _chance(RED, accidents, others, rates, factors, race, lap)
    red_or_sc = red + _chance(SC, accidents, others, rates, factors, race, lap)
    closed = red_or_sc + _chance(VSC, accidents, others, rates, factors, race, lap)
    new = RED if event_u < red else SC if event_u < red_or_sc else VSC if event_u < closed else GREEN
    if new != GREEN:
        return new, 1, period_laps(new, duration_u)
    return GREEN, age + 1 if status == GREEN else 1, 1


@compiled
def _chance(status: int, accidents: int, others: int, rates: np.ndarray, factors: np.ndarray, race: int,
            lap: int) -> float:
    """Chance that a lap brings a status; arguments as in `next_status`."""
    retired = accidents * _AFTER_ACCIDENT[status] + others * _AFTER_OTHER[status]
    return float(rates[race, lap, status] + factors[race, status] * retired)


@compiled
def period_laps(status: int, u: float) -> int:
    """Laps of a new period, from a uniform draw; a red flag lasts one."""
    laps = 1
    if status == SC:
        for chance in SC_LAPS:
            laps += chance < u
    elif status == VSC:
        for chance in VSC_LAPS:
            laps += chance < u
    return laps
