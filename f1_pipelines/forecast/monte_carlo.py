"""Monte Carlo forecast: 10,000 simulated races of one field, with the ranker's scores as pace.

Notable choices:
- A unit of score is worth a fixed percentage of a lap, fitted by robust regression to the gaps at the flag of earlier
  races. Safety cars and traffic compress these gaps, and the simulator models both again, so the pace is `STRETCH`
  times the fit. Each car also gets a random pace for the day (`DAY_SD_PCT`). Both were chosen on races of 2019-2024.
- Cars start from the known grid. Without one, the grid is sampled from the scores.
- Strategies, stops under a safety car and rain are modelled as in the sample source; retirements follow the circuit's
  parameters. No data of the race itself are used.
- Races run in batches to limit memory; the batch size changes no race.
"""
from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from f1_pipelines.calibration.robust import huber_ridge
from f1_pipelines.features.form import performance
from f1_pipelines.identity.climate import rain_chance
from f1_pipelines.identity.race_distance import race_distance
from f1_pipelines.identity.weekend import Weekend
from f1_pipelines.sim import CircuitParameters, RaceSetup, circuit_prior, classify, prepare, run
from f1_pipelines.sim.engine import noise
from f1_pipelines.sim.engine.parameters import INTER
from f1_pipelines.sim.engine.weather import SLICK_INTER_CROSSOVER, showers
from f1_pipelines.sim.teams.pit_wall import PitWall
from f1_pipelines.sim.teams.plans import StintPlans, race_plans
from f1_pipelines.sim.teams.seeded_draws import seed_of

RACES, BATCH = 10_000, 1_000
PLANS = 50  # sets of strategies drawn for each field, used by its races in turn
STRETCH, DAY_SD_PCT = 3.0, 0.7
WORST_GAP_PCT = 4.0  # gaps to the median car are clipped here: larger ones come from damage
LEAST_CARS = 100  # minimum number of cars with a gap at the flag to fit a pace


@dataclass(frozen=True)
class FieldPace:
    """Pace per unit of score [% of a lap]."""

    pct_per_score: float


@dataclass(frozen=True)
class RaceField:
    """The N cars of one race, sorted by driver id.

    Attributes:
        name: Seed of the random draws: weekend, stage, checkpoint.
        scores: (N,) ranker scores, higher = further ahead.
        start: (N,) starting order, lowest first; NaN = unknown.
        teams: (N,) constructor ids.
        drivers: (N,) driver ids.
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
    """Fit the pace per unit of score to the gaps at the flag.

    Args:
        rows: Starters of completed races: weekend, driver.
        scores: (len(rows),) ranker scores.
        results: Rows of `race.results` of these races.

    Raises:
        ValueError: Fewer than `LEAST_CARS` starters have a gap.
    """
    gaps = performance(results)["race_gap_pct"].astype("float64")
    frame = rows[["weekend", "driver"]].assign(score=np.asarray(scores, dtype="float64"))
    frame = frame.join(gaps, on=["weekend", "driver"])
    frame = frame[frame["race_gap_pct"].notna()]
    if len(frame) < LEAST_CARS:
        raise ValueError(f"{len(frame)} cars have a gap at the flag (needs {LEAST_CARS}): load the results of "
                         "another season")
    middle = frame.groupby("weekend")[["score", "race_gap_pct"]].transform("median")
    score, gap = frame["score"] - middle["score"], frame["race_gap_pct"] - middle["race_gap_pct"]
    fit = huber_ridge(score.to_numpy()[:, None], gap.clip(-WORST_GAP_PCT, WORST_GAP_PCT).to_numpy(),
                      np.zeros(len(frame), dtype=int), 1, np.zeros(2), np.full(2, np.inf))
    return FieldPace(max(float(-fit.coef[1]), 0.0))


def circuit_for(weekend: Weekend, fitted: dict[str, CircuitParameters]) -> CircuitParameters:
    """Parameters of a weekend's circuit over this race's distance: fitted ones, else the circuit prior, else pooled
    values; `provenance` says which."""
    circuit = fitted.get(weekend.circuit) or circuit_prior(weekend.circuit, weekend.season)
    laps = race_distance(weekend)
    return replace(circuit, race_laps=laps,
                   fuel_burn_kg_per_lap=circuit.fuel_burn_kg_per_lap * circuit.race_laps / laps)


def pace_s(field: RaceField, pace: FieldPace, circuit: CircuitParameters) -> np.ndarray:
    """Pace relative to the median car, (N,) [s/lap], + is slower."""
    advantage = field.scores - np.median(field.scores)
    return -advantage * pace.pct_per_score * STRETCH * circuit.base_lap_s / 100.0


def simulate(field: RaceField, weekend: Weekend, circuit: CircuitParameters, pace: FieldPace,
             races: int = RACES) -> np.ndarray:
    """Simulate races of this field.

    Args:
        field: The cars.
        weekend: Weekend, for the chance of rain.
        circuit: Parameters from `circuit_for`.
        pace: Pace per unit of score.
        races: Number of races.

    Returns:
        (races, N) finishing places of all cars; retired ones by distance, as in an official order.
    """
    plans = [race_plans(circuit, circuit.race_laps, f"{field.name}/plans {n}", list(field.drivers))
             for n in range(min(PLANS, races))]
    return np.concatenate([
        _simulate_batch(field, weekend, circuit, pace, plans, np.arange(first, min(first + BATCH, races)))
        for first in range(0, races, BATCH)]).astype(np.int64)


def _simulate_batch(field: RaceField, weekend: Weekend, circuit: CircuitParameters, pace: FieldPace,
                    plans: list[StintPlans], numbers: np.ndarray) -> np.ndarray:
    """Finishing places of the races with these numbers, (E, N)."""
    cars, laps = field.cars, circuit.race_laps
    seeds = (np.uint64(seed_of(field.name)) >> np.uint64(1)) + numbers.astype(np.uint64)
    draws = noise.uniforms(seeds, np.arange(laps + 2), np.arange(1, cars + 1)[None], (noise.LAP,))[0]  # (L + 2, E, N)
    day = DAY_SD_PCT * noise.logistic(draws[laps]) / 1.8138
    rain = showers(seeds, laps, rain_chance(weekend)).T  # (E, L)
    drawn_plans = [plans[n % len(plans)] for n in numbers]
    water = rain[:, :1] > SLICK_INTER_CROSSOVER
    race = prepare(RaceSetup(
        circuits=(circuit,), seeds=seeds, race_laps=laps, rain=rain if rain.any() else None, start_wetness=rain[:, 0],
        car_pace_s=pace_s(field, pace, circuit) + day * circuit.base_lap_s / 100.0,
        team=np.unique(np.asarray(field.teams), return_inverse=True)[1] if cars > 1 else None,
        grid=_grid(field, draws[laps + 1]),
        start_compound=np.where(water, INTER, np.stack([plan.start for plan in drawn_plans]))))
    wall = PitWall(race, np.stack([plan.laps for plan in drawn_plans], axis=1),
                   np.stack([plan.compounds for plan in drawn_plans], axis=1), draws[:laps],
                   np.zeros((len(numbers), cars)), np.ones(len(numbers), dtype=bool))
    return classify(race, run(race, wall)).position


def _grid(field: RaceField, draws: np.ndarray) -> np.ndarray:
    """Grid slots 1..N, (E, N): the known starting order, then the cars without one in an order sampled from the scores.
    """
    sampled = -(field.scores - np.log(-np.log(draws)))  # Gumbel noise gives a softmax order of the scores
    known = np.where(np.isnan(field.start), np.inf, field.start)
    order = np.lexsort((sampled, np.broadcast_to(known, sampled.shape)), axis=1)
    slots = np.empty(sampled.shape, dtype=np.int64)
    np.put_along_axis(slots, order, np.arange(1, field.cars + 1)[None], axis=1)
    return slots
