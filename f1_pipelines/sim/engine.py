"""One lap of every race of a batch: `step(race, state, calls) -> state`.

Within a lap: the drives are read, free lap times are summed from named effects, traffic settles order and times, then
stops, punctures and failures are charged, tyres and fuel move on and the status of the next lap is drawn. A stop
called in a lap costs all of its time in that lap and the new set runs from the next: no lap is free, the last included.
Retired cars stay where they are; episodes that are over keep their state.

Simplifications: a lap has one status, that of the leader's lap with the same number, also for cars a lap down; lapped
cars lose time to blue flags but don't hold up those that lap them; all of a stop falls into the lap that ends with it.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields

import numpy as np

from f1_pipelines.sim import traffic
from f1_pipelines.sim.drive import LASTING, NO_CALLS, Calls
from f1_pipelines.sim.events import any_of, column_of, incidents, status_of_next_lap, stops
from f1_pipelines.sim.race import Race, prepare
from f1_pipelines.sim.setup import RaceSetup
from f1_pipelines.sim.state import OUT_S, RaceState, gaps, new_state

ENGINE_VERSION = 2  # raised by every change that moves a race: datasets and evaluations record it

# Numbers as arrays of no axis: beside a small array, numpy takes twice as long for a Python number.
ZERO, ONE, A_LAP, NOBODY, LASTING_BITS = (np.array(number) for number in (0.0, 1.0, 1, 0, LASTING))

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


def lap_effects(race: Race, state: RaceState, drive: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray, tuple]:
    """What makes the coming lap fast or slow in clean air, by name.

    Returns:
        effects by name [s], (E, N) each, `track` (circuit, car, driver and noise) first; the table of drive effects
        (7, E, N); and what else the step needs: wear past the cliff, temperature beyond the window, weather planes,
        each None where there is none of it.
    """
    engine, row = race.engine, race.row(state.lap + 1)
    act = race.drives.take(drive, axis=1)
    kind = state.compound + race.rows5
    tyre = race.tyres.take(kind, axis=1)
    off_c = np.abs(state.temp_c)
    astray = np.maximum(off_c - engine.temp_window_c, ZERO) if any_of(off_c > engine.temp_window_c) else None
    effects = {
        "track": race.lap_s[row],
        "compound": tyre[0],
        "wear": tyre[1] * state.wear_laps,
        "fuel": state.fuel_kg * race.fuel_effect,
        "mode": act[0],
    }
    if astray is not None:
        effects["temperature"] = astray * engine.temp_loss_s_per_c
    effects["fresh"] = state.fresh_s
    past = None
    if any_of(state.wear_laps > state.cliff_laps):
        past = np.maximum(np.minimum(state.wear_laps - state.cliff_laps, engine.cliff_cap_laps), ZERO)
        effects["cliff"] = past * (engine.cliff_linear_s + past * engine.cliff_square_s)
    wet = None
    if race.wet or state.rain_tyres:  # slicks on a dry track: all of it is 0 s and x 1
        wet = race.weather[row if race.wet else 0].take(kind, axis=1)
        effects["weather"] = wet[0]
    return effects, act, (past, astray, wet)


def drive_lap(race: Race, state: RaceState, calls: Calls) -> tuple[RaceState, dict[str, np.ndarray]]:
    """The next state, and the parts of the lap time that `explain` reports."""
    engine, lap = race.engine, state.lap + 1
    row = race.row(lap)
    drive = state.drive if calls.drive is None else calls.drive
    effects, act, (past, astray, wet) = lap_effects(race, state, drive)
    free = sum_of(effects)
    saved = None
    if calls.hold_gap is not None and any_of(calls.hold_gap >= NOBODY):
        # No quicker than that car: the pace in hand is what is saved in tyres and fuel, up to a second's worth.
        target = column_of(race, "hold_gap", calls.hold_gap)
        held = (calls.hold_gap >= 0) & (state.out == 0).take(target)
        saved = np.where(held, np.maximum(free.take(target) - free, 0.0), 0.0)
        free = free + saved
        effects["hold_gap"] = saved
    close = np.maximum(ONE - state.gap_ahead_s * race.dirty_reach, ZERO)
    loss = close * race.dirty_air
    lapped = state.elapsed_s > state.leader_s + race.circuit_s[row]
    if any_of(lapped):
        loss = loss + race.lapped_loss * lapped
    if race.start_key is not None and lap == 1:
        loss = np.zeros_like(free)  # in the tow of the whole field: part of what lap 1 costs
        order, at_line = traffic.start_order(race, state, row, free)
    else:
        order, at_line = traffic.racing_order(race, state, row, free, loss, act, calls.let_by)
    elapsed = np.empty_like(free)
    elapsed.put(order, at_line)
    parts = {**effects, "dirty_air": loss, "on_track": elapsed}

    wear_rate, burn, settle, hazard, other = rates(race, state, act, close, astray, wet, saved)
    out, out_lap, any_out = state.out, state.out_lap, state.any_out
    running = state.out == 0 if any_out else None
    fuel = state.fuel_kg - burn
    changed = {}
    hit = race.hazard_u[row] < hazard + other
    puncture = None if past is None else race.puncture_u[row] < past * engine.puncture_per_lap_past
    if puncture is not None and not any_of(puncture):
        puncture = None
    stopped = None
    if puncture is not None or any_of(hit) or any_of(fuel < ZERO):
        stopped, puncture, fuel, late = incidents(race, state, row, hit, hazard, fuel, burn, puncture)
        elapsed = elapsed + late
        parts["incident"] = late
    called = calls.pit is not None and any_of(calls.pit >= NOBODY)
    pitting = called or (puncture is not None and any_of(puncture))
    wear, temp = state.wear_laps + wear_rate, state.temp_c + engine.temp_follow * (settle - state.temp_c)
    age, fresh = state.age_laps + A_LAP, state.fresh_s * engine.fresh_left
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
    status, any_slow = status_of_next_lap(race, state, lap, stopped)
    after = state.after(
        lap=lap, elapsed_s=elapsed, order=order, gap_ahead_s=gap, leader_s=leader, age_laps=age, wear_laps=wear,
        temp_c=temp, fresh_s=fresh, fuel_kg=fuel, out=out, out_lap=out_lap, any_out=any_out, any_slow=any_slow,
        drive=state.drive if calls.drive is None else calls.drive & LASTING_BITS,
        status=status[0], status_age=status[1], status_left=status[2], line_s=(*state.line_s, elapsed), **changed)
    if lap > race.shortest:
        after = _keep_finished(race, state, after)
    return after, parts


def rates(race: Race, state: RaceState, act: np.ndarray, close: np.ndarray, astray: np.ndarray | None,
          wet: np.ndarray | None, saved: np.ndarray | None) -> tuple[np.ndarray, ...]:
    """What the lap takes out of tyres and tank, and what may go wrong in it.

    Args:
        act: (7, E, N) effects of the drives.
        close: How near the car ahead is, 1 (touching) to 0 (out of reach); `astray` C outside the tyres' window.
        wet: (3, E, N) effects of the water; `saved` seconds not used to hold a gap.

    Returns:
        wear [laps], fuel [kg], temperature the tyres tend to [C], chance of an accident, chance of another failure.
    """
    engine, from_grid = race.engine, state.lap == 0 and race.start_key is not None
    wear_rate = act[1] if astray is None else act[1] * (ONE + engine.temp_wear_per_c * astray)
    wear_rate = wear_rate * race.wear_scale
    burn = act[2] * race.fuel_burn
    settle = act[3] + engine.temp_dirty_air_c * close + race.heat_c
    hazard = (race.accident_first if from_grid else race.accident) * act[6]
    other = race.other  # mechanical failures and debris
    if saved is not None:
        spare = np.minimum(saved, 1.0)
        wear_rate, burn = wear_rate * (1.0 - engine.hold_gap_wear * spare), burn * (1.0 - engine.hold_gap_fuel * spare)
    if wet is not None:
        wear_rate, hazard = wear_rate * wet[1], hazard * wet[2]
    if state.any_slow:
        wear_x, fuel_x, added_c, hazard_x = race.by_status.take(state.status, axis=1)[..., None]
        wear_rate, burn, settle = wear_rate * wear_x, burn * fuel_x, settle + added_c
        hazard, other = hazard * hazard_x, other * hazard_x
    return wear_rate, burn, settle, hazard, other


def sum_of(effects: dict[str, np.ndarray]) -> np.ndarray:
    """The effects added up in their order."""
    total = None
    for effect in effects.values():
        total = effect if total is None else total + effect
    return total


def _keep_finished(race: Race, before: RaceState, after: RaceState) -> RaceState:
    """Episodes whose distance is done keep the state they finished with."""
    on = after.lap <= race.race_laps
    kept = {}
    for f in fields(after):
        new = getattr(after, f.name)
        if isinstance(new, np.ndarray):
            kept[f.name] = np.where(on if new.ndim == 1 else on[:, None], new, getattr(before, f.name))
    return after.after(**kept, line_s=(*before.line_s, kept["elapsed_s"]))
