"""The arrays that `prepare` builds for a batch, one function per subject. Axes and units are those of `Race`."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from f1_pipelines.sim.engine import noise, parameter_tables, weather
from f1_pipelines.sim.engine.drive import DRIVE_TABLE
from f1_pipelines.sim.engine.parameters import GREEN, MEDIUM, SLICES, EngineParameters
from f1_pipelines.sim.engine.priors import REFERENCE_AGE_LAPS
from f1_pipelines.sim.engine.seeded_tables import start_scatter, status_tables, status_trace
from f1_pipelines.sim.engine.setup import RaceSetup

Tables = dict[str, Any]  # fields of `Race` by name
ABOVE = 1.0 + 1e-12  # x a chance: it stays an upper bound whatever the order of its factors


@dataclass(frozen=True, eq=False)
class Batch:
    """The sizes of a batch, and helpers that broadcast values to them."""

    setup: RaceSetup
    seeds: np.ndarray  # (E,) uint64
    cars: int
    values: np.ndarray  # (E, K) circuit parameters
    first: int  # laps already driven
    from_grid: bool

    @classmethod
    def of(cls, setup: RaceSetup, first: int) -> Batch:
        """Create the batch of a setup."""
        seeds = np.atleast_1d(np.asarray(setup.seeds)).astype(np.uint64)
        values = np.array([c.values for c in setup.circuits])[np.zeros(len(seeds), dtype=np.int64) + setup.circuit_of]
        cars = np.asarray(setup.car_pace_s).shape[-1]
        return cls(setup, seeds, cars, values, first, first == 0 and setup.start_gap_s is None)

    @property
    def engine(self) -> EngineParameters:
        """Parameters shared by the whole batch."""
        return self.setup.engine

    def circuit(self, name: str) -> np.ndarray:
        """Get a circuit parameter by name, (E, width)."""
        return self.values[:, SLICES[name]]

    def per_car(self, value: Any, dtype: type = float) -> np.ndarray:
        """Broadcast a value to (E, N)."""
        wide: np.ndarray = np.empty((len(self.seeds), self.cars), dtype=dtype)
        wide[:] = value
        return wide

    def per_episode(self, value: Any, dtype: type = float) -> np.ndarray:
        """Broadcast a value to (E,)."""
        wide: np.ndarray = np.empty(len(self.seeds), dtype=dtype)
        wide[:] = value
        return wide


def indices(batch: Batch, grid: np.ndarray, numbers: np.ndarray) -> Tables:
    """Where each episode's cars and compounds begin in flat arrays, and the order on the grid."""
    setup, at = batch.setup, np.arange(len(batch.seeds))[:, None]
    rows = batch.per_car(at * batch.cars, np.int64)
    gaps = None if setup.start_gap_s is None else batch.per_car(setup.start_gap_s)
    return {
        "rows": rows, "rows5": batch.per_car(at * 5, np.int64), "places": np.arange(batch.cars)[None],
        "grid_order": (grid if gaps is None else gaps).argsort(axis=1, kind="stable") + rows,
        "start_key": grid + start_scatter(batch.seeds, numbers, batch.circuit) if batch.from_grid else None,
        "mate": None if setup.team is None else parameter_tables.mates(batch.per_car(setup.team, np.int64), rows)}


def water(batch: Batch, laps: int) -> Tables:
    """Wetness by lap, and its effects on each compound."""
    setup, base_lap_s = batch.setup, batch.circuit("base_lap_s")
    if setup.rain is None and not np.any(setup.start_wetness):
        dry = np.zeros((laps - batch.first, len(batch.seeds)))
        return {"wet": False, "wetness": dry, "weather": weather.by_tyre(dry[:1], base_lap_s)}
    rain = np.broadcast_to(0.0 if setup.rain is None else setup.rain, (len(batch.seeds), laps))
    wetness = weather.wetness_by_lap(rain.T, batch.per_episode(setup.start_wetness))[batch.first:]
    return {"wet": True, "wetness": wetness, "weather": weather.by_tyre(wetness, base_lap_s)}


def lap_times(batch: Batch, lap: np.ndarray, noise_s: np.ndarray) -> Tables:
    """Lap times before tyres, fuel and traffic, by lap."""
    setup, circuit, engine = batch.setup, batch.circuit, batch.engine
    half = 0.5 * circuit("race_laps")
    # The base lap is that of a Grand Prix at half distance: it contains half of the trend, and the fuel on board at its
    # start. On the grid a car holds half a lap's fuel more than the distance takes.
    circuit_s = (circuit("base_lap_s") + (lap[:, None, None] - half) * circuit("track_trend_s_per_lap")
                 - (half + 1.5) * circuit("fuel_burn_kg_per_lap") * circuit("fuel_effect_s_per_kg"))
    return {
        "circuit_s": circuit_s,
        "lap_s": noise_s + (circuit_s + (batch.per_car(setup.car_pace_s) + batch.per_car(setup.driver_pace_s))),
        "neutral_s": circuit_s + REFERENCE_AGE_LAPS * circuit("degradation_s_per_lap")[:, MEDIUM:MEDIUM + 1],
        "unseen_s": noise_s * (
            engine.pass_lap_noise * parameter_tables.openness(engine, circuit("pass_circuit")) - 1.0)}


def failures(batch: Batch, hazard_u: np.ndarray, accident_x: float) -> Tables:
    """Chances that a car retires, and the laps in which one may.

    Args:
        hazard_u: Uniform draws, (L, E, N).
        accident_x: Largest factor by which water multiplies accidents in these races.
    """
    setup, circuit, engine = batch.setup, batch.circuit, batch.engine
    spread, scale = race_length(batch), batch.per_car(setup.accident_scale)
    accident = (circuit("accident_per_race") - engine.accident_first_lap).clip(0.0) / spread * scale
    first = engine.accident_first_lap * scale
    mechanical = circuit("mechanical_per_race") / (spread + 1.0) * batch.per_car(setup.mechanical_scale)
    other = mechanical + engine.puncture_per_lap
    worst, closed = DRIVE_TABLE[6].max() * max(accident_x, 1.0), max(engine.slow_hazard, 1.0) * ABOVE
    risky = hazard_u < closed * (accident * worst + other)
    if batch.from_grid:
        risky[0] = hazard_u[0] < closed * (first * worst + other)
    return {"accident": accident, "accident_first": first, "mechanical": mechanical, "other": other,
            "risky": risky.any(axis=(1, 2)).tolist()}


def statuses(batch: Batch, lap: np.ndarray) -> Tables:
    """The status of each lap where it is given, else the tables to draw it from."""
    none = dict.fromkeys(("status", "event_u", "status_rates", "status_factors"))
    trace = status_trace(batch.setup.status, len(batch.seeds), int(lap[-1]))
    if trace is not None:
        return {**none, "status": trace, "slow_laps": (trace[0] != GREEN).any(axis=1).tolist(), "eventful": []}
    factors, rates = status_tables(batch.circuit, race_length(batch))
    u = noise.uniforms(batch.seeds, lap, np.array([[noise.EPISODE]]), (noise.EVENT, noise.DURATION))[..., 0]
    chance = rates.sum(axis=2) * ABOVE
    eventful = u[0] < np.maximum(chance[0] * (lap == 1)[:, None], chance[1])
    return {**none, "event_u": u, "status_rates": rates, "status_factors": factors, "slow_laps": [],
            "eventful": eventful.any(axis=1).tolist()}


def constants(batch: Batch) -> Tables:
    """What does not change from lap to lap, mostly circuit parameters repeated for each car."""
    setup, circuit, engine, per_car = batch.setup, batch.circuit, batch.engine, batch.per_car
    count, cars = len(batch.seeds), batch.cars
    tyres = [circuit(name) for name in ("compound_offset_s", "degradation_s_per_lap", "cliff_laps")]
    losses = [circuit(f"stop_loss_{name}_s") for name in ("green", "vsc", "sc")]
    return {
        "tyres": np.array(tyres).reshape(3, count * 5),
        "stop_loss_s": np.concatenate([*losses, np.zeros((count, 1)), circuit("stop_loss_vsc_ending_s")],
                                      axis=1).ravel(),
        "standstill": circuit("standstill_s"), "lapped_loss": circuit("lapped_loss_s"),
        "first_lap_loss": circuit("first_lap_loss_s"), "slow_ratio": parameter_tables.slow_ratio(engine, circuit),
        "gap_ratio": per_car(circuit("pass_per_gap") / circuit("pass_per_advantage")),
        "fuel_effect": per_car(circuit("fuel_effect_s_per_kg")), "fuel_burn": per_car(circuit("fuel_burn_kg_per_lap")),
        "dirty_air": per_car(engine.dirty_air_share * circuit("dirty_air_s")),
        "dirty_reach": per_car(1.0 / circuit("dirty_air_reach_s")), "fresh_s": per_car(-circuit("fresh_tyre_gain_s")),
        "wear_scale": per_car(batch.per_episode(setup.wear_scale)[:, None]),
        "heat_c": per_car(batch.per_episode(setup.track_heat_c)[:, None]), "drives": DRIVE_TABLE,
        "by_status": parameter_tables.by_status(engine), "pass_cost_s": parameter_tables.pass_cost_s(engine, cars),
        "engine": parameter_tables.as_arrays(engine)}


def race_length(batch: Batch) -> np.ndarray:
    """Laps of a Grand Prix there after the first, (E, 1): chances per race are spread over them."""
    return (batch.circuit("race_laps")[:, 0] - 1.0).clip(1.0)[:, None]
