"""What the opponents do on a lap: each follows a plan and departs from it in his own way.

plan_follower          stops on his lap; takes a closed track only within two laps of it; last to change for rain
undercutter            stops up to three laps early when he is within 2.5 s of the car ahead
safety_car_opportunist stops under any safety car or VSC while a stop is still due
rain_gambler           takes intermediates on a forecast, and slicks while the track is still damp
defender               defends against a car within a second, and covers a stop made from right behind him

In a Grand Prix whoever is worn out comes in besides. They see what a pit wall sees: the lap times of the field, the
status of the coming lap, the water of the last one.
"""
from __future__ import annotations

from functools import cache

import numpy as np

from f1_pipelines.sim.drive import DEFEND, RACE, Calls, drive_code
from f1_pipelines.sim.events import any_of
from f1_pipelines.sim.parameters import COMPOUNDS, GREEN, HARD, INTER, MEDIUM, SOFT, WET
from f1_pipelines.sim.race import Race
from f1_pipelines.sim.scenarios.grid import Plans
from f1_pipelines.sim.state import RaceState

UNDERCUTTER, OPPORTUNIST, GAMBLER, DEFENDER = 2, 3, 4, 5  # columns; 1 is the plan follower, from 6 on they repeat
KINDS = 5
# By column: wetness at which each leaves slicks (ours never on its own) and goes back to them, and how many laps before
# his own each takes a closed track for his stop, in a sprint and in a Grand Prix.
TO_INTER = (9.0, 0.32, 0.28, 0.28, 0.14, 0.30)
TO_SLICK = (-9.0, 0.15, 0.19, 0.19, 0.27, 0.17)
CLOSED_REACH = (-99, 2, 3, 99, 2, 3)
CLOSED_REACH_FULL = (-99, 4, 6, 15, 6, 6)
TO_WET, FROM_WET = 0.88, 0.70
UNDERCUT_REACH, UNDERCUT_GAP_S = 3, 2.5
COVER_REACH, COVER_GAP_S = 5, 3.0
EARLY_REACH = (0, 0, UNDERCUT_REACH, 0, 0, COVER_REACH)  # laps before his own that each may stop on a dry open track
DEFEND_GAP_S = 1.0
_DEFENDING = int(drive_code(mode=DEFEND))
_NO_STOP, _LEVEL_S, _DEFEND_GAP_S = (np.array(number) for number in (0, 0.0, DEFEND_GAP_S))  # quicker than numbers
_UNDERCUTTERS, _GAMBLERS = slice(UNDERCUTTER, None, KINDS), slice(GAMBLER, None, KINDS)


def kind_of(column: int) -> int:
    """Index into CHARACTERS of the opponent in a column: they come round again after the fifth."""
    return (column - 1) % KINDS


@cache
def _by_column(values: tuple[float, ...], cars: int) -> np.ndarray:
    """(N,) what holds for the car of each column."""
    return np.array([values[0]] + [values[1 + kind_of(k)] for k in range(1, cars)])


def wetness_now(race: Race, state: RaceState) -> np.ndarray:
    """(E,) water of the lap just driven (before the start: of the start)."""
    if state.lap == race.first:
        return np.zeros(race.episodes) + np.asarray(race.setup.start_wetness) if state.lap == 0 else race.wetness[0]
    return race.wetness[race.row(state.lap)]


def opponent_pits(race: Race, state: RaceState, plans: Plans, wetness: np.ndarray | None = None) -> np.ndarray:
    """(E, N) compound each opponent changes to at the end of the coming lap, -1 to stay out. Ours is -1.

    Args:
        wetness: (E,) of the lap just driven, where the race's own table does not hold it (a race joined under way).
    """
    lap = state.lap + 1
    plan_lap, compound, open_plan = _next_stop(plans, state)
    gambling = plans.gamble_lap == lap  # on a forecast, whether or not the rain comes
    water = race.wet or state.rain_tyres or any_of(gambling)
    soon = open_plan & (plan_lap <= lap + _by_column(EARLY_REACH, race.cars))
    if not (water or plans.full or state.any_slow or any_of(soon)):
        return _everywhere(-1, open_plan.shape)  # nobody has a reason to stop: so it is in most laps
    due = soon & (plan_lap <= lap)
    if lap >= 3:
        early = soon[:, _UNDERCUTTERS] & (state.gap_ahead_s[:, _UNDERCUTTERS] < UNDERCUT_GAP_S)
        if state.any_slow:
            slow = (state.status > GREEN)[:, None]
            early = early & ~slow
            reach = _by_column(CLOSED_REACH_FULL if plans.full else CLOSED_REACH, race.cars)
            due = due | (open_plan & slow & (state.status_age <= 2)[:, None] & (plan_lap <= lap + reach))
        if any_of(early):
            due[:, _UNDERCUTTERS] |= early
        for column in range(DEFENDER, race.cars, KINDS):
            may = soon[:, column]
            if any_of(may):
                due[:, column] |= _cover(race, state, column, may)
    left = (race.race_laps - lap)[:, None]  # after this one
    if plans.full:
        worn = worn_out(race, state, left)
        compound = np.where(worn & ~open_plan, lasting(race, state, left), compound)
        due = due | worn
    pit = np.where(due, compound, -1)
    if water:
        pit = _for_the_water(race, state, plans, wetness_now(race, state) if wetness is None else wetness, pit, left,
                             compound)
    if state.any_out:
        pit = np.where(state.out == 0, pit, -1)
    pit[:, 0] = -1
    return pit


def _everywhere(number: int, shape: tuple[int, ...]) -> np.ndarray:
    """`np.full`, at half its price."""
    array = np.empty(shape, dtype=np.int64)
    array.fill(number)
    return array


def _next_stop(plans: Plans, state: RaceState) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Lap and compound of each opponent's next planned stop, and whether there is one, (E, N) each."""
    count = len(plans.lap)
    if count == 1:
        return plans.lap[0], plans.compound[0], (state.stops == _NO_STOP) & (plans.lap[0] > _NO_STOP)
    nth = np.minimum(state.stops, count - 1)[None]
    lap, compound = np.take_along_axis(plans.lap, nth, axis=0)[0], np.take_along_axis(plans.compound, nth, axis=0)[0]
    return lap, compound, (state.stops < count) & (lap > 0)


def worn_out(race: Race, state: RaceState, left: np.ndarray) -> np.ndarray:
    """(E, N) cars whose slicks are at their end, or past what is usual, with laps to go that make a stop worth it."""
    usual = race.tyres[2].take(state.compound + race.rows5)
    return (state.compound <= HARD) & (state.wear_laps > np.minimum(usual, state.cliff_laps)) & (left > 3)


def lasting(race: Race, state: RaceState, left: np.ndarray) -> np.ndarray:
    """(E, N) the softest other slick that lasts to the flag, else the hardest other one."""
    life = race.tyres[2].reshape(-1, len(COMPOUNDS))
    fit = np.where(left < life[:, SOFT:SOFT + 1], SOFT, np.where(left < life[:, MEDIUM:MEDIUM + 1], MEDIUM, HARD))
    other = np.where(fit == HARD, MEDIUM, HARD)
    return np.where(fit == state.compound, other, fit)


def _cover(race: Race, state: RaceState, column: int, may: np.ndarray) -> np.ndarray:
    """(E,) whether a car that was right behind that defender has just stopped."""
    fresh = (state.age_laps == 0) & (state.stops > 0)
    if not any_of(fresh & may[:, None]):
        return np.zeros(len(may), dtype=bool)
    behind = state.elapsed_s - state.elapsed_s[:, column:column + 1] - race.stop_loss_s.reshape(-1, 5)[:, :1]
    return may & (fresh & (behind > -1.0) & (behind < COVER_GAP_S)).any(axis=1)


def _for_the_water(race: Race, state: RaceState, plans: Plans, wetness: np.ndarray, pit: np.ndarray,
                   left: np.ndarray, compound: np.ndarray) -> np.ndarray:
    """Changes between slicks, intermediates and wets; a plan for the dry waits while the track is wet."""
    water, slick = wetness[:, None], state.compound <= HARD
    into, out = _by_column(TO_INTER, race.cars), _by_column(TO_SLICK, race.cars)
    worth = left >= 2
    pit = np.where(slick & (water < 0.2), pit, -1)
    gamble = (plans.gamble_lap == state.lap + 1)[:, None] & slick[:, _GAMBLERS] & worth
    rain = np.where(water > TO_WET, WET, INTER)
    pit = np.where(slick & (water >= into) & worth, rain, pit)
    pit[:, _GAMBLERS] = np.where(gamble, INTER, pit[:, _GAMBLERS])
    pit = np.where((state.compound == INTER) & (water > TO_WET) & worth, WET, pit)
    pit = np.where((state.compound == WET) & (water < FROM_WET) & (water >= out) & worth, INTER, pit)
    patience = (state.age_laps >= 2) | (water < 0.05)
    back = lasting(race, state, left) if plans.full else np.where(left > 4, plans.compound[0], SOFT)
    return np.where(~slick & (water < out) & worth & patience, back, pit)


def opponent_drives(race: Race, state: RaceState) -> np.ndarray:
    """(E, N) drives: everybody races, defenders defend while somebody is within a second of them."""
    drive = _everywhere(RACE, state.elapsed_s.shape)
    for column in range(DEFENDER, race.cars, KINDS):
        gap = state.elapsed_s - state.elapsed_s[:, column:column + 1]
        near = (gap > _LEVEL_S) & (gap < _DEFEND_GAP_S)
        if any_of(near):
            drive[:, column] += (near.any(axis=1) & (state.status == GREEN)) * (_DEFENDING - RACE)
    return drive


def calls_with(race: Race, state: RaceState, plans: Plans, pit: np.ndarray | int, drive: np.ndarray | int,
               hold_gap: np.ndarray | None = None, let_by: np.ndarray | None = None,
               wetness: np.ndarray | None = None) -> Calls:
    """The calls of the whole field from ours, (E,) arrays: compound or -1, drive code, columns or -1."""
    pits, drives = opponent_pits(race, state, plans, wetness), opponent_drives(race, state)
    pits[:, 0], drives[:, 0] = pit, drive
    return Calls(pits, drives, _ours_only(hold_gap, race.cars), _ours_only(let_by, race.cars))


def _ours_only(call: np.ndarray | None, cars: int) -> np.ndarray | None:
    if call is None or not any_of(call >= 0):
        return None
    wide = np.full((len(call), cars), -1)
    wide[:, 0] = call
    return wide
