"""A Grand Prix rebuilt from a weekend: `make_grand_prix(weekend, car, seed)`, full distance and full grid.

Who starts, where, for whom and how quick the weekend made him is the weekend's; what will happen is the seed's: form of
the day, rain, safety cars, start tyres, everybody's plans and characters, and all noise. Wear is that of real tyres.
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
    lasting_seed,
)
from f1_pipelines.sim.scenarios.track_events import closures_of_race, draw_race_status, draw_weather, rain_trace

SPLIT = "grand_prix"  # of no split: weekends are never part of what sprints are trained or measured on
FORM_PCT = 0.20  # sd of a driver's form of the day, % of a lap; docs/physics.md#lap-time: .31 a race, plans included
FUEL_LAPS = (-1.2, 0.6)  # in our tank beyond the distance, at race pace under green
LEAST_CARS, LEAST_LAPS = 6, 20
STOPS = 3  # an opponent plans at most
SLACK_S = 8.0  # plans up to this much slower than the best one are somebody's plan
_DRAWS = 1600


@dataclass(frozen=True)
class Entry:
    """One car of the grid."""

    driver: str
    number: int
    team: str
    grid: int  # slot, 1 = pole
    pace_s: float  # s/lap against the others, + is slower, as known before the start
    compound: int = -1  # it really started on, -1 where not known


@dataclass(frozen=True)
class GrandPrix:
    """What is known of a Grand Prix before lights out, and how likely rain is made there."""

    key: str
    circuit: CircuitParameters
    laps: int
    entries: tuple[Entry, ...]
    rain_chance: float


def make_grand_prix(weekend: GrandPrix, car: str | int, seed: int) -> Scenario:
    """The race of that weekend as that seed lets it go, seen from the pit wall of one car.

    Args:
        weekend: As it was read.
        car: Driver id (`charles-leclerc`), a part of it that means one driver only (`leclerc`), or car number.
        seed: 0 to MAX_SEED; draws the future.

    Raises:
        BadScenario: No such car or seed, or a field or distance too small for a Grand Prix; says what is there.
    """
    seed = check_seed(seed)
    if len(weekend.entries) < LEAST_CARS or weekend.laps < LEAST_LAPS:
        raise BadScenario(f"{weekend.key} has {len(weekend.entries)} cars and {weekend.laps} laps; a grand_prix wants "
                          f"{LEAST_CARS} and {LEAST_LAPS} or more.")
    ours = entry_of(weekend, car)
    dice = ScenarioRng(stable_hash("grand_prix", ENV_VERSION, weekend.key, seed), _DRAWS)
    closures = closures_of_race(weekend.circuit, weekend.laps)
    status = draw_race_status(dice, closures, weekend.laps)
    forecast, shower = draw_weather(dice, weekend.rain_chance, weekend.laps, weekend.laps // 2)
    heat = dice.pick((-18.0, *(float(round(dice.uniform(-6, 6))) for _ in range(4)), 18.0))
    drawn = {e.driver: _of_the_day(dice, e, weekend) for e in sorted(weekend.entries, key=lambda e: e.driver)}
    # Who has which character is drawn for the whole field, so that it does not depend on where we sit.
    order = [e for e in dice.shuffled(sorted(weekend.entries, key=lambda e: e.driver)) if e is not ours]
    entries, days = [ours, *order], [drawn[e.driver] for e in (ours, *order)]
    plans = [[(0, MEDIUM)] * STOPS] + [list(day.plan) + [(0, MEDIUM)] * (STOPS - len(day.plan)) for day in days[1:]]
    fuel = dice.uniform(*FUEL_LAPS)
    gamble = forecast.onset_lap - dice.whole(0, 1) if forecast is not None and forecast.chance > 0.5 else 0
    grid = np.array([e.grid for e in entries]).argsort(kind="stable").argsort(kind="stable") + 1
    teams = sorted({e.team for e in entries})
    return Scenario(
        family=GRAND_PRIX, seed=seed, split=SPLIT, circuit=weekend.circuit, laps=weekend.laps,
        race_seed=lasting_seed(ours.number, weekend.laps, GRAND_PRIX, weekend.key, ours.driver, seed),
        numbers=tuple(e.number for e in entries), pace_s=np.array([day.pace_s for day in days]),
        practice_s=np.array([day.shown_s for day in days]), grid=grid,
        compound=np.array([day.compound for day in days]), age_laps=np.zeros(len(entries), dtype=int),
        fuel_laps=np.array([fuel] + [0.45] * (len(entries) - 1)),
        plan_lap=np.array([[lap for lap, _ in plan] for plan in plans]).T,
        plan_compound=np.array([[tyre for _, tyre in plan] for plan in plans]).T, gamble_lap=gamble, wear_scale=1.0,
        heat_c=heat, rule=True, forecast=forecast, shower=shower, rain=rain_trace(shower, weekend.laps), status=status,
        rival=0, closures=closures, rain_chance=weekend.rain_chance, weekend=weekend.key,
        drivers=tuple(e.driver for e in entries), team=np.array([teams.index(e.team) for e in entries]))


def entry_of(weekend: GrandPrix, car: str | int) -> Entry:
    """The car that is meant.

    Raises:
        BadScenario: None or several; the message lists all that start.
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
    shown_s: float
    compound: int
    plan: tuple[tuple[int, int], ...]


def _of_the_day(dice: ScenarioRng, entry: Entry, weekend: GrandPrix) -> _Day:
    """What the seed makes of one car; as many draws for every car."""
    pace = entry.pace_s + dice.bell(FORM_PCT / 100.0 * weekend.circuit.base_lap_s)
    shown = round(pace + dice.bell(PACE_ERROR_S), 1)
    keeps_tyre, drawn = dice.chance(0.6), dice.pick((SOFT, MEDIUM, MEDIUM, MEDIUM, HARD))
    compound = entry.compound if keeps_tyre and 0 <= entry.compound <= HARD else drawn
    plans = dry_plans(weekend.circuit, weekend.laps, compound)
    when = [dice.whole(-2, 2) for _ in range(STOPS)]
    plan = plans[dice.whole(0, len(plans) - 1)]
    moved = tuple((min(max(lap + shift, 2), weekend.laps - 3), tyre)
                  for (lap, tyre), shift in zip(plan, when, strict=False))
    return _Day(pace, shown, compound, moved)


@lru_cache(maxsize=64)
def dry_plans(circuit: CircuitParameters, laps: int, start: int) -> list[tuple[tuple[int, int], ...]]:
    """Stops that a strategist might plan from that start tyre: one to three, by wear and stop loss alone.

    A stint of n laps costs n offset + slope n (n - 1) / 2 and ends before the usual life; stints of one plan are as
    long as their wear allows. Plans within `SLACK_S` of the best are kept, the best first.
    """
    life, slope, offset = circuit.cliff_laps, circuit.degradation_s_per_lap, circuit.compound_offset_s
    plans = []
    for count in range(1, STOPS + 1):
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
