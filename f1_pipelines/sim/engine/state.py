"""The state of every car of every race between two laps. Arrays are never written to again, so forks share them."""
from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from f1_pipelines.sim.engine.arrays import any_of
from f1_pipelines.sim.engine.drive import DEFAULT_DRIVE
from f1_pipelines.sim.engine.parameters import GREEN, HARD
from f1_pipelines.sim.engine.race import Race

RUNNING, ACCIDENT, MECHANICAL, OUT_OF_FUEL = range(4)
OUT_S = 1e9  # elapsed_s of a retired car, less a million for each lap it drove: sorts behind all running cars


@dataclass(eq=False)  # not frozen: that would cost 4 us a lap, and nothing writes to it
class RaceState:
    """The state after `lap` laps. Arrays are (E, N) by car column unless stated."""

    lap: int
    elapsed_s: np.ndarray  # since lights out, at the line; about OUT_S for retired cars
    order: np.ndarray  # (E, N) flat car index by place, retired cars last
    gap_ahead_s: np.ndarray  # to the next car in the order at the line; 999 for the leader
    leader_s: np.ndarray  # (E, 1) elapsed time of the leader
    compound: np.ndarray
    offset_s: np.ndarray  # of that compound at that circuit
    slope_s: np.ndarray  # s per lap of wear
    age_laps: np.ndarray
    wear_laps: np.ndarray  # laps of normal wear that the set has taken
    cliff_laps: np.ndarray  # wear at which this set falls off
    temp_c: np.ndarray  # relative to the best temperature
    fresh_s: np.ndarray  # gain of a new set, fading
    fuel_kg: np.ndarray
    drive: np.ndarray  # lasting part of the drive
    used: np.ndarray  # bit per compound raced on
    stops: np.ndarray
    out: np.ndarray  # RUNNING or the reason of retirement
    out_lap: np.ndarray  # lap of the retirement, 0 while running
    status: np.ndarray  # (E,) of the coming lap
    status_age: np.ndarray  # (E,) laps of the period so far, the coming one included
    status_left: np.ndarray  # (E,) laps still to come, the coming one included: no pit wall knows this
    any_out: bool
    any_slow: bool
    rain_tyres: bool  # whether any car is on them
    worn: bool  # whether any set is past its cliff
    plain: bool  # whether every lasting drive is the default one
    last_stop: int  # latest lap with a stop, 0 before any; a race joined under way assumes the lap before
    line_s: tuple[np.ndarray, ...]  # elapsed_s after each lap so far, lap 0 first

    @property
    def position(self) -> np.ndarray:
        """(E, N) 1 .. N."""
        place = np.empty_like(self.order)
        place.put(self.order, np.broadcast_to(np.arange(1, self.order.shape[1] + 1), self.order.shape))
        return place

    @property
    def running(self) -> np.ndarray:
        """(E, N) bool."""
        return self.out == RUNNING

    def after(self, **changes: Any) -> RaceState:
        """A new state with these fields changed: a faster `dataclasses.replace`."""
        state = object.__new__(RaceState)
        state.__dict__ = {**self.__dict__, **changes}
        if "wear_laps" in changes or "cliff_laps" in changes:
            state.worn = any_of(state.wear_laps > state.cliff_laps)
        return state

    def take(self, episodes: np.ndarray) -> RaceState:
        """Select episodes, in this order and with repetitions: forks a batch."""
        cars = self.order.shape[1]
        moved = {f.name: getattr(self, f.name)[episodes] for f in fields(self)
                 if isinstance(getattr(self, f.name), np.ndarray)}
        shift = (np.arange(len(moved["order"])) - np.asarray(episodes))[:, None] * cars
        moved["order"] = moved["order"] + shift
        return self.after(**moved, line_s=tuple(line[episodes] for line in self.line_s))


def new_state(race: Race) -> RaceState:
    """The state before the start: cars in grid order, or with the gaps at which a race is joined."""
    setup, shape = race.setup, (race.episodes, race.cars)
    zeros, ints = np.zeros(shape), np.zeros(shape, dtype=np.int64)
    compound = ints + np.asarray(setup.start_compound, dtype=np.int64)
    age = ints + np.asarray(setup.start_age_laps, dtype=np.int64)
    fuel = race.fuel_burn * (race.race_laps[:, None] - race.first + 0.5) if setup.start_fuel_kg is None else \
        np.asarray(setup.start_fuel_kg, dtype=float)
    elapsed = zeros + (0.0 if setup.start_gap_s is None else np.asarray(setup.start_gap_s, dtype=float))
    gap, leader = gaps(elapsed.take(race.grid_order), race.grid_order)
    offset, slope, cliff = race.tyres.take(compound + race.rows5, axis=1)
    green = np.zeros(race.episodes, dtype=np.int64)
    trace = (green, green + 1, green + 1) if race.status is None else race.status[:, race.first]
    wear, cliff = age * race.wear_scale, cliff * race.cliff_factor[0]
    return RaceState(
        lap=race.first, elapsed_s=elapsed, order=race.grid_order, gap_ahead_s=gap, leader_s=leader, compound=compound,
        offset_s=offset, slope_s=slope, age_laps=age, wear_laps=wear, cliff_laps=cliff,
        temp_c=zeros + race.engine.temp_grid_c, fresh_s=zeros,
        fuel_kg=zeros + fuel, drive=ints + DEFAULT_DRIVE, used=1 << compound, stops=ints, out=ints,
        out_lap=ints, status=trace[0], status_age=trace[1], status_left=trace[2], any_out=False,
        any_slow=any_of(trace[0] != GREEN), rain_tyres=any_of(compound > HARD), worn=any_of(wear > cliff), plain=True,
        last_stop=race.first, line_s=(elapsed,))


def gaps(at_line: np.ndarray, order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """From times by place (E, N): the gap of each car to the car ahead (E, N) and the leader's time (E, 1)."""
    gap = np.empty(at_line.shape)
    gap.fill(999.0)
    gap.put(order[:, 1:], at_line[:, 1:] - at_line[:, :-1])
    return gap, at_line[:, :1]
