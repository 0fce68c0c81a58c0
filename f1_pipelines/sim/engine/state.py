"""The state of every car of every race between two laps. Arrays are never written to again, so forks share them."""
from __future__ import annotations

from typing import Any

import numpy as np

from f1_pipelines.sim.engine.compiled import Record, compiled
from f1_pipelines.sim.engine.drive import DEFAULT_DRIVE
from f1_pipelines.sim.engine.race import Race
from f1_pipelines.sim.engine.tables import record

RUNNING, ACCIDENT, MECHANICAL, OUT_OF_FUEL = range(4)
OUT_S = 1e9  # elapsed_s of a retired car, less a million for each lap it drove: sorts behind all running cars
NOBODY_AHEAD_S = 999.0  # gap of the leader

CAR_STATE = record(
    "elapsed_s "  # since lights out, at the line; about OUT_S for retired cars
    "gap_ahead_s "  # to the next car in the order at the line; NOBODY_AHEAD_S for the leader
    "offset_s slope_s "  # of the compound at that circuit; s per lap of wear
    "wear_laps cliff_laps "  # laps of normal wear that the set has taken; wear at which this set falls off
    "temp_c fresh_s fuel_kg",  # relative to the best temperature; gain of a new set, fading
    "order "  # by place: column of the car in this place, retired cars last
    "compound age_laps drive used stops "  # drive: its lasting part; used: bit per compound raced on
    "out out_lap",  # RUNNING or the reason of retirement; lap of the retirement, 0 while running
    count="i2")  # a large batch is as quick as its memory
RACE_STATE = record(
    "leader_s",  # elapsed time of the leader
    "status status_age status_left")  # of the coming lap, laps of the period so far and to come with it (hidden)

_OF_CARS, _OF_RACES = frozenset(CAR_STATE.names or ()), frozenset(RACE_STATE.names or ())


class RaceState:
    """The state after `lap` laps. Arrays are (E, N) by car column unless stated; fields as in CAR_STATE, RACE_STATE."""

    __slots__ = ("cars", "lap", "line_s", "races")

    def __init__(self, lap: int, cars: np.ndarray, races: np.ndarray, line_s: tuple[np.ndarray, ...]) -> None:
        """
        Args:
            lap: Laps driven.
            cars: (E, N) CAR_STATE.
            races: (E,) RACE_STATE.
            line_s: `elapsed_s` after each lap so far, lap 0 (or the lap of joining) first.
        """
        self.lap, self.cars, self.races, self.line_s = lap, cars, races, line_s

    def __getattr__(self, name: str) -> np.ndarray:
        """A field of the cars, (E, N), or of the races, (E,)."""
        records = self.cars if name in _OF_CARS else self.races if name in _OF_RACES else None
        if records is not None:
            return np.asarray(records[name])
        raise AttributeError(f"the state of a race has no {name}; it has {', '.join(sorted(_OF_CARS | _OF_RACES))}")

    @property
    def position(self) -> np.ndarray:
        """(E, N) 1 .. N."""
        place = np.empty_like(self.order)
        np.put_along_axis(place, self.order, np.arange(1, place.shape[1] + 1)[None], axis=1)
        return place

    @property
    def running(self) -> np.ndarray:
        """(E, N) bool."""
        return np.asarray(self.out == RUNNING)

    def after(self, **changes: Any) -> RaceState:
        """A new state with these fields changed. New times bring a new order, with new gaps."""
        cars, races = self.cars.copy(), self.races.copy()
        for name, value in changes.items():
            (cars if name in _OF_CARS else races)[name] = value
        line_s = self.line_s
        if "elapsed_s" in changes:
            sort_field(cars, races)
            line_s = (*line_s[:-1], cars["elapsed_s"].copy())
        return RaceState(self.lap, cars, races, line_s)

    def take(self, episodes: np.ndarray) -> RaceState:
        """Select episodes, in this order and with repetitions: forks a batch."""
        return RaceState(self.lap, self.cars[episodes], self.races[episodes],
                         tuple(line[episodes] for line in self.line_s))


def new_state(race: Race) -> RaceState:
    """The state before the start: cars in grid order, or with the gaps at which a race is joined."""
    setup, tables, shape = race.setup, race.tables, (race.episodes, race.cars)
    at = tables.row_of
    cars, races = np.zeros(shape, CAR_STATE), np.zeros(shape[:1], RACE_STATE)
    of_race = tables.of_race[at][:, None]
    cars["compound"] = np.asarray(setup.start_compound, dtype=np.int64)
    cars["age_laps"] = np.asarray(setup.start_age_laps, dtype=np.int64)
    cars["fuel_kg"] = of_race["fuel_burn"] * (of_race["race_laps"] - race.first + 0.5) \
        if setup.start_fuel_kg is None else setup.start_fuel_kg
    cars["elapsed_s"] = 0.0 if setup.start_gap_s is None else setup.start_gap_s
    cars["order"] = tables.of_car["grid_place"][at]
    tyres = tables.tyres[at[:, None], cars["compound"]]
    cars["offset_s"], cars["slope_s"] = tyres["offset_s"], tyres["slope_s"]
    cars["wear_laps"] = cars["age_laps"] * of_race["wear_scale"]
    cars["cliff_laps"] = tyres["cliff_laps"] * tables.lap_of_car["cliff_factor"][0, at]
    cars["temp_c"], cars["drive"], cars["used"] = race.engine.temp_grid_c, DEFAULT_DRIVE, 1 << cars["compound"]
    races["status_age"] = races["status_left"] = 1
    if setup.status is not None:
        for name in ("status", "status_age", "status_left"):
            races[name] = tables.lap_of_race[name][0, at]
    _fill_gaps(cars, races)
    return RaceState(race.first, cars, races, (cars["elapsed_s"].copy(),))


@compiled
def _fill_gaps(cars: np.ndarray, races: np.ndarray) -> None:
    for episode in range(len(cars)):
        fill_gaps(cars, races, episode)


@compiled
def sort_field(cars: np.ndarray, races: np.ndarray) -> None:
    """Bring the order and the gaps of a batch in line with its times."""
    for episode in range(len(cars)):
        sort_by_time(cars, episode)
        fill_gaps(cars, races, episode)


@compiled
def sort_by_time(cars: np.ndarray, episode: int) -> None:
    """Sort the order of a race by time, equal times by column."""
    for place in range(1, cars.shape[1]):
        car, at = cars[episode, place].order, place
        while at and _is_behind(cars, episode, cars[episode, at - 1].order, car):
            cars[episode, at].order = cars[episode, at - 1].order
            at -= 1
        cars[episode, at].order = car


@compiled
def _is_behind(cars: np.ndarray, episode: int, one: int, other: int) -> bool:
    one_s, other_s = cars[episode, one].elapsed_s, cars[episode, other].elapsed_s
    return bool(one_s > other_s or (one_s == other_s and one > other))


@compiled
def fill_gaps(cars: np.ndarray, races: np.ndarray, episode: int) -> None:
    """Compute the gaps of a race from its order and times."""
    leader = cars[episode, 0].order
    races[episode].leader_s = cars[episode, leader].elapsed_s
    cars[episode, leader].gap_ahead_s = NOBODY_AHEAD_S
    for place in range(1, cars.shape[1]):
        car, ahead = cars[episode, place].order, cars[episode, place - 1].order
        cars[episode, car].gap_ahead_s = cars[episode, car].elapsed_s - cars[episode, ahead].elapsed_s


@compiled
def copy_car(source: Record, target: Record) -> None:
    """Copy the state of a car."""
    target.elapsed_s, target.gap_ahead_s = source.elapsed_s, source.gap_ahead_s
    target.offset_s, target.slope_s, target.wear_laps = source.offset_s, source.slope_s, source.wear_laps
    target.cliff_laps, target.temp_c, target.fresh_s = source.cliff_laps, source.temp_c, source.fresh_s
    target.fuel_kg, target.order, target.compound = source.fuel_kg, source.order, source.compound
    target.age_laps, target.drive, target.used = source.age_laps, source.drive, source.used
    target.stops, target.out, target.out_lap = source.stops, source.out, source.out_lap


@compiled
def copy_race(source: Record, target: Record) -> None:
    """Copy the state of a race beside its cars."""
    target.leader_s, target.status = source.leader_s, source.status
    target.status_age, target.status_left = source.status_age, source.status_left
