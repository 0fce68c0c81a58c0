"""What the five opponents do on a lap: each follows a plan and departs from it in his own way.

plan_follower          stops on his lap; takes a closed track only within two laps of it; last to change for rain
undercutter            stops up to three laps early when he is within 2.5 s of the car ahead
safety_car_opportunist stops under any safety car or VSC while a stop is still due
rain_gambler           takes intermediates on a forecast, and slicks while the track is still damp
defender               defends against a car within a second, and covers a stop made from right behind him

They see what a pit wall sees: the lap times of the field, the status of the coming lap, the water of the last one.
"""
from __future__ import annotations

import numpy as np

from f1_pipelines.sim.drive import DEFEND, Calls, drive_code
from f1_pipelines.sim.parameters import GREEN, HARD, INTER, SOFT, WET
from f1_pipelines.sim.race import Race
from f1_pipelines.sim.scenarios.grid import Plans
from f1_pipelines.sim.state import RaceState

UNDERCUTTER, OPPORTUNIST, GAMBLER, DEFENDER = 2, 3, 4, 5  # columns; 1 is the plan follower
TO_INTER = np.array([9.0, 0.32, 0.28, 0.28, 0.14, 0.30])  # wetness at which each leaves slicks; ours never on its own
TO_SLICK = np.array([-9.0, 0.15, 0.19, 0.19, 0.27, 0.17])
TO_WET, FROM_WET = 0.88, 0.70
CLOSED_REACH = np.array([-99, 2, 3, 99, 2, 3])  # laps before his own that each takes a closed track for his stop
UNDERCUT_REACH, UNDERCUT_GAP_S = 3, 2.5
COVER_REACH, COVER_GAP_S = 5, 3.0
DEFEND_GAP_S = 1.0
_OPPONENT = np.array([False, True, True, True, True, True])
_DEFENDING = int(drive_code(mode=DEFEND))


def wetness_now(race: Race, state: RaceState) -> np.ndarray:
    """(E,) water of the lap just driven (before the start: of the start)."""
    if state.lap == race.first:
        return np.zeros(race.episodes) + np.asarray(race.setup.start_wetness) if state.lap == 0 else race.wetness[0]
    return race.wetness[race.row(state.lap)]


def opponent_pits(race: Race, state: RaceState, plans: Plans, wetness: np.ndarray | None = None) -> np.ndarray:
    """(E, 6) compound each opponent changes to at the end of the coming lap, -1 to stay out. Ours is -1.

    Args:
        wetness: (E,) of the lap just driven, where the race's own table does not hold it (a race joined under way).
    """
    lap = state.lap + 1
    left = (race.race_laps - lap)[:, None]  # after this one
    open_plan = (state.stops == 0) & (plans.lap > 0)
    due = open_plan & (plans.lap <= lap)
    if lap >= 3:
        early = open_plan[:, UNDERCUTTER] & (plans.lap[:, UNDERCUTTER] <= lap + UNDERCUT_REACH)
        early = early & (state.gap_ahead_s[:, UNDERCUTTER] < UNDERCUT_GAP_S)
        if state.any_slow:
            slow = state.status > GREEN
            early = early & ~slow
            due = due | (open_plan & slow[:, None] & (state.status_age <= 2)[:, None]
                         & (plans.lap <= lap + CLOSED_REACH))
        due[:, UNDERCUTTER] |= early
        due[:, DEFENDER] |= _cover(race, state, open_plan[:, DEFENDER] & (plans.lap[:, DEFENDER] <= lap + COVER_REACH))
    pit = np.where(due, plans.compound, -1)
    if race.wet or state.rain_tyres:
        pit = _for_the_water(race, state, plans, wetness_now(race, state) if wetness is None else wetness, pit, left)
    return np.where(_OPPONENT & (state.out == 0), pit, -1)


def _cover(race: Race, state: RaceState, may: np.ndarray) -> np.ndarray:
    """(E,) whether a car that was right behind the defender has just stopped."""
    fresh = (state.age_laps == 0) & (state.stops > 0)
    if not (fresh & may[:, None]).any():
        return np.zeros(len(may), dtype=bool)
    behind = state.elapsed_s - state.elapsed_s[:, DEFENDER:] - race.stop_loss_s.reshape(-1, 5)[:, :1]
    return may & (fresh & (behind > -1.0) & (behind < COVER_GAP_S)).any(axis=1)


def _for_the_water(race: Race, state: RaceState, plans: Plans, wetness: np.ndarray, pit: np.ndarray,
                   left: np.ndarray) -> np.ndarray:
    """Changes between slicks, intermediates and wets; a plan for the dry waits while the track is wet."""
    water, slick = wetness[:, None], state.compound <= HARD
    worth = left >= 2
    pit = np.where(slick & (water < 0.2), pit, -1)
    gamble = (plans.gamble_lap == state.lap + 1) & slick[:, GAMBLER] & worth[:, 0]
    rain = np.where(water > TO_WET, WET, INTER)
    pit = np.where(slick & (water >= TO_INTER) & worth, rain, pit)
    pit[:, GAMBLER] = np.where(gamble, INTER, pit[:, GAMBLER])
    pit = np.where((state.compound == INTER) & (water > TO_WET) & worth, WET, pit)
    pit = np.where((state.compound == WET) & (water < FROM_WET) & (water >= TO_SLICK) & worth, INTER, pit)
    patience = (state.age_laps >= 2) | (water < 0.05)
    return np.where(~slick & (water < TO_SLICK) & worth & patience, np.where(left > 4, plans.compound, SOFT), pit)


def opponent_drives(race: Race, state: RaceState) -> np.ndarray:
    """(E, 6) drives: everybody races, the defender defends while somebody is within a second of him."""
    gap = state.elapsed_s - state.elapsed_s[:, DEFENDER:]
    pressed = ((gap > 0) & (gap < DEFEND_GAP_S)).any(axis=1)
    drive = np.ones(gap.shape, dtype=np.int64)
    drive[:, DEFENDER] += (pressed & (state.status == GREEN)) * (_DEFENDING - 1)
    return drive


def calls_with(race: Race, state: RaceState, plans: Plans, pit: np.ndarray | int, drive: np.ndarray | int,
               hold_gap: np.ndarray | None = None, let_by: np.ndarray | None = None,
               wetness: np.ndarray | None = None) -> Calls:
    """The calls of the whole field from ours, (E,) arrays: compound or -1, drive code, columns or -1."""
    pits, drives = opponent_pits(race, state, plans, wetness), opponent_drives(race, state)
    pits[:, 0], drives[:, 0] = pit, drive
    return Calls(pits, drives, _ours_only(hold_gap), _ours_only(let_by))


def _ours_only(call: np.ndarray | None) -> np.ndarray | None:
    if call is None or not (call >= 0).any():
        return None
    wide = np.full((len(call), 6), -1)
    wide[:, 0] = call
    return wide
