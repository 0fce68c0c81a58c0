"""Who passes whom in a lap, and how late the others come round.

Cars are taken by place. Car k gets by car j ahead when its advantage exceeds what the circuit asks at that gap,

    free_j - free_k  >  needed_k + ratio * (t_k - t_j),

which is the logistic rule of docs/physics.md#overtaking with its coin already thrown (`needed_k`). With
v = ratio * t + free this reads v_k + needed_k < v_j: one number per attacker against one per defender, so a whole field
is settled by a running maximum (a car held up defends with the pace of the train it sits in) and one sort, and a car on
the right tyre may pass several others in a lap. Whoever then arrives too early waits behind the car in front.
"""
from __future__ import annotations

from typing import cast

import numpy as np

from f1_pipelines.sim.engine.arrays import any_of
from f1_pipelines.sim.engine.events import column_of
from f1_pipelines.sim.engine.parameters import RED, SC, VSC
from f1_pipelines.sim.engine.race import Race
from f1_pipelines.sim.engine.state import RaceState

YIELD_WITHIN_S = 2.0  # a car that would come round later than this is not waited for; assumption


def follow(cand: np.ndarray, spacing: np.ndarray) -> np.ndarray:
    """Times at the line when nobody may come within the spacing of the car ahead. By place, (E, N) both.

    Args:
        cand: Times the cars would have alone [s].
        spacing: Least gaps, summed up from the first place on [s].
    """
    return np.maximum(cand, np.maximum.accumulate(cand - spacing, axis=1) + spacing)


def racing_order(race: Race, state: RaceState, row: int, free_s: np.ndarray, loss_s: np.ndarray,
                 effects: np.ndarray | None, let_by: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Order and times at the end of a lap, stops not yet counted.

    Args:
        row: Row of the lap in the race's tables.
        free_s: Lap times in clean air, (E, N) by car; `loss_s` what traffic adds.
        effects: (7, E, N) what each car's drive does; None: everybody just races.
        let_by: As in `Calls`.

    Returns:
        order (E, N) flat car index by place, times (E, N) by place [s since lights out].
    """
    t, order = state.elapsed_s, state.order
    v = t * race.gap_ratio + free_s + race.unseen_s[row]
    needed, defence = race.needed_s[row], v
    if effects is not None:
        needed, defence = needed + effects[4], v - effects[5]
    attack, own = (v + needed).take(order), np.maximum.accumulate(defence.take(order), axis=1)
    cand, spacing = (t + free_s + loss_s).take(order), race.follow_s[row]
    passing = attack[:, 1:] < own[:, :-1]
    if state.any_slow:
        slow = (state.status > 0)[:, None]
        cand, spacing = _behind_safety_car(race, state, row, slow, cand, spacing)
        passing = passing & ~slow
    if any_of(passing):
        np.copyto(own[:, 1:], attack[:, 1:], where=passing)
        new = own.argsort(axis=1, kind="stable")
        gained = race.places - new
        index = new + race.rows
        order = order.take(index)
        cand = cand.take(index) + race.pass_cost_s.take(gained)
    if let_by is not None and any_of(let_by >= 0):
        index = _yield(race, state, order, cand, let_by)
        order, cand = order.take(index), cand.take(index)
    return order, follow(cand, spacing)


def start_order(race: Race, state: RaceState, row: int, free_s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Order and times after lap 1 from the grid. Returns as `racing_order`."""
    engine = race.engine
    order = cast("np.ndarray", race.start_key).argsort(axis=1, kind="stable") + race.rows
    # The trains of an ordinary lap, stretched: the leaders get away, the back arrives in one piece.
    train = race.follow_s[row] / (0.5 * (engine.follow_gap_min_s + engine.follow_gap_max_s))
    train = train - train[:, :1]
    back = np.maximum(train - 5.0, 0.0)
    gap = (train - back) * engine.first_lap_gap_front_s + back * engine.first_lap_gap_back_s
    if state.any_slow:  # a start behind the safety car is no race to the first corner
        slow = (state.status > 0)[:, None]
        order = np.where(slow, state.order, order)
    cand = (state.elapsed_s + free_s + race.first_lap_loss).take(order)
    if state.any_slow:
        cand, queue = _behind_safety_car(race, state, row, slow, cand, gap)
        gap = np.where((state.status == VSC)[:, None], gap, queue)  # a VSC keeps gaps, and these are yet to be made
    return order, follow(cand, gap)


def _yield(race: Race, state: RaceState, order: np.ndarray, cand: np.ndarray, let_by: np.ndarray) -> np.ndarray:
    """Let cars by: change places with a car right behind, by place. Returns the index into the places."""
    near = cand[:, 1:] - cand[:, :-1] < YIELD_WITHIN_S
    wish, target = (let_by >= 0).take(order)[:, :-1], column_of(race, "let_by", let_by).take(order)[:, :-1]
    yes = wish & near & (target == order[:, 1:]) & (state.status == 0)[:, None]
    yes[:, 1:] &= ~yes[:, :-1]  # whoever is just being let by does not let a third car by in the same lap
    swap = np.zeros(order.shape, dtype=np.int64)
    swap[:, :-1] += yes
    swap[:, 1:] -= yes
    return race.places + swap + race.rows


def _behind_safety_car(race: Race, state: RaceState, row: int, slow: np.ndarray, cand: np.ndarray,
                       spacing: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Neutralised episodes: everybody at one pace, and behind a safety car the field closes to a queue."""
    engine, episodes = race.engine, race.episodes
    # A neutralised lap is so many times a green one, fuel and used tyres included: the leader's fuel serves the field.
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
    return (np.where(slow, at_line + lap_s * ratio, cand), np.where(slow, race.places * gap, spacing))
