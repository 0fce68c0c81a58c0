"""One lap of every race of a batch: `step(race, state, calls) -> state`.

Within a lap: the drives are read, free lap times are summed from named effects, traffic settles order and times, then
stops, punctures and failures are charged, tyres and fuel move on and the status of the next lap is drawn. A stop
called in a lap costs all of its time in that lap and the new set runs from the next: no lap is free, the last included.
Retired cars stay where they are; episodes that are over keep their state.

Simplifications: a lap has one status, that of the leader's lap with the same number, also for cars a lap down; lapped
cars lose time to blue flags but don't hold up those that lap them; all of a stop falls into the lap that ends with it.
"""
from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np

from f1_pipelines.sim.engine import traffic
from f1_pipelines.sim.engine.arrays import any_of
from f1_pipelines.sim.engine.drive import DEFAULT_DRIVE, LASTING, NO_CALLS, Calls
from f1_pipelines.sim.engine.events import column_of, incidents, status_of_next_lap, stops
from f1_pipelines.sim.engine.race import Race, prepare
from f1_pipelines.sim.engine.setup import RaceSetup
from f1_pipelines.sim.engine.state import OUT_S, RaceState, gaps, new_state

ENGINE_VERSION = 2  # raised by every change that moves a race: datasets and evaluations record it

# Numbers as arrays of no axis: beside a small array, numpy takes twice as long for a Python number.
ZERO, ONE, A_LAP, NOBODY, LASTING_BITS, PLAIN = (np.array(n) for n in (0.0, 1.0, 1, 0, LASTING, DEFAULT_DRIVE))

Policy = Callable[[Race, RaceState], Calls]


class RaceOver(RuntimeError):
    """A lap was asked of a batch whose longest race is over."""


def step(race: Race, state: RaceState, calls: Calls = NO_CALLS) -> RaceState:
    """Drive the next lap. The state that comes in is not changed.

    Raises:
        RaceOver: All races of the batch are over.
    """
    if state.lap >= race.laps:
        raise RaceOver(f"the race is over after {race.laps} laps; this state is after lap {state.lap}.")
    return drive_lap(race, state, calls)[0]


def run(race: Race | RaceSetup, policy: Policy | None = None, record: bool = False) -> RaceState | list[RaceState]:
    """Whole races. `policy` is asked for the calls of every lap; `record` returns the states of all laps, 0 first."""
    race = race if isinstance(race, Race) else prepare(race)
    state = new_state(race)
    history = [state]
    while state.lap < race.laps:
        state = step(race, state, NO_CALLS if policy is None else policy(race, state))
        if record:
            history.append(state)
    return history if record else state


def lap_effects(race: Race, state: RaceState, act: np.ndarray | None) -> tuple[dict[str, np.ndarray], tuple[Any, ...]]:
    """What makes the coming lap fast or slow in clean air, by name.

    Args:
        act: (7, E, N) effects of the drives, None if everybody just races.

    Returns:
        effects by name [s], (E, N) each, `track` (circuit, car, driver and noise) first; and what else the step needs:
        wear past the cliff, temperature beyond the window, weather planes, each None where there is none of it.
    """
    engine, row = race.engine, state.lap - race.first
    off_c = np.abs(state.temp_c)
    astray = np.maximum(off_c - engine.temp_window_c, ZERO) if any_of(off_c > engine.temp_window_c) else None
    effects = {
        "track": race.lap_s[row],
        "compound": state.offset_s,
        "wear": state.slope_s * state.wear_laps,
        "fuel": state.fuel_kg * race.fuel_effect,
    }
    if act is not None:
        effects["mode"] = act[0]
    if astray is not None:
        effects["temperature"] = astray * engine.temp_loss_s_per_c
    if state.last_stop:
        effects["fresh"] = state.fresh_s
    past = None
    if state.worn:
        past = np.maximum(np.minimum(state.wear_laps - state.cliff_laps, engine.cliff_cap_laps), ZERO)
        effects["cliff"] = past * (engine.cliff_linear_s + past * engine.cliff_square_s)
    wet = None
    if race.wet or state.rain_tyres:  # slicks on a dry track: all of it is 0 s and x 1
        wet = race.weather[row if race.wet else 0].take(state.compound + race.rows5, axis=1)
        effects["weather"] = wet[0]
    return effects, (past, astray, wet)


def drive_lap(race: Race, state: RaceState, calls: Calls) -> tuple[RaceState, dict[str, np.ndarray]]:
    """The next state, and the parts of the lap time that `explain` reports."""
    engine, lap = race.engine, state.lap + 1
    row = race.row(lap)
    act = None if calls.drive is None and state.plain else \
        race.drives.take(state.drive if calls.drive is None else calls.drive, axis=1)
    parts, (past, astray, wet) = lap_effects(race, state, act)
    free = sum_of(parts)
    saved = None
    if calls.hold_gap is not None and any_of(calls.hold_gap >= NOBODY):
        # No quicker than that car: the pace in hand is what is saved in tyres and fuel, up to a second's worth.
        target = column_of(race, "hold_gap", calls.hold_gap)
        held = (calls.hold_gap >= 0) & (state.out == 0).take(target)
        saved = np.where(held, np.maximum(free.take(target) - free, 0.0), 0.0)
        free = free + saved
        parts["hold_gap"] = saved
    close = np.maximum(ONE - state.gap_ahead_s * race.dirty_reach, ZERO)
    loss = close * race.dirty_air
    if race.episodes > 1 or _last_is_lapped(race, state, row):
        loss = loss + race.lapped_loss * (state.elapsed_s > state.leader_s + race.circuit_s[row])
    if race.start_key is not None and lap == 1:
        loss = np.zeros(free.shape)  # in the tow of the whole field: part of what lap 1 costs
        order, at_line = traffic.start_order(race, state, row, free)
    else:
        order, at_line = traffic.racing_order(race, state, row, free, loss, act, calls.let_by)
    elapsed = np.empty(free.shape)
    elapsed.put(order, at_line)
    parts["dirty_air"], parts["on_track"] = loss, elapsed

    wear_rate, burn, settle = rates(race, state, act, close, astray, wet, saved)
    out, out_lap, any_out = state.out, state.out_lap, state.any_out
    running: Any = state.out == 0 if any_out else None
    fuel = state.fuel_kg - burn
    changed: dict[str, np.ndarray] = {}
    hazard, other = hazards(race, state, act, wet) if race.risky[row] else (ZERO, ZERO)
    puncture = None if past is None else race.puncture_u[row] < past * engine.puncture_per_lap_past
    if puncture is not None and not any_of(puncture):
        puncture = None
    stopped = None
    if puncture is not None or any_of(fuel < ZERO) or (
            race.risky[row] and any_of(race.hazard_u[row] < hazard + other)):
        stopped, puncture, fuel, late = incidents(race, state, row, hazard, other, fuel, burn, puncture)
        elapsed = elapsed + late
        parts["incident"] = late
    called = calls.pit is not None and any_of(calls.pit >= NOBODY)
    pitting = called or (puncture is not None and any_of(puncture))
    wear, temp = state.wear_laps + wear_rate, state.temp_c + engine.temp_follow * (settle - state.temp_c)
    age, fresh = state.age_laps + A_LAP, state.fresh_s
    if pitting or state.last_stop:  # nobody runs on a fresh set before
        fresh = fresh * engine.fresh_left
    if pitting:
        changed, at, parts["stop"] = stops(race, state, row, calls.pit, puncture, stopped, elapsed)
        elapsed = elapsed + parts["stop"]
        for values, new in ((wear, 0.0), (age, 0), (temp, engine.temp_new_c), (fresh, race.fresh_s.take(at))):
            values.put(at, new)  # of this lap alone: nobody else has seen these arrays
    if any_out:
        elapsed = np.where(running, elapsed, state.elapsed_s)
    if stopped is not None and any_of(stopped > 0):
        off = stopped > 0
        place = np.empty_like(order)
        place.put(order, np.broadcast_to(race.places, order.shape))
        elapsed = np.where(off, OUT_S - 1e6 * lap + 1e3 * place, elapsed)
        out, out_lap, any_out = np.where(off, stopped, out), np.where(off, lap, out_lap), True
    if pitting or any_out or stopped is not None:
        order = elapsed.argsort(axis=1, kind="stable") + race.rows
        at_line = elapsed.take(order)
    gap, leader = gaps(at_line, order)
    (status, status_age, status_left), any_slow = status_of_next_lap(race, state, lap, stopped)
    lasting, plain = state.drive, state.plain
    if calls.drive is not None:
        lasting = calls.drive & LASTING_BITS
        plain = not any_of(lasting != PLAIN)
    worn = any_of(wear > changed.get("cliff_laps", state.cliff_laps))
    after = RaceState(  # by position: by name takes thrice as long
        lap, elapsed, order, gap, leader, state.compound, state.offset_s, state.slope_s, age, wear, state.cliff_laps,
        temp, fresh, fuel, lasting, state.used, state.stops, out, out_lap, status,
        status_age, status_left,
        any_out, any_slow, state.rain_tyres, worn, plain, state.last_stop, (*state.line_s, elapsed))
    for name, value in changed.items():
        setattr(after, name, value)
    if lap > race.shortest:
        after = _keep_finished(race, state, after)
    return after, parts


def rates(race: Race, state: RaceState, act: np.ndarray | None, close: np.ndarray, astray: np.ndarray | None,
          wet: np.ndarray | None, saved: np.ndarray | None) -> tuple[np.ndarray, ...]:
    """What the lap takes out of tyres and tank.

    Args:
        act: (7, E, N) effects of the drives, None if everybody just races.
        close: How near the car ahead is, 1 (touching) to 0 (out of reach); `astray` C outside the tyres' window.
        wet: (3, E, N) effects of the water; `saved` seconds not used to hold a gap.

    Returns:
        wear [laps], fuel [kg], temperature the tyres tend to [C].
    """
    engine = race.engine
    wear_rate, burn, settle = None, race.fuel_burn, engine.temp_dirty_air_c * close
    if act is not None:
        wear_rate, burn, settle = act[1], act[2] * burn, act[3] + settle
    if astray is not None:
        blisters = ONE + engine.temp_wear_per_c * astray
        wear_rate = blisters if wear_rate is None else wear_rate * blisters
    wear_rate = race.wear_scale if wear_rate is None else wear_rate * race.wear_scale
    settle = settle + race.heat_c
    if saved is not None:
        spare = np.minimum(saved, 1.0)
        wear_rate, burn = wear_rate * (1.0 - engine.hold_gap_wear * spare), burn * (1.0 - engine.hold_gap_fuel * spare)
    if wet is not None:
        wear_rate = wear_rate * wet[1]
    if state.any_slow:
        wear_x, fuel_x, added_c, _ = race.by_status.take(state.status, axis=1)[..., None]
        wear_rate, burn, settle = wear_rate * wear_x, burn * fuel_x, settle + added_c
    return wear_rate, burn, settle


def hazards(race: Race, state: RaceState, act: np.ndarray | None,
            wet: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Chance of an accident in the lap, and of another failure (mechanical, debris), (E, N) each."""
    hazard, other = race.accident_first if state.lap == 0 and race.start_key is not None else race.accident, race.other
    if act is not None:
        hazard = hazard * act[6]
    if wet is not None:
        hazard = hazard * wet[2]
    if state.any_slow:
        hazard_x = race.by_status[3].take(state.status)[:, None]
        hazard, other = hazard * hazard_x, other * hazard_x
    return hazard, other


def _last_is_lapped(race: Race, state: RaceState, row: int) -> bool:
    """Whether any car of a single race is a lap down: for a large batch it is cheaper to compare all."""
    return state.elapsed_s.item(state.order.item(-1)) > state.leader_s.item() + race.circuit_s.item(row)


def sum_of(effects: dict[str, np.ndarray]) -> np.ndarray:
    """The effects added up in their order."""
    return functools.reduce(operator.add, effects.values())


def _keep_finished(race: Race, before: RaceState, after: RaceState) -> RaceState:
    """Episodes whose distance is done keep the state they finished with."""
    on = after.lap <= race.race_laps
    values = {}
    for f in fields(after):
        new = getattr(after, f.name)
        if isinstance(new, np.ndarray):
            values[f.name] = np.where(on if new.ndim == 1 else on[:, None], new, getattr(before, f.name))
    return after.after(**values, line_s=(*before.line_s, values["elapsed_s"]))
