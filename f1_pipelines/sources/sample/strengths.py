"""Pace of the cars and drivers of the sample: seeded numbers, not real results.

Pace is in per cent of a lap relative to the field, + is slower. It is a sum of the season's car (by constructor
lineage, so that a renamed team keeps it), its drift through the season, its fit to the circuit, the driver, and the
weekend's form. Most of it persists, so that past results predict a race; the rest is drawn for each weekend.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from f1_pipelines.identity.circuits import circuit_of
from f1_pipelines.identity.entrants import constructors, lineage
from f1_pipelines.identity.line_ups import Entry
from f1_pipelines.identity.weekend import Weekend
from f1_pipelines.sim.teams.seeded_draws import normal, scale

FIRST_SEASON, NEW_RULES = 2022, 2026
# docs/physics.md#lap-time: spread of pace in a race .64 s until 2025, 1.30 s in 2026; team mates half a gap of .20 %.
CAR_SD_PCT, CAR_SD_2026_PCT = 0.45, 0.75
CARRIED_OVER, CARRIED_OVER_2026 = 0.80, 0.30  # correlation of a team's level with that of the previous season
MAX_LEAD = 1.5  # sd of the teams; a team further ahead would win every race of a season
NEWCOMER = 1.3  # sd behind the mean, the level of a new team
DRIVER_SD_PCT, DRIVER_SEASON_SD_PCT = 0.20, 0.07
TRACK_KIND_SD_PCT, DRIVER_TRACK_SD_PCT = 0.10, 0.05
DRIFT_SD_PCT, DRIFT_DAYS = 0.07, 14  # one step of development; a season has about twenty
# docs/physics.md#lap-time: a driver's race-to-race form varies by .31 %, partly by weekend and partly by race.
TEAM_WEEKEND_SD_PCT, DRIVER_WEEKEND_SD_PCT = 0.10, 0.09
RACE_SD_PCT, QUALIFYING_SD_PCT = 0.09, 0.16
QUALIFYING_SPREAD = 1.2  # docs/physics.md#replay: race pace is about .75-.85 of the gap in qualifying


@dataclass(frozen=True)
class WeekendPace:
    """Pace of each car at a weekend [% of a lap, + slower], (N,) in the order of the line-up."""

    practice: np.ndarray
    qualifying: np.ndarray
    race: np.ndarray


@cache
def pace(weekend: Weekend, entries: tuple[Entry, ...]) -> WeekendPace:
    """The pace of every car at a weekend of the embedded calendar."""
    lines, drivers = [lineage(entry.constructor) for entry in entries], [entry.driver for entry in entries]
    kind = circuit_of(weekend.circuit, weekend.layout).kind
    season, key = weekend.season, weekend.key
    levels = car_levels(season)
    basis = (
        np.array([levels[line] for line in lines]) + _drift(lines, weekend)
        + TRACK_KIND_SD_PCT * normal(f"kind/{kind}/{season}", lines)[0]
        + DRIVER_SD_PCT * normal("skill", drivers)[0]
        + DRIVER_SEASON_SD_PCT * normal(f"skill/{season}", drivers)[0]
        + DRIVER_TRACK_SD_PCT * normal(f"track/{weekend.circuit}", drivers)[0])
    form = (TEAM_WEEKEND_SD_PCT * normal(f"{key}/set-up", lines)[0]
            + DRIVER_WEEKEND_SD_PCT * normal(f"{key}/form", drivers)[0])
    return WeekendPace(
        practice=_about_median(QUALIFYING_SPREAD * basis + form),
        qualifying=_about_median(QUALIFYING_SPREAD * (basis + form)
                                 + QUALIFYING_SD_PCT * normal(f"{key}/one lap", drivers)[0]),
        race=_about_median(basis + form + RACE_SD_PCT * normal(f"{key}/race day", drivers)[0]))


@cache
def car_levels(season: int) -> dict[str, float]:
    """Level of each constructor lineage in a season [% of a lap], with mean 0 and the sd of its rules."""
    names = sorted({constructor.lineage for constructor in constructors() if constructor.raced_in(season)})
    levels = dict(zip(names, normal(f"car/{season}", names)[0].tolist(), strict=True))
    if season > FIRST_SEASON:
        before = car_levels(season - 1)
        unit = CAR_SD_2026_PCT if season - 1 >= NEW_RULES else CAR_SD_PCT
        carried_over = CARRIED_OVER_2026 if season == NEW_RULES else CARRIED_OVER
        levels = {line: carried_over * before[line] / unit + math.sqrt(1.0 - carried_over * carried_over) * levels[line]
                  if line in before else NEWCOMER for line in names}
    levels = {line: min(max(level, -MAX_LEAD), MAX_LEAD) for line, level in levels.items()}
    mean = math.fsum(levels.values()) / len(names)
    sd = math.sqrt(math.fsum((level - mean) ** 2 for level in levels.values()) / len(names))
    unit = CAR_SD_2026_PCT if season >= NEW_RULES else CAR_SD_PCT
    return {line: unit * (level - mean) / sd for line, level in levels.items()}


def _about_median(pct: np.ndarray) -> np.ndarray:
    """Pace relative to the median car, whose lap is the circuit's base lap."""
    return pct - np.median(pct)


def _drift(lines: Sequence[str], weekend: Weekend) -> np.ndarray:
    """Change of pace by development until the race: a random walk with a step every fortnight."""
    fortnights = (weekend.race_start.timetuple().tm_yday - 60) / DRIFT_DAYS  # cars are launched in February
    full = max(int(fortnights), 0)
    steps = DRIFT_SD_PCT * normal(f"drift/{weekend.season}", lines, count=full + 1)
    return steps[:full].sum(axis=0) + steps[full] * max(fortnights - full, 0.0)


def accident_scale(entries: Sequence[Entry]) -> np.ndarray:
    """Accident rate of each driver, x the circuit's hazard."""
    return scale("accidents", [entry.driver for entry in entries], 1.7)


def mechanical_scale(entries: Sequence[Entry], season: int) -> np.ndarray:
    """Failure rate of each car, x the season's hazard."""
    return scale(f"reliability/{season}", [lineage(entry.constructor) for entry in entries], 2.0)
