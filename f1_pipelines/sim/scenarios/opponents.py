"""The calls of the opponents: each follows a plan and departs from it by its character.

plan_follower          stops on its planned lap; uses a closed track only within two laps of it; last to change for rain
undercutter            stops up to three laps early when within 2.5 s of the car ahead
safety_car_opportunist stops under any safety car or VSC while a stop is still due
rain_gambler           takes intermediates on a forecast, and slicks while the track is still damp
defender               defends against a car within a second, and covers a stop made from right behind

In a Grand Prix a car on worn tyres stops as well. Opponents see what a pit wall sees: the lap times of the field, the
status of the coming lap, the wetness of the last one.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from f1_pipelines.sim.engine.arrays import any_of, filled
from f1_pipelines.sim.engine.drive import DEFAULT_DRIVE, DEFEND, Calls, drive_code
from f1_pipelines.sim.engine.parameters import COMPOUNDS, GREEN, HARD, INTER, MEDIUM, SOFT, WET
from f1_pipelines.sim.engine.race import Race
from f1_pipelines.sim.engine.state import RaceState
from f1_pipelines.sim.scenarios.plans import DEFENDER, GAMBLER, KINDS, NEVER, UNDERCUTTER, OpponentPlans, by_column

# By column: wetness at which a car leaves slicks and returns to them; laps before the planned one from which it uses a
# closed track to stop, in a sprint and in a Grand Prix. The first value, of our car, rules such calls out.
TO_INTER = (9.0, 0.32, 0.28, 0.28, 0.14, 0.30)
TO_SLICK = (-9.0, 0.15, 0.19, 0.19, 0.27, 0.17)
CLOSED_REACH = (-99, 2, 3, 99, 2, 3)
CLOSED_REACH_FULL = (-99, 4, 6, 15, 6, 6)
TO_WET, FROM_WET = 0.88, 0.70
LEAST_WATER = min(TO_INTER[1:])  # below it no opponent reacts
UNDERCUT_GAP_S, COVER_GAP_S, DEFEND_GAP_S = 2.5, 3.0, 1.0
COVER_REACH = 5  # laps before the planned one from which a defender covers a stop
_DEFENDING = int(drive_code(mode=DEFEND))
_LEVEL_S, _DEFEND_GAP_S = np.array(0.0), np.array(DEFEND_GAP_S)  # faster than Python numbers
_UNDERCUTTERS, _GAMBLERS = slice(UNDERCUTTER, None, KINDS), slice(GAMBLER, None, KINDS)


def wetness_now(race: Race, state: RaceState) -> np.ndarray:
    """Wetness of the lap just driven, before the first lap that of the start, (E,)."""
    if state.lap == race.first:
        return np.zeros(race.episodes) + np.asarray(race.setup.start_wetness) if state.lap == 0 else race.wetness[0]
    return race.wetness[race.row(state.lap)]


def opponent_pits(race: Race, state: RaceState, plans: OpponentPlans,
                  wetness: np.ndarray | None = None) -> np.ndarray | None:
    """Compound that each opponent changes to at the end of the coming lap, -1 to stay out, (E, N); ignore column 0.

    Args:
        race: The batch.
        state: Its state before the lap.
        plans: The opponents' plans.
        wetness: Wetness of the lap just driven, (E,), where the race's own table lacks it (a race joined under way).

    Returns:
        The calls, or None if no opponent has a reason to stop, as in most laps.
    """
    if race.cars == 1:
        return None
    lap = state.lap + 1
    water = race.wet or state.rain_tyres or lap in plans.gambles
    covering = state.last_stop == state.lap and lap >= 3  # a stop was just made
    plan_lap, compound, earliest, quiet_until = plans.open_stops(state.stops)
    if lap < quiet_until and not (water or plans.full or state.any_slow or covering):
        return None
    due = plan_lap <= lap
    if lap >= 3:
        early = earliest[:, _UNDERCUTTERS] <= lap
        if any_of(early):
            early &= state.gap_ahead_s[:, _UNDERCUTTERS] < UNDERCUT_GAP_S
        if state.any_slow:
            slow = (state.status > GREEN)[:, None]
            early &= ~slow
            reach = by_column(CLOSED_REACH_FULL if plans.full else CLOSED_REACH, race.cars)
            due = due | (slow & (state.status_age <= 2)[:, None] & (plan_lap <= lap + reach))
        if any_of(early):
            due[:, _UNDERCUTTERS] |= early
        for column in range(DEFENDER, race.cars, KINDS) if covering else ():
            may = plan_lap[:, column] <= lap + COVER_REACH
            if any_of(may):
                due[:, column] |= _covers_stop(race, state, column, may)
    if not (water or plans.full or any_of(due)):
        return None
    left: Any = (race.race_laps - lap)[:, None] if water or plans.full else None  # laps after this one
    if plans.full:
        worn = worn_out(race, state, left)
        if any_of(worn):
            compound = np.where(worn & (plan_lap == NEVER), lasting(race, state, left), compound)
            due = due | worn
    pit = np.where(due, compound, -1)
    if water:
        pit = _rain_pits(race, state, plans, wetness_now(race, state) if wetness is None else wetness, pit, left,
                             compound)
    if state.any_out:
        pit = np.where(state.out == 0, pit, -1)
    return pit


def worn_out(race: Race, state: RaceState, left: np.ndarray) -> np.ndarray:
    """Cars on slicks past their usual or actual cliff, with enough laps to go to make a stop pay, (E, N) bool."""
    usual = race.tyres[2].take(state.compound + race.rows5)
    return (state.compound <= HARD) & (state.wear_laps > np.minimum(usual, state.cliff_laps)) & (left > 3)


def lasting(race: Race, state: RaceState, left: np.ndarray) -> np.ndarray:
    """The softest other slick that lasts to the flag, else the hardest other one, (E, N)."""
    life = race.tyres[2].reshape(-1, len(COMPOUNDS))
    fit = np.where(left < life[:, SOFT:SOFT + 1], SOFT, np.where(left < life[:, MEDIUM:MEDIUM + 1], MEDIUM, HARD))
    other = np.where(fit == HARD, MEDIUM, HARD)
    return np.where(fit == state.compound, other, fit)


def _covers_stop(race: Race, state: RaceState, column: int, may: np.ndarray) -> np.ndarray:
    """Whether a car from right behind the defender in this column has just stopped, (E,) bool."""
    fresh = (state.age_laps == 0) & (state.stops > 0)
    if not any_of(fresh & may[:, None]):
        return np.zeros(len(may), dtype=bool)
    behind = state.elapsed_s - state.elapsed_s[:, column:column + 1] - race.stop_loss_s.reshape(-1, 5)[:, :1]
    return may & (fresh & (behind > -1.0) & (behind < COVER_GAP_S)).any(axis=1)


def _rain_pits(race: Race, state: RaceState, plans: OpponentPlans, wetness: np.ndarray, pit: np.ndarray,
                   left: np.ndarray, compound: np.ndarray) -> np.ndarray:
    """Add changes between slicks, intermediates and wets; on a wet track planned stops wait."""
    gambling = state.lap + 1 in plans.gambles
    if not (state.rain_tyres or gambling or any_of(wetness >= LEAST_WATER)):
        return pit  # no rain yet
    water, slick = wetness[:, None], state.compound <= HARD
    into, out = by_column(TO_INTER, race.cars), by_column(TO_SLICK, race.cars)
    worth = left >= 2
    pit = np.where(slick & (water < 0.2), pit, -1)
    rain = np.where(water > TO_WET, WET, INTER)
    pit = np.where(slick & (water >= into) & worth, rain, pit)
    if gambling:
        gamble = (plans.gamble_lap == state.lap + 1)[:, None] & slick[:, _GAMBLERS] & worth
        pit[:, _GAMBLERS] = np.where(gamble, INTER, pit[:, _GAMBLERS])
    if not state.rain_tyres:
        return pit
    pit = np.where((state.compound == INTER) & (water > TO_WET) & worth, WET, pit)
    pit = np.where((state.compound == WET) & (water < FROM_WET) & (water >= out) & worth, INTER, pit)
    patience = (state.age_laps >= 2) | (water < 0.05)
    back = lasting(race, state, left) if plans.full else np.where(left > 4, plans.compound[0], SOFT)
    return np.where(~slick & (water < out) & worth & patience, back, pit)


def opponent_drives(race: Race, state: RaceState) -> np.ndarray | None:
    """Drives of the opponents, (E, N): defenders defend while a car is within a second; None if no one defends."""
    drive = None
    for column in range(DEFENDER, race.cars, KINDS):
        gap = state.elapsed_s - state.elapsed_s[:, column:column + 1]
        near = (gap > _LEVEL_S) & (gap < _DEFEND_GAP_S)
        if any_of(near):
            drive = filled(DEFAULT_DRIVE, gap.shape) if drive is None else drive
            drive[:, column] += (near.any(axis=1) & (state.status == GREEN)) * (_DEFENDING - DEFAULT_DRIVE)
    return drive


def calls_with(race: Race, state: RaceState, plans: OpponentPlans, pit: np.ndarray | int, drive: np.ndarray | int,
               hold_gap: np.ndarray | None = None, let_by: np.ndarray | None = None,
               wetness: np.ndarray | None = None) -> Calls:
    """The calls of the whole field: the opponents' and ours.

    Args:
        race: The batch.
        state: Its state before the lap.
        plans: The opponents' plans.
        pit: Our compound to change to, -1 to stay out, (E,).
        drive: Our drive code, (E,).
        hold_gap: Column of the car that ours holds a gap to, -1 for none, (E,).
        let_by: Column of the car that ours lets by, -1 for none, (E,).
        wetness: As in `opponent_pits`.
    """
    pits = _with_ours(opponent_pits(race, state, plans, wetness), pit, -1, state)
    drives = _with_ours(opponent_drives(race, state), drive, DEFAULT_DRIVE, state)
    if drives is None and not state.plain:
        drives = filled(DEFAULT_DRIVE, state.order.shape)
    if hold_gap is let_by is None:
        return Calls(pits, drives)
    return Calls(pits, drives, _our_column(hold_gap, race.cars), _our_column(let_by, race.cars))


def _with_ours(calls: np.ndarray | None, ours: np.ndarray | int, nothing: int, state: RaceState) -> np.ndarray | None:
    """Put our call into those of the field; None if every car's is `nothing`."""
    if calls is None:
        if ours == nothing if isinstance(ours, int) else not any_of(ours != nothing):
            return None
        calls = filled(nothing, state.order.shape)
    calls[:, 0] = ours
    return calls


def _our_column(call: np.ndarray | None, cars: int) -> np.ndarray | None:
    if call is None or not any_of(call >= 0):
        return None
    wide = np.full((len(call), cars), -1)
    wide[:, 0] = call
    return wide
