"""A batch of races laid out for the engine: `prepare(setup) -> Race`.

Everything that depends on the seed alone is drawn here, once, so that a step is a handful of array operations and a
forked race meets the same noise.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from f1_pipelines.sim import lookups, noise, weather
from f1_pipelines.sim.draws import lap_draws, start_scatter, status_tables, status_trace
from f1_pipelines.sim.drive import DRIVE_TABLE
from f1_pipelines.sim.parameters import GREEN, MEDIUM, SLICES, EngineParameters
from f1_pipelines.sim.priors import REFERENCE_AGE_LAPS
from f1_pipelines.sim.setup import RaceSetup, check_setup


@dataclass(frozen=True, eq=False)
class Race:
    """What the engine looks up. Tables by lap have the row `lap - first - 1`; nothing here changes during a race."""

    setup: RaceSetup
    episodes: int
    cars: int
    laps: int  # longest race of the batch
    first: int  # laps already driven when the tables begin
    race_laps: np.ndarray  # (E,)
    shortest: int
    rows: np.ndarray  # (E, N) flat index of each episode's first car
    rows5: np.ndarray  # (E, N) flat index of each episode's first compound
    places: np.ndarray  # (1, N) 0 .. N - 1
    grid_order: np.ndarray  # (E, N) flat car index by place before the start
    start_key: np.ndarray | None  # (E, N) order through lap 1 by car; None: joined under way
    lap_s: np.ndarray  # (L, E, N) circuit, trend, car, driver and noise
    circuit_s: np.ndarray  # (L, E, 1) circuit and trend, of which lap_s is made
    neutral_s: np.ndarray  # (L, E, 1) green lap of a median car on used mediums, without its fuel
    noise_s: np.ndarray  # (L, E, N)
    unseen_s: np.ndarray  # (L, E, N) part of the noise that gives nobody a chance to pass, negative
    needed_s: np.ndarray  # (L, E, N) advantage needed to pass with no gap
    follow_s: np.ndarray  # (L, E, N) by place: least time behind the leader of a train, summed up
    stop_s: np.ndarray  # (L, E, N) scatter of stops
    hazard_u: np.ndarray  # (L, E, N)
    puncture_u: np.ndarray  # (L, E, N)
    cliff_factor: np.ndarray  # (L, E, N) of a set put on after that lap
    tyres: np.ndarray  # (3, E * 5) offset s, s per lap of wear, laps of wear to the cliff
    wetness: np.ndarray  # (L, E)
    wet: bool  # whether any episode sees water
    weather: np.ndarray  # (L, 3, E * 5) s/lap, x wear, x accidents by compound; one row if dry
    status: np.ndarray | None  # (3, L + 1, E) status, laps so far, laps left; None: drawn
    slow_laps: list[bool]  # (L + 1) whether a given status is anything but green in any episode
    event_u: np.ndarray | None  # (2, L, E)
    eventful: list[bool]  # (L) whether the background alone may end a green period after that lap
    status_rates: np.ndarray | None  # (2, E, 4) background chance in lap 1 and in others
    status_factors: np.ndarray | None  # (E, 4)
    stop_loss_s: np.ndarray  # (E * 5) green, VSC, SC, red, VSC that ends
    standstill: np.ndarray  # (E, 1) s, part of the loss
    # The same for all cars of an episode, written out for each: numpy takes a third of the time for equal shapes.
    gap_ratio: np.ndarray  # (E, N) s of advantage that a second of gap asks for
    fuel_effect: np.ndarray  # (E, N) s/kg
    fuel_burn: np.ndarray  # (E, N) kg/lap
    dirty_air: np.ndarray  # (E, N) s
    dirty_reach: np.ndarray  # (E, N) 1/s
    wear_scale: np.ndarray  # (E, N)
    heat_c: np.ndarray  # (E, N)
    lapped_loss: np.ndarray  # (E, 1) s/lap
    fresh_s: np.ndarray  # (E, N) s that a new set is slower than its line, negative
    first_lap_loss: np.ndarray  # (E, 1) s
    slow_ratio: np.ndarray  # (2 K, E, 1) x green lap: VSC, its end, SC by lap; leader, then others
    by_status: np.ndarray  # (4, 4) of green, VSC, SC and red: x wear, x fuel, C added to the tyres, x hazards
    accident: np.ndarray  # (E, N) chance per lap after the first
    accident_first: np.ndarray  # (E, N)
    mechanical: np.ndarray  # (E, N) chance per lap of a mechanical failure
    other: np.ndarray  # (E, N) the same, and of debris in a tyre
    mate: np.ndarray | None  # (E, N) flat index of the team mate, itself without one
    drives: np.ndarray  # (7, 256)
    pass_cost_s: np.ndarray  # (2 N - 1,) s by places gained in a lap, those lost counted from the end
    engine: EngineParameters  # as arrays of no axis: twice as quick as floats beside an array

    def row(self, lap: int) -> int:
        """Row of a lap in the tables by lap."""
        return lap - self.first - 1


def prepare(setup: RaceSetup, first: int = 0) -> Race:
    """Draw the noise of every lap after `first` and lay out the tables.

    Raises:
        BadSetup: Something in the setup is out of range; the message names it.
    """
    engine = setup.engine
    seeds = np.atleast_1d(np.asarray(setup.seeds)).astype(np.uint64)
    E, N = len(seeds), np.asarray(setup.car_pace_s).shape[-1]
    values = np.array([c.values for c in setup.circuits])[np.zeros(E, dtype=np.int64) + setup.circuit_of]

    def circuit(name: str) -> np.ndarray:
        return values[:, SLICES[name]]

    def per_car(value: Any, dtype: type = float) -> np.ndarray:
        wide = np.empty((E, N), dtype=dtype)
        wide[:] = value
        return wide

    def per_episode(value: Any, dtype: type = float) -> np.ndarray:
        return np.zeros(E, dtype=dtype) + np.asarray(value, dtype=dtype)

    race_laps = per_episode(circuit("race_laps")[:, 0] if setup.race_laps is None else setup.race_laps, np.int64)
    laps = int(race_laps.max())
    numbers = per_car(np.arange(1, N + 1) if setup.car_numbers is None else setup.car_numbers, np.int64)
    grid = per_car(np.arange(1, N + 1) if setup.grid is None else setup.grid)
    check_setup(setup, race_laps, numbers, grid, first)
    rows = per_car(np.arange(E)[:, None] * N, np.int64)
    lap = np.arange(first + 1, laps + 1)
    draws = lap_draws(engine, seeds, first, laps, numbers, circuit)
    wet = setup.rain is not None or bool(np.any(setup.start_wetness))
    if wet:
        rain = np.zeros((E, laps)) if setup.rain is None else np.broadcast_to(setup.rain, (E, laps))
        wetness = weather.wetness_by_lap(rain.T, per_episode(setup.start_wetness))[first:]
        draws["noise_s"] *= np.where(wetness > weather.DAMP, weather.WET_SCATTER, 1.0)[:, :, None]
    else:
        wetness = np.zeros((len(lap), E))
    by_tyre = weather.by_tyre(wetness if wet else wetness[:1], circuit("base_lap_s"))
    half = 0.5 * circuit("race_laps")
    # The base lap is that of a Grand Prix at half distance: half its trend behind, and the fuel on board with which a
    # car begins that lap. The grid has half a lap's more than the distance takes.
    circuit_s = (circuit("base_lap_s") + (lap[:, None, None] - half) * circuit("track_trend_s_per_lap")
                 - (half + 1.5) * circuit("fuel_burn_kg_per_lap") * circuit("fuel_effect_s_per_kg"))
    spread = (circuit("race_laps")[:, 0] - 1.0).clip(1.0)[:, None]
    later = (circuit("accident_per_race") - engine.accident_first_lap).clip(0.0) / spread
    scale = per_car(setup.accident_scale)
    mechanical = circuit("mechanical_per_race") / (spread + 1.0) * per_car(setup.mechanical_scale)
    trace, event_u, eventful = status_trace(setup.status, E, laps), None, []
    status_factors = status_rates = None
    if trace is None:
        status_factors, status_rates = status_tables(circuit, spread)
        event_u = noise.uniforms(seeds, lap, np.array([[noise.EPISODE]]), (noise.EVENT, noise.DURATION))[..., 0]
        chance = status_rates.sum(axis=2) * (1.0 + 1e-12)
        eventful = (event_u[0] < np.maximum(chance[0] * (lap == 1)[:, None], chance[1])).any(axis=1).tolist()
    gaps = None if setup.start_gap_s is None else per_car(setup.start_gap_s)
    order = (grid if gaps is None else gaps).argsort(axis=1, kind="stable") + rows
    return Race(
        setup=setup, episodes=E, cars=N, laps=laps, first=first, race_laps=race_laps, shortest=int(race_laps.min()),
        rows=rows, rows5=per_car(np.arange(E)[:, None] * 5, np.int64), places=np.arange(N)[None], grid_order=order,
        start_key=None if first or gaps is not None else grid + start_scatter(seeds, numbers, circuit),
        lap_s=draws["noise_s"] + (circuit_s + (per_car(setup.car_pace_s) + per_car(setup.driver_pace_s))),
        circuit_s=circuit_s,
        neutral_s=circuit_s + REFERENCE_AGE_LAPS * circuit("degradation_s_per_lap")[:, MEDIUM:MEDIUM + 1],
        unseen_s=draws["noise_s"] * (engine.pass_lap_noise * lookups.openness(engine, circuit("pass_circuit")) - 1.0),
        **draws,
        tyres=np.stack([circuit("compound_offset_s"), circuit("degradation_s_per_lap"),
                        circuit("cliff_laps")]).reshape(3, E * 5),
        wetness=wetness, wet=wet, weather=by_tyre, status=trace, event_u=event_u, eventful=eventful,
        slow_laps=[] if trace is None else (trace[0] != GREEN).any(axis=1).tolist(),
        status_rates=status_rates, status_factors=status_factors,
        stop_loss_s=np.concatenate([
            circuit("stop_loss_green_s"), circuit("stop_loss_vsc_s"), circuit("stop_loss_sc_s"), np.zeros((E, 1)),
            circuit("stop_loss_vsc_ending_s")], axis=1).ravel(),
        standstill=circuit("standstill_s"), gap_ratio=per_car(circuit("pass_per_gap") / circuit("pass_per_advantage")),
        fuel_effect=per_car(circuit("fuel_effect_s_per_kg")), fuel_burn=per_car(circuit("fuel_burn_kg_per_lap")),
        dirty_air=per_car(engine.dirty_air_share * circuit("dirty_air_s")),
        dirty_reach=per_car(1.0 / circuit("dirty_air_reach_s")),
        lapped_loss=circuit("lapped_loss_s"), fresh_s=per_car(-circuit("fresh_tyre_gain_s")),
        first_lap_loss=circuit("first_lap_loss_s"),
        slow_ratio=lookups.slow_ratio(engine, circuit), by_status=lookups.by_status(engine),
        accident=later * scale, accident_first=engine.accident_first_lap * scale,
        mechanical=mechanical, other=mechanical + engine.puncture_per_lap,
        wear_scale=per_car(per_episode(setup.wear_scale)[:, None]),
        heat_c=per_car(per_episode(setup.track_heat_c)[:, None]),
        mate=None if setup.team is None else lookups.mates(per_car(setup.team, np.int64), rows),
        pass_cost_s=np.repeat([0.0, engine.passed_loss_s, engine.passer_loss_s], [1, N - 1, N - 1]),
        drives=DRIVE_TABLE, engine=lookups.as_arrays(engine))
