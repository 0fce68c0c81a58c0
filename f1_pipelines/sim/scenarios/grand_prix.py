"""A Grand Prix rebuilt from a weekend: `make_grand_prix(weekend, car, seed)`, full distance and full grid.

The weekend gives the drivers, their teams, grid slots and pace. The seed draws the rest: form of the day, rain, safety
cars, start tyres, plans and characters of the opponents, and all noise. Wear is that of real tyres.
"""
from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from f1_pipelines.sim.engine.hashing import stable_hash
from f1_pipelines.sim.engine.parameters import HARD, MEDIUM, SOFT, CircuitParameters
from f1_pipelines.sim.scenarios.families import GRAND_PRIX
from f1_pipelines.sim.scenarios.rng import ScenarioRng
from f1_pipelines.sim.scenarios.scenario import (
    ENV_VERSION,
    PACE_ERROR_S,
    BadScenario,
    Scenario,
    check_seed,
    survivable_race_seed,
)
from f1_pipelines.sim.scenarios.track_events import closures_of_race, draw_race_status, draw_weather, rain_trace

SPLIT = "grand_prix"  # weekends are in no split: sprints are neither trained nor evaluated on them
FORM_PCT = 0.20  # sd of a driver's form of the day, % of a lap; docs/physics.md#lap-time: .31 a race, plans included
FUEL_LAPS = (-1.2, 0.6)  # our fuel beyond the distance, in laps at race pace under green
MIN_CARS, MIN_LAPS = 6, 20
MAX_STOPS = 3  # planned by an opponent
SLACK_S = 8.0  # opponents use plans up to this much slower than the best one
_DRAWS = 1600


@dataclass(frozen=True)
class Entry:
    """One car of the grid."""

    driver: str
    number: int
    team: str
    grid: int  # slot, 1 = pole
    pace_s: float  # s/lap relative to the others, + is slower, as known before the start
    compound: int = -1  # of the real start, -1 if unknown


@dataclass(frozen=True)
class GrandPrix:
    """What is known of a Grand Prix before lights out, and the chance of rain to simulate."""

    key: str
    circuit: CircuitParameters
    laps: int
    entries: tuple[Entry, ...]
    rain_chance: float


def make_grand_prix(weekend: GrandPrix, car: str | int, seed: int) -> Scenario:
    """Draw the race of a weekend, seen from the pit wall of one car.

    Args:
        weekend: The grid and circuit of the Grand Prix.
        car: Driver id (`charles-leclerc`), an unambiguous part of one (`leclerc`), or car number.
        seed: 0 to MAX_SEED; draws the future.

    Raises:
        BadScenario: The weekend has no such car, the seed is out of range, or the field or distance is too small for a
            Grand Prix; the message says what was wanted.
    """
    seed = check_seed(seed)
    if len(weekend.entries) < MIN_CARS or weekend.laps < MIN_LAPS:
        raise BadScenario(f"{weekend.key} has {len(weekend.entries)} cars and {weekend.laps} laps; a grand_prix wants "
                          f"{MIN_CARS} and {MIN_LAPS} or more.")
    ours = entry_of(weekend, car)
    rng = ScenarioRng(stable_hash("grand_prix", ENV_VERSION, weekend.key, seed), _DRAWS)
    closures = closures_of_race(weekend.circuit, weekend.laps)
    status = draw_race_status(rng, closures, weekend.laps)
    forecast, shower = draw_weather(rng, weekend.rain_chance, weekend.laps, weekend.laps // 2)
    heat = rng.choice((-18.0, *(float(round(rng.uniform(-6, 6))) for _ in range(4)), 18.0))
    days_by_driver = {e.driver: _draw_day(rng, e, weekend) for e in sorted(weekend.entries, key=lambda e: e.driver)}
    # Characters are drawn for the whole field, so that they do not depend on which car is ours.
    order = [e for e in rng.shuffled(sorted(weekend.entries, key=lambda e: e.driver)) if e is not ours]
    entries, days = [ours, *order], [days_by_driver[e.driver] for e in (ours, *order)]
    plans = [[(0, MEDIUM)] * MAX_STOPS,
             *([*day.plan, *[(0, MEDIUM)] * (MAX_STOPS - len(day.plan))] for day in days[1:])]
    fuel = rng.uniform(*FUEL_LAPS)
    gamble = forecast.onset_lap - rng.integer(0, 1) if forecast is not None and forecast.chance > 0.5 else 0
    grid = np.array([e.grid for e in entries]).argsort(kind="stable").argsort(kind="stable") + 1
    teams = sorted({e.team for e in entries})
    return Scenario(
        family=GRAND_PRIX, seed=seed, split=SPLIT, circuit=weekend.circuit, laps=weekend.laps,
        race_seed=survivable_race_seed(ours.number, weekend.laps, GRAND_PRIX, weekend.key, ours.driver, seed),
        numbers=tuple(e.number for e in entries), pace_s=np.array([day.pace_s for day in days]),
        practice_s=np.array([day.practice_s for day in days]), grid=grid,
        compound=np.array([day.compound for day in days]), age_laps=np.zeros(len(entries), dtype=int),
        fuel_laps=np.array([fuel] + [0.45] * (len(entries) - 1)),
        plan_lap=np.array([[lap for lap, _ in plan] for plan in plans]).T,
        plan_compound=np.array([[tyre for _, tyre in plan] for plan in plans]).T, gamble_lap=gamble, wear_scale=1.0,
        heat_c=heat, rule=True, forecast=forecast, shower=shower, rain=rain_trace(shower, weekend.laps), status=status,
        rival=0, closures=closures, rain_chance=weekend.rain_chance, weekend=weekend.key,
        drivers=tuple(e.driver for e in entries), team=np.array([teams.index(e.team) for e in entries]))


def entry_of(weekend: GrandPrix, car: str | int) -> Entry:
    """Find a car by driver id, an unambiguous part of one, or number.

    Raises:
        BadScenario: No car or several cars match; the message lists the grid.
    """
    wanted = str(car).strip().lower()
    matches = [e for e in weekend.entries if wanted in (e.driver, str(e.number))] or \
        [e for e in weekend.entries if wanted and wanted in e.driver.split("-")]
    if len(matches) == 1:
        return matches[0]
    start = ", ".join(f"{e.driver} ({e.number})" for e in sorted(weekend.entries, key=lambda e: e.grid))
    raise BadScenario(f"{weekend.key}: {wanted[:40]!r} is {'no car' if not matches else 'several cars'} of the grid. "
                      f"Valid: {start}.")


@dataclass(frozen=True)
class _Day:
    pace_s: float
    practice_s: float
    compound: int
    plan: tuple[tuple[int, int], ...]


def _draw_day(rng: ScenarioRng, entry: Entry, weekend: GrandPrix) -> _Day:
    """Draw form, start tyre and plan of a car; every car takes the same number of draws."""
    pace = entry.pace_s + rng.normal(FORM_PCT / 100.0 * weekend.circuit.base_lap_s)
    practice = round(pace + rng.normal(PACE_ERROR_S), 1)
    keeps_compound, drawn = rng.chance(0.6), rng.choice((SOFT, MEDIUM, MEDIUM, MEDIUM, HARD))
    compound = entry.compound if keeps_compound and 0 <= entry.compound <= HARD else drawn
    plans = dry_plans(weekend.circuit, weekend.laps, compound)
    shifts = [rng.integer(-2, 2) for _ in range(MAX_STOPS)]
    plan = plans[rng.integer(0, len(plans) - 1)]
    moved = tuple((min(max(lap + shift, 2), weekend.laps - 3), tyre)
                  for (lap, tyre), shift in zip(plan, shifts, strict=False))
    return _Day(pace, practice, compound, moved)


@lru_cache(maxsize=64)
def dry_plans(circuit: CircuitParameters, laps: int, start: int) -> list[tuple[tuple[int, int], ...]]:
    """Plans for a dry race from a start tyre, by wear and stop loss alone: up to `MAX_STOPS` stops as (lap, compound).

    A stint of n laps costs n offset + slope n (n - 1) / 2 and ends before the usual life; the stints of a plan share
    the distance in proportion to that life. Returns the plans within `SLACK_S` of the best one, best first.
    """
    life, slope, offset = circuit.cliff_laps, circuit.degradation_s_per_lap, circuit.compound_offset_s
    plans = []
    for count in range(1, MAX_STOPS + 1):
        for rest in itertools.product((SOFT, MEDIUM, HARD), repeat=count):
            tyres = (start, *rest)
            if len(set(tyres)) < 2:
                continue
            share = np.array([life[c] for c in tyres])
            ends = np.round(np.cumsum(share) / share.sum() * laps).astype(int)
            stints = np.diff(ends, prepend=0)
            if (stints > 0.97 * share).any():
                continue
            cost = count * circuit.stop_loss_green_s + sum(
                n * offset[c] + slope[c] * n * (n - 1) / 2.0 for n, c in zip(stints.tolist(), tyres, strict=True))
            plans.append((float(cost), tuple(zip(ends[:-1].tolist(), rest, strict=True))))
    plans.sort()
    return [plan for cost, plan in plans if cost <= plans[0][0] + SLACK_S]
