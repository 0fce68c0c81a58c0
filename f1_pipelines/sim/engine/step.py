"""Every race of a batch lap by lap: `step(race, state, calls) -> state`, `run(race, policy)`."""
from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Literal, overload

import numpy as np

from f1_pipelines.sim.engine.compiled import Records, compiled
from f1_pipelines.sim.engine.drive import NO_CALLS, Calls
from f1_pipelines.sim.engine.lap import CALL, CAR_LAP, NO_CALL, drive_lap
from f1_pipelines.sim.engine.parameters import WET
from f1_pipelines.sim.engine.race import Race, prepare
from f1_pipelines.sim.engine.setup import RaceSetup
from f1_pipelines.sim.engine.state import RaceState, new_state
from f1_pipelines.sim.engine.tables import Tables
from f1_pipelines.sim.engine.traffic import LINE

ENGINE_VERSION = 2  # raised by every change that moves a race; datasets and evaluations record it

Policy = Callable[[Race, RaceState], Calls]


class RaceOver(RuntimeError):
    """The longest race of the batch is over: no lap is left to drive."""


class BadCall(ValueError):
    """A call that names no compound or no car of the race: unchecked, it would be read from another place."""


def step(race: Race, state: RaceState, calls: Calls = NO_CALLS) -> RaceState:
    """Drive the next lap. Does not change `state`.

    Raises:
        RaceOver: All races of the batch are over.
        BadCall: A call is out of range.
    """
    return next_state(race, state, call_records(race, calls), np.empty((1, race.cars), CAR_LAP))


def step_with_effects(race: Race, state: RaceState, calls: Calls = NO_CALLS) -> tuple[RaceState, np.ndarray]:
    """As `step`, with the effects that made up the lap, (E, N) CAR_LAP; zeros where a race is over."""
    effects = np.zeros((race.episodes, race.cars), CAR_LAP)
    return next_state(race, state, call_records(race, calls), effects), effects


def next_state(race: Race, state: RaceState, calls: np.ndarray, laps: np.ndarray) -> RaceState:
    """Drive the next lap with calls that are (E, N) CALL. `laps` is filled: (E, N) CAR_LAP, or (1, N).

    Raises:
        RaceOver: All races of the batch are over.
    """
    if state.lap >= race.laps:
        raise RaceOver(f"the race is over after {race.laps} laps; this state is after lap {state.lap}.")
    cars, races = np.empty_like(state.cars), np.empty_like(state.races)
    _drive_batch(race.tables, state.lap + 1, state.cars, state.races, calls, laps, np.empty(race.cars, LINE), cars,
                 races)
    return RaceState(state.lap + 1, cars, races, (*state.line_s, cars["elapsed_s"].copy()))


@compiled
def _drive_batch(tables: Tables, lap: int, cars: Records, races: Records, calls: Records, laps: Records,
                 line: Records, new_cars: Records, new_races: Records) -> None:
    for episode in range(len(cars)):
        drive_lap(tables, tables.row_of[episode], lap, cars, races, episode, calls, laps, line, new_cars, new_races)


def call_records(race: Race, calls: Calls) -> np.ndarray:
    """Calls as records, (E, N) CALL.

    Raises:
        BadCall: A call is out of range.
    """
    records = _no_calls(race.episodes, race.cars)
    if all(call is None for call in calls):
        return records
    records = records.copy()
    for name, most in (("pit", WET), ("drive", 255), ("hold_gap", race.cars - 1), ("let_by", race.cars - 1)):
        call = getattr(calls, name)
        if call is None:
            continue
        if np.max(call) > most:
            what = f"compound {np.max(call)}; wanted -1 (stay out)" if name == "pit" else \
                f"code {np.max(call)}; wanted 0" if name == "drive" else f"column {np.max(call)}; wanted -1 (none)"
            raise BadCall(f"{name} names {what} to {most}.")
        records[name] = call
    return records


@lru_cache(maxsize=16)
def _no_calls(episodes: int, cars: int) -> np.ndarray:
    """(E, N) CALL without any call; not to be written to."""
    return np.full((episodes, cars), np.array(NO_CALL, CALL))


@overload
def run(race: Race | RaceSetup, policy: Policy | None = None, record: Literal[False] = False) -> RaceState: ...
@overload
def run(race: Race | RaceSetup, policy: Policy | None = None, *, record: Literal[True]) -> list[RaceState]: ...


def run(race: Race | RaceSetup, policy: Policy | None = None, record: bool = False) -> RaceState | list[RaceState]:
    """Drive whole races.

    Args:
        race: A batch, or a setup to prepare.
        policy: Returns the calls of each lap; None for no calls.
        record: Return the states of all laps, that before the start first, not just the final one.
    """
    race = race if isinstance(race, Race) else prepare(race)
    state = new_state(race)
    history = [state]
    while state.lap < race.laps:
        state = step(race, state, NO_CALLS if policy is None else policy(race, state))
        if record:
            history.append(state)
    return history if record else state
