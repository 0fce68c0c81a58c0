"""The outcome of a race for our car, read from its states."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from f1_pipelines.sim.engine import tyres
from f1_pipelines.sim.engine.classification import DISQUALIFIED, FINISHED, RESULT, classify_race
from f1_pipelines.sim.engine.compiled import Record, Records, compiled
from f1_pipelines.sim.engine.parameters import GREEN, INTER, SOFT, WET
from f1_pipelines.sim.engine.race import Race
from f1_pipelines.sim.engine.state import OUT_OF_FUEL, RUNNING, RaceState
from f1_pipelines.sim.engine.tables import Tables, record
from f1_pipelines.sim.scenarios import EGO

OUTCOME = record(
    "time_s "  # over the full distance, extrapolated for a lapped car; NaN if not finished
    "tyre_loss_s "  # past the cliff, wrong for the wetness, too hot or too cold
    "fuel_left_laps "  # at the flag, at race pace
    "fuel_natural_laps "  # the same, had the car been driven in mode race throughout
    "fuel_slow_laps",  # saved by a closed track
    "position",
    "finished disqualified "  # finished: and not disqualified
    "beaten_by_rival "  # False without a rival
    "ran_dry")  # coasted or stopped for lack of fuel


@dataclass(frozen=True)
class RaceOutcome:
    """The OUTCOME of one race."""

    position: int
    time_s: float
    finished: bool
    disqualified: bool
    beaten_by_rival: bool
    tyre_loss_s: float
    fuel_left_laps: float
    fuel_natural_laps: float
    fuel_slow_laps: float
    ran_dry: bool


def race_outcome(outcome: Record) -> RaceOutcome:
    """The outcome of one race, from its OUTCOME."""
    return RaceOutcome(**{f.name: outcome[f.name].item() for f in fields(RaceOutcome)})


def outcomes_of(race: Race, history: Sequence[RaceState], rivals: np.ndarray) -> np.ndarray:
    """Outcomes of a finished batch, (E,) OUTCOME.

    Args:
        race: The batch.
        history: States after each lap, lap 0 first.
        rivals: (E,) column of the car to beat, 0 for none.
    """
    outcomes, end = np.zeros(race.episodes, OUTCOME), history[-1]
    for before, after in zip(history, history[1:], strict=False):
        _add_laps(race.tables, after.lap, before.cars, before.races, after.cars, outcomes)
    _finish_batch(race.tables, end.lap, np.stack(end.line_s), history[0].cars, end.cars, rivals,
                  np.empty((1, race.cars), RESULT), outcomes)
    return outcomes


@compiled
def _add_laps(tables: Tables, lap: int, cars: Records, races: Records, new_cars: Records, outcomes: Records) -> None:
    for episode in range(len(outcomes)):
        add_lap(tables, tables.row_of[episode], lap, cars[episode, EGO], races[episode].status, new_cars[episode, EGO],
                outcomes[episode])


@compiled
def _finish_batch(tables: Tables, lap: int, lines: Records, start: Records, cars: Records, rivals: Records,
                  results: Records, outcomes: Records) -> None:
    for episode in range(len(outcomes)):
        t = tables.row_of[episode]
        finish(tables, t, lap, lines, episode, start[episode, EGO].fuel_kg, cars, episode, rivals[episode], results,
               outcomes[episode])


@compiled
def add_lap(tables: Tables, t: int, lap: int, before: Record, status: int, after: Record, outcome: Record) -> None:
    """Add what a lap cost our car.

    Args:
        tables: Tables of the batch.
        t: Row of the race in the tables.
        lap: The lap driven.
        before, after: State of our car before and after it.
        status: Track status of the lap.
        outcome: OUTCOME of the race, added to.
    """
    race, engine = tables.of_race[t], tables.engine[0]
    if lap > race.race_laps:
        return
    outcome.fuel_slow_laps += 1.0 - tables.status_effects[status].fuel
    if before.out == RUNNING:
        wetness = tables.lap_of_race[lap - tables.first - 1, t].wetness
        outcome.tyre_loss_s += tyre_loss_s(before, status, wetness, race, engine)
        outcome.ran_dry = outcome.ran_dry or ran_dry(before, status, after, race.fuel_burn)


@compiled
def tyre_loss_s(car: Record, status: int, wetness: float, race: Record, engine: Record) -> float:
    """Time that our tyres lose in the next lap by being worn out, wrong for the wetness or out of temperature [s].

    Wear before the cliff is no loss, nor is any lap behind a safety car.
    """
    if status != GREEN:
        return 0.0
    best = min(tyres.weather_s(SOFT, wetness, race), tyres.weather_s(INTER, wetness, race),
               tyres.weather_s(WET, wetness, race))
    off_window_c = max(abs(car.temp_c) - engine.temp_window_c, 0.0)
    return (tyres.cliff_s(tyres.laps_past_cliff(car, engine), engine) + off_window_c * engine.temp_loss_s_per_c
            + tyres.weather_s(car.compound, wetness, race) - best)


@compiled
def ran_dry(before: Record, status: int, after: Record, fuel_burn: float) -> bool:
    """Whether our car coasted through the lap for lack of fuel, or stopped. No mode burns as little under green."""
    used_kg = before.fuel_kg - after.fuel_kg
    coasted = status == GREEN and used_kg < 0.7 * fuel_burn and after.fuel_kg < 0.6 * fuel_burn
    return bool(coasted or after.out == OUT_OF_FUEL)


@compiled
def finish(tables: Tables, t: int, lap: int, lines: Records, row: int, start_fuel_kg: float, cars: Records,
           episode: int, rival: int, results: Records, outcome: Record) -> None:
    """Complete the outcome of a finished race.

    Args:
        tables: Tables of the batch.
        t: Row of the race in the tables.
        lap: Laps driven by the longest race of the batch.
        lines: Times at the line of each lap [s], (laps + 1, ?, N).
        row: Row of the race in `lines`.
        start_fuel_kg: Fuel of our car when the race began or was joined [kg].
        cars: Final state, (E, N) CAR_STATE.
        episode: Row of the race in `cars`.
        rival: Column of the car to beat, 0 for none.
        results: Scratch, (1, N) RESULT.
        outcome: OUTCOME of the race, completed.
    """
    race = tables.of_race[t]
    classify_race(race, lap, lines, row, cars, episode, results)
    ours, car, driven = results[0, EGO], cars[episode, EGO], race.race_laps - tables.first
    outcome.position, outcome.finished = ours.position, ours.status == FINISHED
    outcome.disqualified = ours.status == DISQUALIFIED
    outcome.beaten_by_rival = rival > 0 and results[0, rival].position < ours.position
    # A lapped car drives fewer laps to the flag; unscaled, being lapped would shorten its race time.
    outcome.time_s = ours.time_s * race.race_laps / max(ours.laps, 1)
    outcome.fuel_left_laps = car.fuel_kg / race.fuel_burn
    outcome.fuel_natural_laps = start_fuel_kg / race.fuel_burn - driven + outcome.fuel_slow_laps
    outcome.ran_dry = outcome.ran_dry or car.out == OUT_OF_FUEL
