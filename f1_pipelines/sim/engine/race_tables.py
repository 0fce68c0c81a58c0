"""The tables that `prepare` builds for a batch, one function per subject: `tables_of(batch)`. Axes as in `Tables`."""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from f1_pipelines.sim.engine import noise, track_status
from f1_pipelines.sim.engine.drive import DRIVES
from f1_pipelines.sim.engine.lap_draws import DRAW_SCALE, fill_laps
from f1_pipelines.sim.engine.parameters import (
    COMPOUNDS,
    GREEN,
    MEDIUM,
    RED,
    SC,
    SLICES,
    VSC,
    CircuitParameters,
    EngineParameters,
)
from f1_pipelines.sim.engine.priors import REFERENCE_AGE_LAPS
from f1_pipelines.sim.engine.setup import RaceSetup
from f1_pipelines.sim.engine.tables import (
    ENGINE,
    LAP_OF_CAR,
    LAP_OF_RACE,
    OF_CAR,
    OF_RACE,
    STATUS_EFFECT,
    TYRE,
    Tables,
)
from f1_pipelines.sim.engine.weather import DAMP, wetness_by_lap

START_SCALE = 1.05  # places of scatter per mean place changed


class Batch(NamedTuple):
    """A setup broadcast to its batch."""

    setup: RaceSetup
    seeds: np.ndarray  # (T,) uint64
    numbers: np.ndarray  # (T, N) car numbers
    grid: np.ndarray  # (T, N)
    race_laps: np.ndarray  # (T,)
    values: np.ndarray  # (T, K) circuit parameters
    first: int

    @classmethod
    def of(cls, setup: RaceSetup, first: int) -> Batch:
        """Create the batch of a setup."""
        seeds = np.atleast_1d(np.asarray(setup.seeds)).astype(np.uint64)
        values = np.array([c.values for c in setup.circuits])[np.zeros(len(seeds), dtype=np.int64) + setup.circuit_of]
        cars = np.arange(1, np.shape(setup.car_pace_s)[-1] + 1)
        shape = (len(seeds), len(cars))
        race_laps = values[:, SLICES["race_laps"]][:, 0] if setup.race_laps is None else setup.race_laps
        return cls(setup, seeds, broadcast(cars if setup.car_numbers is None else setup.car_numbers, shape, np.int64),
                   broadcast(cars if setup.grid is None else setup.grid, shape),
                   broadcast(race_laps, shape[:1], np.int64), values, first)

    def circuit(self, name: str) -> np.ndarray:
        """Get a circuit parameter by name, (T,), or (T, 5) by compound."""
        columns = self.values[:, SLICES[name]]
        return columns[:, 0] if columns.shape[1] == 1 else columns

    @property
    def standing_start(self) -> bool:
        """Whether the race starts from the grid."""
        return self.first == 0 and self.setup.start_gap_s is None

    @property
    def race_length(self) -> np.ndarray:
        """Laps of a Grand Prix there after the first, (T,): chances per race are spread over them."""
        return (self.circuit("race_laps") - 1.0).clip(1.0)


def broadcast(value: Any, shape: tuple[int, ...], dtype: type = float) -> np.ndarray:
    """A new array of one value, or of an array that lacks leading axes."""
    wide: np.ndarray = np.empty(shape, dtype=dtype)
    wide[:] = value
    return wide


def tables_of(batch: Batch) -> Tables:
    """Draw the noise of every lap and build the tables."""
    count, laps = len(batch.seeds), int(batch.race_laps.max()) - batch.first
    lap_of_race, lap_of_car = _laps_of_races(batch, laps), np.empty((laps, *batch.numbers.shape), LAP_OF_CAR)
    of_race, of_car, engine = _of_races(batch), _of_cars(batch), engine_record(batch.setup.engine)
    of_race["two_compounds"] &= ~_is_wet(lap_of_race["wetness"][:-1], batch)
    fill_laps(batch.seeds, batch.numbers, lap_of_race, _draw_scales(batch), engine, batch.first, lap_of_car)
    pace = broadcast(batch.setup.car_pace_s, batch.numbers.shape) + broadcast(
        batch.setup.driver_pace_s, batch.numbers.shape)
    lap_of_car["lap_s"] = lap_of_car["noise_s"] + (lap_of_race["circuit_s"][:-1, :, None] + pace)
    rates, factors = _status_rates(batch)
    return Tables(
        np.arange(count), of_race, of_car, lap_of_race, lap_of_car, _tyres(batch), _stop_losses(batch),
        _slow_ratios(batch), rates, factors, _status_effects(batch.setup.engine), DRIVES, engine, batch.first)


def engine_record(parameters: EngineParameters) -> np.ndarray:
    """The parameters of the engine as a record, (1,)."""
    values = np.zeros(1, ENGINE)
    for name in ENGINE.fields or ():
        values[name] = getattr(parameters, name)
    return values


def _of_races(batch: Batch) -> np.ndarray:
    setup, circuit, engine = batch.setup, batch.circuit, batch.setup.engine
    races = np.zeros(len(batch.seeds), OF_RACE)
    for name, value in {
            "base_lap_s": circuit("base_lap_s"), "gap_ratio": circuit("pass_per_gap") / circuit("pass_per_advantage"),
            "fuel_effect": circuit("fuel_effect_s_per_kg"), "fuel_burn": circuit("fuel_burn_kg_per_lap"),
            "dirty_air": engine.dirty_air_share * circuit("dirty_air_s"),
            "dirty_reach": 1.0 / circuit("dirty_air_reach_s"), "fresh_s": -circuit("fresh_tyre_gain_s"),
            "wear_scale": setup.wear_scale, "heat_c": setup.track_heat_c, "lapped_loss": circuit("lapped_loss_s"),
            "first_lap_loss": circuit("first_lap_loss_s"), "standstill": circuit("standstill_s"),
            "start_wetness": setup.start_wetness,
            "race_laps": batch.race_laps, "standing_start": batch.standing_start,
            "given_status": setup.status is not None, "two_compounds": setup.two_compound_rule}.items():
        races[name] = value
    return races


def _of_cars(batch: Batch) -> np.ndarray:
    """Start, team and chances of failures of each car."""
    setup, circuit, engine, shape = batch.setup, batch.circuit, batch.setup.engine, batch.numbers.shape
    cars, length = np.zeros(shape, OF_CAR), batch.race_length[:, None]
    if batch.standing_start:
        cars["start_key"] = batch.grid + _start_scatter(batch)
    at_start = batch.grid if setup.start_gap_s is None else broadcast(setup.start_gap_s, shape)
    cars["grid_place"] = at_start.argsort(axis=1, kind="stable")
    cars["mate"] = np.arange(shape[1]) if setup.team is None else _mates(broadcast(setup.team, shape, np.int64))
    accidents = broadcast(setup.accident_scale, shape)
    later = (circuit("accident_per_race")[:, None] - engine.accident_first_lap).clip(0.0)
    cars["accident"] = later / length * accidents
    cars["accident_first"] = engine.accident_first_lap * accidents
    cars["mechanical"] = (circuit("mechanical_per_race")[:, None] / (length + 1.0)
                          * broadcast(setup.mechanical_scale, shape))
    cars["other"] = cars["mechanical"] + engine.puncture_per_lap
    return cars


def _mates(team: np.ndarray) -> np.ndarray:
    """Column of each car's team mate, (T, N); its own where it has none."""
    same = (team[:, :, None] == team[:, None, :]) & ~np.eye(team.shape[1], dtype=bool)
    return np.where(same.any(axis=2), same.argmax(axis=2), np.arange(team.shape[1]))


def _start_scatter(batch: Batch) -> np.ndarray:
    """Places that each car is shifted by before the field is sorted in lap 1, (T, N).

    Twice as far backwards as forwards, with a long tail: some starts fail. The scale was tuned until cars of a full
    grid change as many places as real ones.
    """
    u = noise.uniforms(batch.seeds, np.array([0]), batch.numbers, (noise.PASS,))[0, 0]
    return noise.heavy_tailed(u, 0.55, 1.1, -30.0, 30.0) * (START_SCALE * batch.circuit("first_lap_places")[:, None])


def _laps_of_races(batch: Batch, laps: int) -> np.ndarray:
    """Lap times of the circuit, water and statuses by lap, (L + 1, T)."""
    setup, circuit, first = batch.setup, batch.circuit, batch.first
    count, last = len(batch.seeds), first + laps
    table = np.zeros((laps + 1, count), LAP_OF_RACE)
    lap, half = np.arange(first + 1, last + 1)[:, None], 0.5 * circuit("race_laps")
    # The base lap is that of a Grand Prix at half distance: it contains half of the trend, and the fuel on board at its
    # start. On the grid a car holds half a lap's fuel more than the distance takes.
    circuit_s = (circuit("base_lap_s") + (lap - half) * circuit("track_trend_s_per_lap")
                 - (half + 1.5) * circuit("fuel_burn_kg_per_lap") * circuit("fuel_effect_s_per_kg"))
    table["circuit_s"][:-1] = circuit_s
    table["neutral_s"][:-1] = circuit_s + REFERENCE_AGE_LAPS * circuit("degradation_s_per_lap")[:, MEDIUM]
    if setup.rain is not None or np.any(setup.start_wetness):
        rain = np.broadcast_to(0.0 if setup.rain is None else setup.rain, (count, last))
        table["wetness"][:-1] = wetness_by_lap(rain.T, broadcast(setup.start_wetness, (count,)))[first:]
    if setup.status is None:
        u = noise.uniforms(batch.seeds, lap, np.array([[noise.EPISODE]]), (noise.EVENT, noise.DURATION))[..., 0]
        table["event_u"][:-1], table["duration_u"][:-1] = u
    else:
        status = np.full((last + 1, count), GREEN)
        status[:last] = np.asarray(setup.status, dtype=np.int64).reshape(-1, last).T
        table["status"] = status[first:]
        table["status_age"], table["status_left"] = (part[first:] for part in track_status.periods(status))
    return table


def _is_wet(wetness: np.ndarray, batch: Batch) -> np.ndarray:
    """Whether some lap is wet, so that the two-compound rule does not hold, (T,) bool."""
    driven = np.arange(batch.first + 1, batch.first + 1 + len(wetness))[:, None] <= batch.race_laps
    return np.asarray(((wetness > DAMP) & driven).any(axis=0))


def _draw_scales(batch: Batch) -> np.ndarray:
    circuit, engine = batch.circuit, batch.setup.engine
    scales, slope = np.zeros(len(batch.seeds), DRAW_SCALE), circuit("pass_per_advantage")
    scales["lap_scatter"], scales["stop_scatter"] = circuit("lap_scatter_s"), circuit("stop_scatter_s")
    scales["needed_s"] = -(circuit("pass_intercept") + circuit("pass_circuit")) / slope
    scales["needed_scale"] = engine.pass_chance / slope
    # How far lap noise opens passes at a circuit: 1 at usual circuits, 0 where no car can pass.
    openness = np.minimum(np.maximum(1.0 - circuit("pass_circuit") / engine.pass_shut_logit, 0.0), 1.0)
    scales["unseen"] = engine.pass_lap_noise * openness - 1.0
    return scales


def _tyres(batch: Batch) -> np.ndarray:
    tyres = np.empty((len(batch.seeds), len(COMPOUNDS)), TYRE)
    tyres["offset_s"] = batch.circuit("compound_offset_s")
    tyres["slope_s"], tyres["cliff_laps"] = batch.circuit("degradation_s_per_lap"), batch.circuit("cliff_laps")
    return tyres


def _stop_losses(batch: Batch) -> np.ndarray:
    green, vsc, sc, ending = (batch.circuit(f"stop_loss_{name}_s") for name in ("green", "vsc", "sc", "vsc_ending"))
    return np.stack([green, vsc, sc, np.zeros(len(green)), ending], axis=1)


def _slow_ratios(batch: Batch) -> np.ndarray:
    """Neutralised lap times over green ones, as `Tables.slow_ratio`."""
    circuit, fade = batch.circuit, batch.setup.engine.sc_catch_fade
    vsc = [circuit("vsc_lap_ratio"), circuit("vsc_last_lap_ratio")]
    leader = [*vsc, circuit("sc_first_leader_ratio"), *[circuit("sc_leader_ratio")] * len(fade)]
    others = [*vsc, circuit("sc_first_catch_ratio"), *(circuit("sc_catch_ratio") * factor for factor in fade)]
    return np.ascontiguousarray(np.array([leader, others]).transpose(2, 0, 1))


def _status_rates(batch: Batch) -> tuple[np.ndarray, np.ndarray]:
    """Background chances in lap 1 and later laps (T, 2, 4), and how readily retirements close a circuit (T, 4)."""
    rates, factors = np.zeros((len(batch.seeds), 2, 4)), np.zeros((len(batch.seeds), 4))
    pooled = CircuitParameters()
    for status, name in ((VSC, "vsc_per_race"), (SC, "sc_per_race"), (RED, "red_per_race")):
        rate = batch.circuit(name)
        factors[:, status] = rate / getattr(pooled, name)
        rates[:, 0, status] = track_status.BACKGROUND_FIRST_LAP[status] * factors[:, status]
        background = track_status.BACKGROUND[status] * rate - rates[:, 0, status]
        rates[:, 1, status] = background.clip(0.0) / batch.race_length
    return rates, factors


def _status_effects(engine: EngineParameters) -> np.ndarray:
    """Effects of a closed track on a lap, by status."""
    slow_c = engine.temp_slow_c
    return np.array([(1.0, 1.0, 0.0, 1.0),
                     (engine.wear_vsc, engine.fuel_vsc, slow_c * engine.temp_vsc, engine.slow_hazard),
                     (engine.wear_sc, engine.fuel_sc, slow_c, engine.slow_hazard),
                     (engine.wear_sc, engine.fuel_sc, slow_c, engine.slow_hazard)], STATUS_EFFECT)
