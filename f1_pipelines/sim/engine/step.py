"""One lap of every race of a batch: `step(race, state, calls) -> state`.

A lap looks up the drives, sums free lap times from named effects, lets traffic settle order and times, charges stops,
punctures and failures, moves tyres and fuel on and draws the status of the next lap. A stop called in a lap costs all
of its time in that lap, the last one included, and the new set runs from the next lap. Retired cars stay where they
are; episodes that are over keep their state.

Simplifications: a lap has one status, that of the leader's lap of the same number, for lapped cars too. Lapped cars
lose time to blue flags but don't hold up those that lap them. All of a stop falls into the lap that ends with it.
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
from f1_pipelines.sim.engine.events import column_of, incidents, pit_stops, status_of_next_lap
from f1_pipelines.sim.engine.race import Race, prepare
from f1_pipelines.sim.engine.setup import RaceSetup
from f1_pipelines.sim.engine.state import OUT_S, RaceState, gaps, new_state

ENGINE_VERSION = 2  # raised by every change that moves a race; datasets and evaluations record it

# Numbers as 0-d arrays: beside a small array, numpy takes twice as long for a Python number.
ZERO, ONE, A_LAP, FIRST_COLUMN, LASTING_BITS, PLAIN = (np.array(n) for n in (0.0, 1.0, 1, 0, LASTING, DEFAULT_DRIVE))

Policy = Callable[[Race, RaceState], Calls]


class RaceOver(RuntimeError):
    """The longest race of the batch is over: no lap is left to drive."""


def step(race: Race, state: RaceState, calls: Calls = NO_CALLS) -> RaceState:
    """Drive the next lap. Does not change `state`.

    Raises:
        RaceOver: All races of the batch are over.
    """
    if state.lap >= race.laps:
        raise RaceOver(f"the race is over after {race.laps} laps; this state is after lap {state.lap}.")
    return drive_lap(race, state, calls)[0]


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


def lap_effects(race: Race, state: RaceState,
                drive_effects: np.ndarray | None) -> tuple[dict[str, np.ndarray], tuple[Any, ...]]:
    """The effects that make up the coming lap's time in clean air.

    Args:
        race: The batch.
        state: Its state before the lap.
        drive_effects: Effects of the drives, (7, E, N); None if every car drives the default.

    Returns:
        Effects by name [s], (E, N) each, `track` (circuit, car, driver and noise) first. And what else the step needs:
        wear past the cliff [laps], temperature beyond the window [C], effects of water; each None if there is none.
    """
    engine, row = race.engine, state.lap - race.first
    off_c = np.abs(state.temp_c)
    off_window_c = np.maximum(off_c - engine.temp_window_c, ZERO) if any_of(off_c > engine.temp_window_c) else None
    effects = {
        "track": race.lap_s[row],
        "compound": state.offset_s,
        "wear": state.slope_s * state.wear_laps,
        "fuel": state.fuel_kg * race.fuel_effect,
    }
    if drive_effects is not None:
        effects["mode"] = drive_effects[0]
    if off_window_c is not None:
        effects["temperature"] = off_window_c * engine.temp_loss_s_per_c
    if state.last_stop:
        effects["fresh"] = state.fresh_s
    past_cliff = None
    if state.worn:
        past_cliff = np.maximum(np.minimum(state.wear_laps - state.cliff_laps, engine.cliff_cap_laps), ZERO)
        effects["cliff"] = past_cliff * (engine.cliff_linear_s + past_cliff * engine.cliff_square_s)
    wet = None
    if race.wet or state.rain_tyres:  # slicks on a dry track: 0 s and x 1 throughout
        wet = race.weather[row if race.wet else 0].take(state.compound + race.rows5, axis=1)
        effects["weather"] = wet[0]
    return effects, (past_cliff, off_window_c, wet)


def drive_lap(race: Race, state: RaceState, calls: Calls) -> tuple[RaceState, dict[str, np.ndarray]]:
    """Drive a lap: the next state, and the parts of the lap time that `explain` reports."""
    engine, lap = race.engine, state.lap + 1
    row = race.row(lap)
    drive_effects = None if calls.drive is None and state.plain else \
        race.drives.take(state.drive if calls.drive is None else calls.drive, axis=1)
    parts, (past_cliff, off_window_c, wet) = lap_effects(race, state, drive_effects)
    free = sum_effects(parts)
    saved_s = None
    if calls.hold_gap is not None and any_of(calls.hold_gap >= FIRST_COLUMN):
        # No quicker than that car: up to a second of the pace in hand saves tyres and fuel.
        target = column_of(race, "hold_gap", calls.hold_gap)
        held = (calls.hold_gap >= 0) & (state.out == 0).take(target)
        saved_s = np.where(held, np.maximum(free.take(target) - free, 0.0), 0.0)
        free = free + saved_s
        parts["hold_gap"] = saved_s
    closeness = np.maximum(ONE - state.gap_ahead_s * race.dirty_reach, ZERO)
    loss = closeness * race.dirty_air
    if race.episodes > 1 or _last_is_lapped(race, state, row):
        loss = loss + race.lapped_loss * (state.elapsed_s > state.leader_s + race.circuit_s[row])
    if race.start_key is not None and lap == 1:
        loss = np.zeros(free.shape)  # the whole field drives in tow: part of the cost of lap 1
        order, at_line = traffic.start_order(race, state, row, free)
    else:
        order, at_line = traffic.racing_order(race, state, row, free, loss, drive_effects, calls.let_by)
    elapsed = np.empty(free.shape)
    elapsed.put(order, at_line)
    parts["dirty_air"], parts["on_track"] = loss, elapsed

    wear_rate, burn, settle_c = rates(race, state, drive_effects, closeness, off_window_c, wet, saved_s)
    out, out_lap, any_out = state.out, state.out_lap, state.any_out
    running: Any = state.out == 0 if any_out else None
    fuel = state.fuel_kg - burn
    changed: dict[str, np.ndarray] = {}
    hazard, other = hazards(race, state, drive_effects, wet) if race.risky[row] else (ZERO, ZERO)
    puncture = None if past_cliff is None else race.puncture_u[row] < past_cliff * engine.puncture_per_lap_past
    if puncture is not None and not any_of(puncture):
        puncture = None
    retired = None
    if puncture is not None or any_of(fuel < ZERO) or (
            race.risky[row] and any_of(race.hazard_u[row] < hazard + other)):
        retired, puncture, fuel, lost_s = incidents(race, state, row, hazard, other, fuel, burn, puncture)
        elapsed = elapsed + lost_s
        parts["incident"] = lost_s
    called = calls.pit is not None and any_of(calls.pit >= FIRST_COLUMN)
    pitting = called or (puncture is not None and any_of(puncture))
    wear, temp = state.wear_laps + wear_rate, state.temp_c + engine.temp_follow * (settle_c - state.temp_c)
    age, fresh = state.age_laps + A_LAP, state.fresh_s
    if pitting or state.last_stop:  # before the first stop no set is fresh
        fresh = fresh * engine.fresh_left
    if pitting:
        changed, at, parts["stop"] = pit_stops(race, state, row, calls.pit, puncture, retired, elapsed)
        elapsed = elapsed + parts["stop"]
        for values, new in ((wear, 0.0), (age, 0), (temp, engine.temp_new_c), (fresh, race.fresh_s.take(at))):
            values.put(at, new)  # made in this lap: no other state shares these arrays
    if any_out:
        elapsed = np.where(running, elapsed, state.elapsed_s)
    if retired is not None and any_of(retired > 0):
        retiring = retired > 0
        place = np.empty_like(order)
        place.put(order, np.broadcast_to(race.places, order.shape))
        elapsed = np.where(retiring, OUT_S - 1e6 * lap + 1e3 * place, elapsed)
        out, out_lap, any_out = np.where(retiring, retired, out), np.where(retiring, lap, out_lap), True
    if pitting or any_out or retired is not None:
        order = elapsed.argsort(axis=1, kind="stable") + race.rows
        at_line = elapsed.take(order)
    gap, leader = gaps(at_line, order)
    (status, status_age, status_left), any_slow = status_of_next_lap(race, state, lap, retired)
    lasting, plain = state.drive, state.plain
    if calls.drive is not None:
        lasting = calls.drive & LASTING_BITS
        plain = not any_of(lasting != PLAIN)
    worn = any_of(wear > changed.get("cliff_laps", state.cliff_laps))
    after = RaceState(  # by position: by name takes three times as long
        lap, elapsed, order, gap, leader, state.compound, state.offset_s, state.slope_s, age, wear, state.cliff_laps,
        temp, fresh, fuel, lasting, state.used, state.stops, out, out_lap, status,
        status_age, status_left,
        any_out, any_slow, state.rain_tyres, worn, plain, state.last_stop, (*state.line_s, elapsed))
    for name, value in changed.items():
        setattr(after, name, value)
    if lap > race.shortest:
        after = _keep_finished(race, state, after)
    return after, parts


def rates(race: Race, state: RaceState, drive_effects: np.ndarray | None, closeness: np.ndarray,
          off_window_c: np.ndarray | None, wet: np.ndarray | None,
          saved_s: np.ndarray | None) -> tuple[np.ndarray, ...]:
    """Wear, fuel and tyre temperature of the lap.

    Args:
        race: The batch.
        state: Its state before the lap.
        drive_effects: Effects of the drives, (7, E, N); None if every car drives the default.
        closeness: Nearness of the car ahead, (E, N), from 1 (touching) to 0 (out of reach).
        off_window_c: Tyre temperature outside the window [C], (E, N); None if all are inside.
        wet: Effects of water, (3, E, N); None on a dry track.
        saved_s: Pace not used in order to hold a gap [s], (E, N); None if no car holds one.

    Returns:
        Wear [laps], fuel [kg] and the temperature that the tyres settle at [C].
    """
    engine = race.engine
    wear_rate, burn, settle_c = None, race.fuel_burn, engine.temp_dirty_air_c * closeness
    if drive_effects is not None:
        wear_rate, burn, settle_c = drive_effects[1], drive_effects[2] * burn, drive_effects[3] + settle_c
    if off_window_c is not None:
        blisters = ONE + engine.temp_wear_per_c * off_window_c
        wear_rate = blisters if wear_rate is None else wear_rate * blisters
    wear_rate = race.wear_scale if wear_rate is None else wear_rate * race.wear_scale
    settle_c = settle_c + race.heat_c
    if saved_s is not None:
        spare = np.minimum(saved_s, 1.0)
        wear_rate, burn = wear_rate * (1.0 - engine.hold_gap_wear * spare), burn * (1.0 - engine.hold_gap_fuel * spare)
    if wet is not None:
        wear_rate = wear_rate * wet[1]
    if state.any_slow:
        wear_x, fuel_x, added_c, _ = race.by_status.take(state.status, axis=1)[..., None]
        wear_rate, burn, settle_c = wear_rate * wear_x, burn * fuel_x, settle_c + added_c
    return wear_rate, burn, settle_c


def hazards(race: Race, state: RaceState, drive_effects: np.ndarray | None,
            wet: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Chances of an accident and of another failure (mechanical, debris) in the lap, (E, N) each."""
    hazard, other = race.accident_first if state.lap == 0 and race.start_key is not None else race.accident, race.other
    if drive_effects is not None:
        hazard = hazard * drive_effects[6]
    if wet is not None:
        hazard = hazard * wet[2]
    if state.any_slow:
        hazard_x = race.by_status[3].take(state.status)[:, None]
        hazard, other = hazard * hazard_x, other * hazard_x
    return hazard, other


def _last_is_lapped(race: Race, state: RaceState, row: int) -> bool:
    """Whether the last car of a single race is a lap down; in a large batch comparing all cars is cheaper."""
    return state.elapsed_s.item(state.order.item(-1)) > state.leader_s.item() + race.circuit_s.item(row)


def sum_effects(effects: dict[str, np.ndarray]) -> np.ndarray:
    """Add up the effects, in their order."""
    return functools.reduce(operator.add, effects.values())


def _keep_finished(race: Race, before: RaceState, after: RaceState) -> RaceState:
    """Keep the final state of episodes that are over."""
    on = after.lap <= race.race_laps
    values = {}
    for f in fields(after):
        new = getattr(after, f.name)
        if isinstance(new, np.ndarray):
            values[f.name] = np.where(on if new.ndim == 1 else on[:, None], new, getattr(before, f.name))
    return after.after(**values, line_s=(*before.line_s, values["elapsed_s"]))
