"""Who passes whom in a lap, and when each car crosses the line.

Cars are in order of place. Car k passes car j ahead when its advantage exceeds what the circuit demands at that gap,

    free_j - free_k  >  needed_k + ratio * (t_k - t_j),

which is the logistic rule of docs/physics.md#overtaking with its random draw already made (`needed_k`). With
v = ratio * t + free this reads v_k + needed_k < v_j: one number per attacker against one per defender. So a running
maximum (a car held up defends with the pace of its train) and one sort settle a whole field, and a car on the right
tyre may pass several others in a lap. A car that would then arrive too early waits behind the car in front.
"""
from __future__ import annotations

from typing import cast

import numpy as np

from f1_pipelines.sim.engine.arrays import any_of
from f1_pipelines.sim.engine.events import column_of
from f1_pipelines.sim.engine.parameters import RED, SC, VSC
from f1_pipelines.sim.engine.race import Race
from f1_pipelines.sim.engine.state import RaceState

YIELD_WITHIN_S = 2.0  # a car does not wait for one that is further behind; assumption


def follow(arrival_s: np.ndarray, spacing: np.ndarray) -> np.ndarray:
    """Times at the line when every car keeps its spacing to the car ahead, (E, N) by place.

    Args:
        arrival_s: Times at the line without other cars [s], (E, N) by place.
        spacing: Minimum gaps, summed up from first place [s], (E, N) by place.
    """
    return np.maximum(arrival_s, np.maximum.accumulate(arrival_s - spacing, axis=1) + spacing)


def racing_order(race: Race, state: RaceState, row: int, free_s: np.ndarray, loss_s: np.ndarray,
                 effects: np.ndarray | None, let_by: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Order and times at the end of a lap, before stops.

    Args:
        race: The batch.
        state: Its state before the lap.
        row: Row of the lap in the race's tables.
        free_s: Lap times in clean air [s], (E, N) by car.
        loss_s: Time that traffic adds [s], (E, N) by car.
        effects: Effects of the drives, (7, E, N); None if every car drives the default.
        let_by: As in `Calls`.

    Returns:
        Flat car index by place, and times by place [s since lights out], (E, N) each.
    """
    t, order = state.elapsed_s, state.order
    v = t * race.gap_ratio + free_s + race.unseen_s[row]
    needed, defence = race.needed_s[row], v
    if effects is not None:
        needed, defence = needed + effects[4], v - effects[5]
    attack, own = (v + needed).take(order), np.maximum.accumulate(defence.take(order), axis=1)
    arrival_s, spacing = (t + free_s + loss_s).take(order), race.follow_s[row]
    passing = attack[:, 1:] < own[:, :-1]
    if state.any_slow:
        slow = (state.status > 0)[:, None]
        arrival_s, spacing = _behind_safety_car(race, state, row, slow, arrival_s, spacing)
        passing = passing & ~slow
    if any_of(passing):
        np.copyto(own[:, 1:], attack[:, 1:], where=passing)
        new = own.argsort(axis=1, kind="stable")
        gained = race.places - new
        index = new + race.rows
        order = order.take(index)
        arrival_s = arrival_s.take(index) + race.pass_cost_s.take(gained)
    if let_by is not None and any_of(let_by >= 0):
        index = _yield(race, state, order, arrival_s, let_by)
        order, arrival_s = order.take(index), arrival_s.take(index)
    return order, follow(arrival_s, spacing)


def start_order(race: Race, state: RaceState, row: int, free_s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Order and times after lap 1 from the grid; arguments and results as in `racing_order`."""
    engine = race.engine
    order = cast("np.ndarray", race.start_key).argsort(axis=1, kind="stable") + race.rows
    # The trains of an ordinary lap, stretched: the leaders pull away, the back stays together.
    train = race.follow_s[row] / (0.5 * (engine.follow_gap_min_s + engine.follow_gap_max_s))
    train = train - train[:, :1]
    back = np.maximum(train - 5.0, 0.0)
    gap = (train - back) * engine.first_lap_gap_front_s + back * engine.first_lap_gap_back_s
    if state.any_slow:  # behind the safety car there is no race to the first corner
        slow = (state.status > 0)[:, None]
        order = np.where(slow, state.order, order)
    arrival_s = (state.elapsed_s + free_s + race.first_lap_loss).take(order)
    if state.any_slow:
        arrival_s, queue = _behind_safety_car(race, state, row, slow, arrival_s, gap)
        gap = np.where((state.status == VSC)[:, None], gap, queue)  # a VSC keeps gaps, but there are none yet
    return order, follow(arrival_s, gap)


def _yield(race: Race, state: RaceState, order: np.ndarray, arrival_s: np.ndarray, let_by: np.ndarray) -> np.ndarray:
    """Index into the places after cars let by those right behind them, (E, N)."""
    near = arrival_s[:, 1:] - arrival_s[:, :-1] < YIELD_WITHIN_S
    wants, target = (let_by >= 0).take(order)[:, :-1], column_of(race, "let_by", let_by).take(order)[:, :-1]
    swaps = wants & near & (target == order[:, 1:]) & (state.status == 0)[:, None]
    swaps[:, 1:] &= ~swaps[:, :-1]  # a car that is being let by does not let a third one by in the same lap
    shift = np.zeros(order.shape, dtype=np.int64)
    shift[:, :-1] += swaps
    shift[:, 1:] -= swaps
    return race.places + shift + race.rows


def _behind_safety_car(race: Race, state: RaceState, row: int, slow: np.ndarray, arrival_s: np.ndarray,
                       spacing: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Times and spacing in neutralised episodes: one pace for all, and behind a safety car the field closes up."""
    engine, episodes = race.engine, race.episodes
    # A neutralised lap is a multiple of a green one, fuel and used tyres included; the leader's fuel stands for all.
    lap_s = race.neutral_s[row] + race.fuel_effect * state.fuel_kg.take(state.order[:, :1])
    status = state.status[:, None]
    last = state.status_left[:, None] == 1
    kinds = len(race.slow_ratio) // 2
    kind = np.where(status == VSC, last, np.minimum(state.status_age[:, None], kinds - 2) + 1)
    flat = kind * episodes + np.arange(episodes)[:, None]
    ratio = race.places * 0.0 + race.slow_ratio.take(flat + kinds * episodes)
    ratio[:, :1] = race.slow_ratio.take(flat)
    at_line, red = state.elapsed_s.take(state.order), status == RED
    if any_of(red):
        ratio = np.where(red, ratio[:, :1], ratio)
        at_line = np.where(red, at_line[:, :1] + engine.red_stoppage_s, at_line)
    gap = np.where(status == SC, np.where(last, engine.queue_gap_last_s, engine.queue_gap_s),
                   np.where(red, engine.red_gap_s, 0.0))
    return (np.where(slow, at_line + lap_s * ratio, arrival_s), np.where(slow, race.places * gap, spacing))
