"""The calls of the opponents: each follows a plan and departs from it by its character.

plan_follower          stops on its planned lap; uses a closed track only within two laps of it; last to change for rain
undercutter            stops up to three laps early when within 2.5 s of the car ahead
safety_car_opportunist stops under any safety car or VSC while a stop is still due
rain_gambler           takes intermediates on a forecast, and slicks while the track is still damp
defender               defends against a car within a second, and covers a stop made from right behind

In a Grand Prix a car on worn tyres stops as well. Opponents see what a pit wall sees: the lap times of the field, the
status of the coming lap, the wetness of the last call.
"""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from f1_pipelines.sim.engine.compiled import Record, Records, compiled
from f1_pipelines.sim.engine.drive import DEFAULT_DRIVE, DEFEND, drive_code
from f1_pipelines.sim.engine.lap import CALL, CAR_LAP, drive_lap
from f1_pipelines.sim.engine.parameters import GREEN, HARD, INTER, MEDIUM, SOFT, WET
from f1_pipelines.sim.engine.race import Race
from f1_pipelines.sim.engine.state import CAR_STATE, RACE_STATE, RUNNING, RaceState, copy_car, copy_race
from f1_pipelines.sim.engine.tables import Tables
from f1_pipelines.sim.engine.traffic import LINE
from f1_pipelines.sim.scenarios.plans import (
    DEFENDER,
    GAMBLER,
    NEVER,
    UNDERCUTTER,
    OpponentPlans,
    PlanTables,
    kind_of,
)

# By character: wetness at which a car leaves slicks and returns to them; laps before the planned one from which it uses
# a closed track to stop, in a sprint and in a Grand Prix.
TO_INTER = (0.32, 0.28, 0.28, 0.14, 0.30)
TO_SLICK = (0.15, 0.19, 0.19, 0.27, 0.17)
CLOSED_REACH = (2, 3, 99, 2, 3)
CLOSED_REACH_FULL = (4, 6, 15, 6, 6)
TO_WET, FROM_WET = 0.88, 0.70
UNDERCUT_REACH = 3  # laps before the planned one from which an undercutter may stop
UNDERCUT_GAP_S, COVER_GAP_S, DEFEND_GAP_S = 2.5, 3.0, 1.0
COVER_REACH = 5  # laps before the planned one from which a defender covers a stop
FIRST_REACTION = 3  # lap from which opponents react to others and to a closed track
_DEFENDING = int(drive_code(mode=DEFEND))
_UNDERCUTTER, _GAMBLER, _DEFENDER = UNDERCUTTER - 1, GAMBLER - 1, DEFENDER - 1  # as `kind_of`


def step_field(race: Race, state: RaceState, plans: OpponentPlans, ours: np.ndarray,
               memory: tuple[np.ndarray, np.ndarray] | None = None) -> RaceState:
    """Drive the next lap with our calls (E,) CALL and those of the opponents. Does not change `state`.

    `memory`: where the new state is written, (E, N) CAR_STATE and (E,) RACE_STATE; None for new arrays.
    """
    cars, races = memory or (np.empty_like(state.cars), np.empty_like(state.races))
    _drive_field(race.tables, plans.tables, state.lap + 1, state.cars, state.races, ours,
                 np.empty((1, race.cars), CALL), np.empty((1, race.cars), CAR_LAP), np.empty(race.cars, LINE), cars,
                 races)
    line_s = cars["elapsed_s"] if memory else cars["elapsed_s"].copy()  # a view keeps all of the state alive
    return RaceState(state.lap + 1, cars, races, (*state.line_s, line_s))


class RaceLog(NamedTuple):
    """One race of the whole field by lap, and scratch to drive it."""

    cars: np.ndarray  # (L, N) CAR_STATE before each lap
    races: np.ndarray  # (L,) RACE_STATE before each lap
    new_cars: np.ndarray  # (L, N) after each lap: the same memory, one lap later
    new_races: np.ndarray  # (L,)
    ours: np.ndarray  # (L,) CALL of our car
    calls: np.ndarray  # (1, N) CALL
    laps: np.ndarray  # (1, N) CAR_LAP
    line: np.ndarray  # (N,) LINE


def race_log(laps: int, cars: int) -> RaceLog:
    """A log for races of this many laps and cars, to be filled by `begin_log` and `drive_logged`."""
    states, races = np.empty((laps + 1, cars), CAR_STATE), np.empty(laps + 1, RACE_STATE)
    return RaceLog(states[:-1], races[:-1], states[1:], races[1:], np.empty(laps, CALL), np.empty((1, cars), CALL),
                   np.empty((1, cars), CAR_LAP), np.empty(cars, LINE))


@compiled
def begin_log(log: RaceLog, cars: Records, races: Records, episode: int) -> None:
    """Begin a race in the state in row `episode` of `cars` and `races`."""
    for k in range(cars.shape[1]):
        copy_car(cars[episode, k], log.cars[0, k])
    copy_race(races[episode], log.races[0])


@compiled
def drive_logged(tables: Tables, t: int, plans: PlanTables, p: int, row: int, wetness: float, log: RaceLog) -> None:
    """Drive lap `row` of a log, from 0, with our call in it; other arguments as in `fill_calls`."""
    lap = tables.first + row + 1
    fill_calls(tables, t, plans, p, lap, log.cars, log.races, row, wetness, log.ours[row], log.calls)
    drive_lap(tables, t, lap, log.cars, log.races, row, log.calls, log.laps, log.line, log.new_cars, log.new_races)


@compiled
def _drive_field(tables: Tables, plans: PlanTables, lap: int, cars: Records, races: Records, ours: Records,
                 calls: Records, laps: Records, line: Records, new_cars: Records, new_races: Records) -> None:
    for episode in range(len(cars)):
        t = tables.row_of[episode]
        fill_calls(tables, t, plans, plans.row_of[episode], lap, cars, races, episode, last_wetness(tables, t, lap),
                   ours[episode], calls)
        drive_lap(tables, t, lap, cars, races, episode, calls, laps, line, new_cars, new_races)


@compiled
def last_wetness(tables: Tables, t: int, lap: int) -> float:
    """Wetness of the lap before `lap`; before the first lap that of the start."""
    row = lap - tables.first - 2
    if lap == 1:
        return float(tables.of_race[t].start_wetness)
    return float(tables.lap_of_race[max(row, 0), t].wetness)


def wetness_now(race: Race, state: RaceState) -> np.ndarray:
    """Wetness of the lap just driven, before the first lap that of the start, (E,)."""
    if state.lap == 0:
        return race.of_race("start_wetness")
    return race.of_lap("wetness", max(state.lap, race.first + 1))


@compiled
def fill_calls(tables: Tables, t: int, plans: PlanTables, p: int, lap: int, cars: Records, races: Records,
               episode: int, wetness: float, ours: Record, calls: Records) -> None:
    """Fill the calls of a race.

    Args:
        tables: Tables of the batch.
        t: Row of the race in the tables.
        plans: The opponents' plans.
        p: Row of the race in the plans.
        lap: The coming lap.
        cars, races: State before the lap.
        episode: Row of the race in the states.
        wetness: Wetness of the lap just driven, as the pit walls saw it.
        ours: Our call.
        calls: Filled, (E, N) CALL, or (1, N).
    """
    at = episode % len(calls)
    own = calls[at, 0]
    own.pit, own.drive, own.hold_gap, own.let_by = ours.pit, ours.drive, ours.hold_gap, ours.let_by
    for k in range(1, cars.shape[1]):
        call = calls[at, k]
        call.hold_gap = call.let_by = -1
        kind = kind_of(k)
        call.pit = _stop(tables, t, plans, p, lap, cars, races[episode], episode, k, kind, wetness)
        defends = (kind == _DEFENDER and races[episode].status == GREEN
                   and _car_behind(cars, episode, k, DEFEND_GAP_S))
        call.drive = _DEFENDING if defends else DEFAULT_DRIVE


@compiled
def _stop(tables: Tables, t: int, plans: PlanTables, p: int, lap: int, cars: Records, race_state: Record,
          episode: int, k: int, kind: int, wetness: float) -> int:
    """Compound that an opponent changes to at the end of the coming lap, -1 to stay out."""
    car, left = cars[episode, k], tables.of_race[t].race_laps - lap  # laps after this one
    if car.out != RUNNING:
        return -1
    nth = min(car.stops, len(plans.lap) - 1)
    planned = plans.lap[nth, p, k] if car.stops < len(plans.lap) else NEVER
    compound = plans.compound[nth, p, k]
    due = planned <= lap or (lap >= FIRST_REACTION and _departs(
        tables, t, plans.full, lap, cars, race_state, episode, k, kind, planned))
    if plans.full and worn_out(car, tables.tyres[t, car.compound], left):
        if planned == NEVER:
            compound = lasting_slick(tables, t, car.compound, left)
        due = True
    pit = compound if due and car.compound <= HARD and wetness < 0.2 else -1  # on a wet track planned stops wait
    if left < 2:
        return pit
    if car.compound <= HARD:
        if plans.gamble_lap[p] == lap and kind == _GAMBLER:
            return INTER
        return rain_tyre(wetness) if wetness >= TO_INTER[kind] else pit
    if wetness < TO_SLICK[kind] and (car.age_laps >= 2 or wetness < 0.05):
        if plans.full:
            return lasting_slick(tables, t, car.compound, left)
        return plans.compound[0, p, k] if left > 4 else SOFT
    if car.compound == INTER and wetness > TO_WET:
        return WET
    if car.compound == WET and TO_SLICK[kind] <= wetness < FROM_WET:
        return INTER
    return pit


@compiled
def rain_tyre(wetness: float) -> int:
    """The rain tyre for this much water."""
    return WET if wetness > TO_WET else INTER


@compiled
def _departs(tables: Tables, t: int, full: bool, lap: int, cars: Records, race_state: Record, episode: int, k: int,
             kind: int, planned: int) -> bool:
    """Whether an opponent stops before its planned lap: on a closed track, for an undercut, or to cover a stop."""
    if race_state.status > GREEN:
        reach = CLOSED_REACH_FULL[kind] if full else CLOSED_REACH[kind]
        if race_state.status_age <= 2 and planned <= lap + reach:
            return True
    elif kind == _UNDERCUTTER:
        return planned - UNDERCUT_REACH <= lap and cars[episode, k].gap_ahead_s < UNDERCUT_GAP_S
    return kind == _DEFENDER and planned <= lap + COVER_REACH and _stopped_behind(
        cars, episode, k, tables.stop_loss_s[t, GREEN])


@compiled
def _stopped_behind(cars: Records, episode: int, k: int, stop_loss_s: float) -> bool:
    """Whether a car from right behind the one in column k has just stopped."""
    for other in range(cars.shape[1]):
        car = cars[episode, other]
        if car.age_laps == 0 and car.stops > 0:
            behind_s = car.elapsed_s - cars[episode, k].elapsed_s - stop_loss_s
            if -1.0 < behind_s < COVER_GAP_S:
                return True
    return False


@compiled
def _car_behind(cars: Records, episode: int, k: int, within_s: float) -> bool:
    """Whether a car is behind the one in column k, by less than `within_s`."""
    for other in range(cars.shape[1]):
        if 0.0 < cars[episode, other].elapsed_s - cars[episode, k].elapsed_s < within_s:
            return True
    return False


@compiled
def worn_out(car: Record, tyre: Record, left: int) -> bool:
    """Whether a car is on slicks past their usual or actual cliff, with enough laps to go to make a stop pay."""
    return bool(car.compound <= HARD and car.wear_laps > min(tyre.cliff_laps, car.cliff_laps) and left > 3)


@compiled
def lasting_slick(tables: Tables, t: int, compound: int, left: int) -> int:
    """The softest other slick that lasts to the flag, else the hardest other call."""
    fit = SOFT if left < tables.tyres[t, SOFT].cliff_laps else MEDIUM if left < tables.tyres[
        t, MEDIUM].cliff_laps else HARD
    if fit == compound:
        return MEDIUM if fit == HARD else HARD
    return fit
