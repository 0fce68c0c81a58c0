"""The definition of a batch of races, and its checks.

Axes: E episodes (races), N cars, L laps. All episodes of a batch drive each lap together.
"""
from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from f1_pipelines.sim.engine.parameters import MEDIUM, STATUSES, CircuitParameters, EngineParameters


class BadSetup(ValueError):
    """A race that cannot be run; the message says what came and what was wanted."""


@dataclass(frozen=True)
class RaceSetup:
    """A batch of races. Arrays may omit axes of length 1: (N,) or a number applies to every episode.

    The number of episodes is that of `seeds`, the number of cars that of `car_pace_s`.
    """

    circuits: tuple[CircuitParameters, ...]
    seeds: Any  # (E,) 0 .. 2^63
    car_pace_s: Any  # (E, N) s/lap against the median car, + is slower
    driver_pace_s: Any = 0.0  # (E, N) s/lap, the same
    circuit_of: Any = 0  # (E,) index into circuits
    race_laps: Any = None  # (E,) default: the circuit's Grand Prix distance
    car_numbers: Any = None  # (E, N) distinct within a race, the keys of the noise; default 1 .. N
    team: Any = None  # (E, N) cars of one team queue at the box; None: no car does
    grid: Any = None  # (E, N) 1 .. N; default: columns in order
    start_gap_s: Any = None  # (E, N) gap to the leader of a race that is joined under way (no standing start)
    start_compound: Any = MEDIUM  # (E, N)
    start_age_laps: Any = 0  # (E, N)
    start_fuel_kg: Any = None  # (E, N) default: enough for the distance and half a lap
    rain: Any = None  # (E, L) intensity 0 .. 1; None: dry
    start_wetness: Any = 0.0  # (E,)
    status: Any = None  # (E, L) of each lap; None: drawn
    accident_scale: Any = 1.0  # (E, N) x the circuit's hazard
    mechanical_scale: Any = 1.0  # (E, N)
    wear_scale: Any = 1.0  # (E,) x the circuit's wear; sprint families have more
    track_heat_c: Any = 0.0  # (E,) tyre temperature relative to a normal day
    two_compound_rule: Any = True  # (E,)
    engine: EngineParameters = field(default_factory=EngineParameters)

    def take(self, episodes: np.ndarray, **changes: Any) -> RaceSetup:
        """Select episodes, in this order and with repetitions; `changes` as in `dataclasses.replace`."""
        count = len(np.atleast_1d(self.seeds))
        picked = {}
        for f in fields(self):
            value = getattr(self, f.name)
            per_car = f.name in _TWO_AXES and np.ndim(value) < 2  # (N,) or (L,) applies to every episode
            if f.name in ("circuits", "engine") or value is None or per_car or np.ndim(value) == 0:
                continue
            value = np.asarray(value)
            picked[f.name] = value if value.shape[0] == 1 and count > 1 else value[episodes]
        return replace(self, **{**picked, **changes})


_TWO_AXES = ("car_pace_s", "driver_pace_s", "car_numbers", "team", "grid", "start_gap_s", "start_compound",
             "start_age_laps", "start_fuel_kg", "accident_scale", "mechanical_scale", "rain", "status")


def check_setup(setup: RaceSetup, race_laps: np.ndarray, numbers: np.ndarray, grid: np.ndarray, first: int) -> None:
    """Refuse a setup that would run but mean nothing.

    Args:
        setup: The batch.
        race_laps: Its race distances, (E,).
        numbers: Its car numbers, (E, N).
        grid: Its grid slots, (E, N).
        first: Laps already driven.

    Raises:
        BadSetup: A field is out of range.
    """
    cars = numbers.shape[1]
    if np.min(setup.seeds) < 0:
        raise BadSetup(f"seeds holds {np.min(setup.seeds)}; wanted 0 to 2^63 - 1.")
    if not np.isfinite(setup.car_pace_s).all():
        raise BadSetup("car_pace_s holds NaN or infinity; every car needs a pace.")
    if race_laps.min() < 1 or first >= race_laps.max():
        raise BadSetup(f"race_laps from {race_laps.min()} to {race_laps.max()} with {first} already driven; "
                       "wanted at least one lap to go.")
    if setup.car_numbers is not None and _has_duplicates(numbers):
        raise BadSetup("car_numbers holds a number twice in a race; give each car its own, the noise is keyed by it.")
    if setup.grid is not None and setup.start_gap_s is None and (np.sort(grid, axis=1) != np.arange(1, cars + 1)).any():
        raise BadSetup(f"grid must hold each of 1..{cars} once per race.")
    if setup.start_gap_s is not None and _has_duplicates(np.asarray(setup.start_gap_s)):
        raise BadSetup("start_gap_s holds a gap twice in a race; no two cars can be at the same place.")
    compounds = np.asarray(setup.start_compound)
    if compounds.min() < 0 or compounds.max() > 4:
        raise BadSetup("start_compound must be 0..4 (soft, medium, hard, inter, wet).")
    for name, trace in (("rain", setup.rain), ("status", setup.status)):
        if trace is not None and np.shape(trace)[-1] != race_laps.max():
            raise BadSetup(f"{name} covers {np.shape(trace)[-1]} laps; wanted {race_laps.max()}, one per lap.")
    if setup.status is not None and not 0 <= np.min(setup.status) <= np.max(setup.status) < len(STATUSES):
        raise BadSetup("status must be 0..3 (green, vsc, sc, red).")


def _has_duplicates(values: np.ndarray) -> bool:
    """Whether any row holds a value more than once."""
    ordered = values.copy()
    ordered.sort(axis=-1)
    return bool((ordered[..., 1:] == ordered[..., :-1]).any())
