"""Ten thousand simulated races of one field: what the ranker's scores come to when cars have to pass each other.

Notable choices:
- A score is a pace: so many per cent of a lap for each unit, learnt by robust regression from the gaps at the flag in
  earlier races. Gaps are squeezed by safety cars and by being stuck, which the simulator does again, so the pace is
  `STRETCH` times that; and a car has a better or worse day than its score says (`DAY_SD_PCT`). Both were chosen on the
  races of 2019-2024.
- Grid, or what is known of it. Before qualifying it is drawn, as often in this order or that as the scores say.
- Plans, stops under a safety car and rain are those of the sample's pit walls; cars break down and crash as the
  circuit's physics have it. Nothing of the race itself is known.
- In batches, so that memory stays small; the same names give the same races, in whatever batch.
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
import pandas as pd

from f1_pipelines.calibration.robust import huber_ridge
from f1_pipelines.features.form import performance
from f1_pipelines.identity.climate import rain_chance
from f1_pipelines.identity.race_distance import race_distance
from f1_pipelines.identity.weekend import Weekend
from f1_pipelines.sim import CircuitParameters, RaceSetup, RaceState, circuit_prior, classify, prepare, run
from f1_pipelines.sim.engine import noise
from f1_pipelines.sim.engine.parameters import INTER
from f1_pipelines.sim.engine.weather import SLICK_INTER_CROSSOVER, showers
from f1_pipelines.sim.teams.pit_wall import PitWall
from f1_pipelines.sim.teams.plans import StintPlans, race_plans
from f1_pipelines.sim.teams.seeded_draws import seed_of

RACES, BATCH = 10_000, 1_000
PLANS = 50  # strategies drawn for each field, dealt out to its races in turn
STRETCH, DAY_SD_PCT = 3.0, 0.7
WORST_GAP_PCT = 4.0  # behind the middle of the field: a race lost to damage says nothing more
LEAST_CARS = 100  # with a gap at the flag: fewer teach no pace


@dataclass(frozen=True)
class FieldPace:
    """What a unit of score is worth on the track [% of a lap]."""

    pct_per_score: float


@dataclass(frozen=True)
class RaceField:
    """The cars of one race, N of them in the order of driver id.

    Attributes:
        name: Of the draws: weekend, stage, checkpoint.
        scores: (N,) of the ranker, higher = further ahead.
        start: (N,) known starting order, lowest first; NaN where it is not known.
        teams: (N,) constructors.
        drivers: (N,) ids.
    """

    name: str
    scores: np.ndarray
    start: np.ndarray
    teams: tuple[str, ...]
    drivers: tuple[str, ...]

    @property
    def cars(self) -> int:
        return len(self.scores)


def learn_pace(rows: pd.DataFrame, scores: np.ndarray, results: pd.DataFrame) -> FieldPace:
    """Pace per unit of score from the gaps at the flag.

    Args:
        rows: Starters of run races: weekend, driver.
        scores: (len(rows),) what the ranker says of them.
        results: Rows of `race.results` of these races.

    Raises:
        ValueError: Fewer than `LEAST_CARS` of them have a gap.
    """
    gaps = performance(results)["race_gap_pct"].astype("float64")
    frame = rows[["weekend", "driver"]].assign(score=np.asarray(scores, dtype="float64"))
    frame = frame.join(gaps, on=["weekend", "driver"])
    frame = frame[frame["race_gap_pct"].notna()]
    if len(frame) < LEAST_CARS:
        raise ValueError(f"{len(frame)} cars have a gap at the flag (needs {LEAST_CARS}): load the results of a season "
                         "to learn from")
    middle = frame.groupby("weekend")[["score", "race_gap_pct"]].transform("median")
    score, gap = frame["score"] - middle["score"], frame["race_gap_pct"] - middle["race_gap_pct"]
    fit = huber_ridge(score.to_numpy()[:, None], gap.clip(-WORST_GAP_PCT, WORST_GAP_PCT).to_numpy(),
                      np.zeros(len(frame), dtype=int), 1, np.zeros(2), np.full(2, np.inf))
    return FieldPace(max(float(-fit.coef[1]), 0.0))


def circuit_for(weekend: Weekend, fitted: dict[str, CircuitParameters]) -> CircuitParameters:
    """Physics of a weekend's circuit: fitted if there is any, else the table of priors, else pooled values; over the
    distance of this race. Which it was is its `provenance`."""
    known = fitted.get(weekend.circuit) or circuit_prior(weekend.circuit, weekend.season)
    laps = race_distance(weekend)
    return replace(known, race_laps=laps, fuel_burn_kg_per_lap=known.fuel_burn_kg_per_lap * known.race_laps / laps)


def pace_s(field: RaceField, pace: FieldPace, circuit: CircuitParameters) -> np.ndarray:
    """(N,) against the median car, + is slower [s/lap]."""
    apart = field.scores - np.median(field.scores)
    return -apart * pace.pct_per_score * STRETCH * circuit.base_lap_s / 100.0


def simulate(field: RaceField, weekend: Weekend, circuit: CircuitParameters, pace: FieldPace,
             races: int = RACES) -> np.ndarray:
    """Drive races of this field.

    Args:
        field: Its cars.
        weekend: For the chance of rain and the distance.
        circuit: Physics, as `circuit_for` gives them.
        pace: What a score is worth.
        races: How many.

    Returns:
        (races, N) places of all cars, retired ones by distance as in an official order.
    """
    plans = [race_plans(circuit, circuit.race_laps, f"{field.name}/plans {n}", list(field.drivers))
             for n in range(min(PLANS, races))]
    return np.concatenate([_batch(field, weekend, circuit, pace, plans, numbers)
                           for numbers in _batches(races)]).astype(np.int64)


def _batches(races: int) -> Iterator[np.ndarray]:
    for first in range(0, races, BATCH):
        yield np.arange(first, min(first + BATCH, races))


def _batch(field: RaceField, weekend: Weekend, circuit: CircuitParameters, pace: FieldPace, plans: list[StintPlans],
           numbers: np.ndarray) -> np.ndarray:
    """(E, N) places of the races with these numbers."""
    cars, laps = field.cars, circuit.race_laps
    seeds = (np.uint64(seed_of(field.name)) >> np.uint64(1)) + numbers.astype(np.uint64)
    draws = noise.uniforms(seeds, np.arange(laps + 2), np.arange(1, cars + 1)[None], (noise.LAP,))[0]  # (L + 2, E, N)
    day = DAY_SD_PCT * noise.logistic(draws[laps]) / 1.8138
    rain = showers(seeds, laps, rain_chance(weekend)).T  # (E, L)
    chosen = [plans[n % len(plans)] for n in numbers]
    water = rain[:, :1] > SLICK_INTER_CROSSOVER
    race = prepare(RaceSetup(
        circuits=(circuit,), seeds=seeds, race_laps=laps, rain=rain if rain.any() else None, start_wetness=rain[:, 0],
        car_pace_s=pace_s(field, pace, circuit) + day * circuit.base_lap_s / 100.0,
        team=np.unique(np.asarray(field.teams), return_inverse=True)[1] if cars > 1 else None,
        grid=_grid(field, draws[laps + 1]),
        start_compound=np.where(water, INTER, np.stack([plan.start for plan in chosen]))))
    wall = PitWall(race, np.stack([plan.laps for plan in chosen], axis=1),
                   np.stack([plan.compounds for plan in chosen], axis=1), draws[:laps],
                   np.zeros((len(numbers), cars)), np.ones(len(numbers), dtype=bool))
    return classify(race, cast("RaceState", run(race, wall))).position


def _grid(field: RaceField, draws: np.ndarray) -> np.ndarray:
    """(E, N) slots 1..N: known ones as they are, cars without one behind them, all of it drawn where nobody has one."""
    drawn = -(field.scores - np.log(-np.log(draws)))  # Gumbel noise: a softmax order of the scores
    known = np.where(np.isnan(field.start), np.inf, field.start)
    order = np.lexsort((drawn, np.broadcast_to(known, drawn.shape)), axis=1)
    slots = np.empty(drawn.shape, dtype=np.int64)
    np.put_along_axis(slots, order, np.arange(1, field.cars + 1)[None], axis=1)
    return slots
