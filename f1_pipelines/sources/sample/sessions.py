"""Practice and qualifying of the sample: best laps from the cars' pace, in the order of the line-up.

Practice hides pace behind fuel and programmes. Qualifying shows it, with mistakes, in three segments, the first two of
which eliminate the slowest cars.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from f1_pipelines.identity.line_ups import Entry
from f1_pipelines.identity.weekend import Weekend
from f1_pipelines.sim.engine import noise
from f1_pipelines.sim.teams.seeded_draws import uniform
from f1_pipelines.sources.sample.circuits import is_wet, true_parameters
from f1_pipelines.sources.sample.strengths import pace

FINAL_CARS = 10  # in the last segment, for any size of the field
QUALIFYING_RATIO = 0.925  # median car's lap over its race lap on new tyres: no fuel, full power
WET_RATIO = 1.13  # docs/physics.md#rain: intermediates
EVOLUTION = (1.0, 0.9975, 0.9955)  # the track gains rubber from segment to segment
# Best lap of a practice over that of a perfect qualifying.
PRACTICE_RATIO = {"practice_1": 1.014, "practice_2": 1.006, "practice_3": 1.003}
PRACTICE_BELOW_PCT, PRACTICE_ABOVE_PCT = 0.28, 0.50  # programme, fuel, traffic: more often slow than quick
MISTAKE_BELOW_PCT, MISTAKE_ABOVE_PCT = 0.05, 0.14  # of the better of two laps in a segment
WET_NOISE = 2.2  # x
NO_TIME_PRACTICE, NO_TIME_QUALIFYING, NO_TIME_LATER = 0.012, 0.010, 0.006  # crashed, broken, never out


@dataclass(frozen=True)
class PracticeSheet:
    """(N,) each; NaN without a timed lap."""

    best_lap_s: np.ndarray
    position: np.ndarray
    laps: np.ndarray


@dataclass(frozen=True)
class QualifyingSheet:
    """(N,) each; NaN where a car did not take part or set no time."""

    times_s: tuple[np.ndarray, np.ndarray, np.ndarray]
    position: np.ndarray
    order: np.ndarray  # index of the cars, fastest first, those without a time last


def practice(weekend: Weekend, session: str, entries: tuple[Entry, ...]) -> PracticeSheet:
    """Draw the sheet of one practice."""
    key, drivers = f"{weekend.key}/{session}", [entry.driver for entry in entries]
    wet = is_wet(weekend, session)
    u_lap, u_out, u_laps = uniform(key, drivers, 3)
    noise_pct = noise.heavy_tailed(u_lap, PRACTICE_BELOW_PCT, PRACTICE_ABOVE_PCT, -0.8, 5.0) * (WET_NOISE if wet else 1)
    ratio = QUALIFYING_RATIO * PRACTICE_RATIO[session] * (WET_RATIO if wet else 1.0)
    pct = pace(weekend, entries).practice + noise_pct
    best = np.round(true_parameters(weekend).base_lap_s * ratio * (1.0 + pct / 100.0), 3)
    out = u_out < NO_TIME_PRACTICE
    laps = np.where(out, np.floor(3 * u_laps), 13 + np.floor(18 * u_laps) - 6 * wet)
    return PracticeSheet(np.where(out, np.nan, best), _places(np.where(out, np.inf, best)), laps)


def segment_sizes(field_size: int) -> tuple[int, int, int]:
    """Cars in each segment of a full field: 20, 15 and 10 of 20; 22, 16 and 10 of 22.

    A field that lacks a car keeps the sizes of the later segments.
    """
    return field_size, FINAL_CARS + (field_size - FINAL_CARS) // 2, FINAL_CARS


def qualifying(weekend: Weekend, session: str, entries: tuple[Entry, ...], field_size: int) -> QualifyingSheet:
    """Draw the sheet of a `qualifying` or `sprint_qualifying`. `field_size` counts the cars of a full field."""
    key, drivers = f"{weekend.key}/{session}", [entry.driver for entry in entries]
    wet = is_wet(weekend, session)
    mistakes, outs = uniform(f"{key}/laps", drivers, 3), uniform(f"{key}/outs", drivers, 3)
    perfect = true_parameters(weekend).base_lap_s * QUALIFYING_RATIO * (WET_RATIO if wet else 1.0)
    running, order = np.ones(len(entries), dtype=bool), np.arange(len(entries))
    times: list[np.ndarray] = []
    for n, size in enumerate(segment_sizes(field_size)):
        if n:  # the fastest of the previous segment advance, if they set a time
            running = np.isin(np.arange(len(entries)), order[:size]) & np.isfinite(times[-1])
        pct = pace(weekend, entries).qualifying + noise.heavy_tailed(
            mistakes[n], MISTAKE_BELOW_PCT, MISTAKE_ABOVE_PCT, -0.3, 3.0) * (WET_NOISE if wet else 1)
        lap_s = np.round(perfect * EVOLUTION[n] * (1.0 + pct / 100.0), 3)
        out = outs[n] < (NO_TIME_LATER if n else NO_TIME_QUALIFYING)
        times.append(np.where(running & ~out, lap_s, np.nan))
        # Sort a segment by time; cars without one stay behind, in their previous order.
        rank = np.where(running & ~out, lap_s, np.inf)
        head = order[:size] if n else order
        order = np.concatenate([head[rank[head].argsort(kind="stable")], order[len(head):]])
    place = np.empty(len(entries))
    place[order] = np.arange(1, len(entries) + 1)
    return QualifyingSheet((times[0], times[1], times[2]), np.where(np.isfinite(times[0]), place, np.nan), order)


def sprint_qualifying_of(weekend: Weekend) -> str:
    """The session that sets the grid of the sprint: in 2022 the only qualifying."""
    return "sprint_qualifying" if "sprint_qualifying" in weekend.session_names else "qualifying"


def _places(times_s: Sequence[float] | np.ndarray) -> np.ndarray:
    """Places from 1 by time, ties in the order of the line-up; NaN for infinite times."""
    place = np.empty(len(times_s))
    place[np.argsort(times_s, kind="stable")] = np.arange(1, len(times_s) + 1)
    return np.where(np.isfinite(times_s), place, np.nan)
