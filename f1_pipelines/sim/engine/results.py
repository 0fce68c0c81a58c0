"""The classification of a race, its consistency checks, and the parts of a lap time."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from f1_pipelines.sim.engine.classification import DISQUALIFIED, FINISHED, RESULT, RETIRED, classify_race
from f1_pipelines.sim.engine.compiled import Records, compiled
from f1_pipelines.sim.engine.drive import NO_CALLS, Calls
from f1_pipelines.sim.engine.race import Race
from f1_pipelines.sim.engine.state import RUNNING, RaceState
from f1_pipelines.sim.engine.step import step_with_effects
from f1_pipelines.sim.engine.tables import Tables

__all__ = ["DISQUALIFIED", "FINISHED", "RETIRED", "Classification", "check_race", "classify", "explain"]


@dataclass(frozen=True, eq=False)
class Classification:
    """(E, N) by car column."""

    position: np.ndarray  # 1 .. N: finishers, then retired cars by distance, then disqualified ones
    laps: np.ndarray  # laps completed; lapped cars finish on the leader's last lap
    time_s: np.ndarray  # race time over these laps, NaN for cars that did not reach the flag
    status: np.ndarray  # FINISHED, RETIRED, DISQUALIFIED
    classified: np.ndarray  # bool: finished, or 90 % of the winner's distance and not disqualified


def classify(race: Race, state: RaceState) -> Classification:
    """Classify finished races; a race under way gets its current order."""
    results = np.empty(state.cars.shape, RESULT)
    _classify_batch(race.tables, state.lap, np.stack(state.line_s), state.cars, results)
    return Classification(results["position"], results["laps"], results["time_s"], results["status"],
                          results["classified"])


@compiled
def _classify_batch(tables: Tables, lap: int, lines: Records, cars: Records, results: Records) -> None:
    for episode in range(len(cars)):
        race = tables.of_race[tables.row_of[episode]]
        classify_race(race, lap, lines, episode, cars, episode, results)


def check_race(race: Race, history: list[RaceState]) -> list[str]:
    """List the faults of a recorded batch; none if it is consistent."""
    faults = []
    for before, after in zip(history, history[1:], strict=False):
        if not (np.sort(after.position, axis=1) == np.arange(1, race.cars + 1)).all():
            faults.append(f"lap {after.lap}: positions are not 1..{race.cars}")
        both = after.running & (before.lap < race.race_laps)[:, None]
        if not (np.where(both, after.elapsed_s - before.elapsed_s, 1.0) > 0).all():
            faults.append(f"lap {after.lap}: a lap took no time")
        if not ((after.out != RUNNING) >= (before.out != RUNNING)).all():
            faults.append(f"lap {after.lap}: a retired car drives again")
    end = history[-1]
    if not all((line == state.elapsed_s).all() for line, state in zip(end.line_s, history, strict=True)):
        faults.append("lap times do not sum up to the race time")
    result = classify(race, end)
    if not (np.sort(result.position, axis=1) == np.arange(1, race.cars + 1)).all():
        faults.append(f"the classification is not 1..{race.cars}")
    if (result.laps > race.race_laps[:, None]).any():
        faults.append("a car drove more than the race distance")
    return faults


def explain(race: Race, state: RaceState, calls: Calls = NO_CALLS) -> dict[str, np.ndarray]:
    """Split the coming lap's time into effects by name [s], (E, N) each; their sum is the lap time.

    `held_up` is the cost of following, passing and being passed (in lap 1 of the start, too). In a neutralised episode
    `track_status` holds everything beyond the circuit. Retired cars get zeros.
    """
    after, lap = step_with_effects(race, state, calls)
    setup, row, at = race.setup, race.row(state.lap + 1), race.tables.row_of
    noise = race.tables.lap_of_car["noise_s"][row, at]
    effects = {"circuit": np.broadcast_to(race.of_lap("circuit_s", state.lap + 1)[:, None], noise.shape),
               "car": np.broadcast_to(setup.car_pace_s, noise.shape),
               "driver": np.broadcast_to(setup.driver_pace_s, noise.shape), "noise": noise,
               **{name: lap[name] for name in (*CLEAN, "dirty_air")}}
    slow = (state.status > 0)[:, None]
    for name in list(effects)[1:]:
        effects[name] = np.where(slow, 0.0, effects[name])
    rest = lap["at_line_s"] - state.elapsed_s - sum(effects.values())
    effects["held_up"], effects["track_status"] = np.where(slow, 0.0, rest), np.where(slow, rest, 0.0)
    effects.update({name: lap[name] for name in ("incident", "stop")})
    drives = after.running & (state.lap < race.race_laps)[:, None]
    return {name: np.where(drives, effect, 0.0) for name, effect in effects.items()}


CLEAN = ("compound", "wear", "fuel", "mode", "temperature", "fresh", "cliff", "weather", "hold_gap")
