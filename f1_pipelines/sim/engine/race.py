"""A batch of races prepared for the engine: `prepare(setup) -> Race`.

Everything that depends only on the seed is drawn here, once. A step is then a handful of array operations, and a forked
race gets the same noise.
"""
from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from f1_pipelines.sim.engine import race_arrays
from f1_pipelines.sim.engine.parameters import EngineParameters
from f1_pipelines.sim.engine.race_arrays import Batch
from f1_pipelines.sim.engine.seeded_tables import lap_draws
from f1_pipelines.sim.engine.setup import RaceSetup, check_setup
from f1_pipelines.sim.engine.weather import DAMP, WET_SCATTER


@dataclass(frozen=True, eq=False)
class Race:
    """Lookup tables of the engine. Tables by lap use the row `lap - first - 1`; nothing changes during a race."""

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
    start_key: np.ndarray | None  # (E, N) sort key by car for the order after lap 1; None: joined under way
    lap_s: np.ndarray  # (L, E, N) circuit, trend, car, driver and noise
    circuit_s: np.ndarray  # (L, E, 1) circuit and trend, a part of lap_s
    neutral_s: np.ndarray  # (L, E, 1) green lap of a median car on used mediums, without its fuel
    noise_s: np.ndarray  # (L, E, N)
    unseen_s: np.ndarray  # (L, E, N) minus the part of the noise that opens no pass
    needed_s: np.ndarray  # (L, E, N) advantage needed to pass with no gap
    follow_s: np.ndarray  # (L, E, N) by place: least time behind the leader of a train, summed up
    stop_s: np.ndarray  # (L, E, N) scatter of stops
    hazard_u: np.ndarray  # (L, E, N)
    risky: list[bool]  # (L) whether any car may fail in that lap, in the worst case
    puncture_u: np.ndarray  # (L, E, N)
    cliff_factor: np.ndarray  # (L, E, N) of a set put on after that lap
    tyres: np.ndarray  # (3, E * 5) offset s, s per lap of wear, laps of wear to the cliff
    wetness: np.ndarray  # (L, E)
    wet: bool  # whether any episode sees water
    weather: np.ndarray  # (L, 3, E * 5) s/lap, x wear, x accidents by compound; one row if dry
    status: np.ndarray | None  # (3, L + 1, E) status, laps so far, laps left; None: drawn lap by lap
    slow_laps: list[bool]  # (L + 1) whether a given status is anything but green in any episode
    event_u: np.ndarray | None  # (2, L, E)
    eventful: list[bool]  # (L) whether the background alone may end a green period after that lap
    status_rates: np.ndarray | None  # (2, E, 4) background chance in lap 1 and in others
    status_factors: np.ndarray | None  # (E, 4)
    stop_loss_s: np.ndarray  # (E * 5) s under green, VSC, SC, red, ending VSC
    standstill: np.ndarray  # (E, 1) s, part of the loss
    # Equal for all cars of an episode, but repeated for each: numpy is three times as fast on equal shapes.
    gap_ratio: np.ndarray  # (E, N) s of advantage that a second of gap asks for
    fuel_effect: np.ndarray  # (E, N) s/kg
    fuel_burn: np.ndarray  # (E, N) kg/lap
    dirty_air: np.ndarray  # (E, N) s
    dirty_reach: np.ndarray  # (E, N) 1/s
    wear_scale: np.ndarray  # (E, N)
    heat_c: np.ndarray  # (E, N)
    lapped_loss: np.ndarray  # (E, 1) s/lap
    fresh_s: np.ndarray  # (E, N) s that a new set adds to a lap, negative
    first_lap_loss: np.ndarray  # (E, 1) s
    slow_ratio: np.ndarray  # (2 K, E, 1) x green lap: VSC, its end, SC by lap; leader, then others
    by_status: np.ndarray  # (4, 4) of green, VSC, SC and red: x wear, x fuel, C added to the tyres, x hazards
    accident: np.ndarray  # (E, N) chance per lap after the first
    accident_first: np.ndarray  # (E, N)
    mechanical: np.ndarray  # (E, N) chance per lap of a mechanical failure
    other: np.ndarray  # (E, N) the same, plus that of a puncture by debris
    mate: np.ndarray | None  # (E, N) flat index of the team mate; its own where it has none
    drives: np.ndarray  # (7, 256)
    pass_cost_s: np.ndarray  # (2 N - 1,) s by places gained in a lap; places lost index from the end
    engine: EngineParameters  # as 0-d arrays: twice as fast as floats beside an array

    @cached_property
    def given_status(self) -> tuple[np.ndarray, ...]:
        """Status, laps so far and laps left, (L + 1, E) each; empty where the status is drawn."""
        return () if self.status is None else tuple(self.status)

    @cached_property
    def share(self) -> np.ndarray:
        """Share of the distance after each lap, (L + 1, E)."""
        return np.minimum(np.arange(self.laps + 1)[:, None] / self.race_laps, 1.0)

    def row(self, lap: int) -> int:
        """Row of a lap in the tables by lap."""
        return lap - self.first - 1


def prepare(setup: RaceSetup, first: int = 0) -> Race:
    """Draw the noise of every lap after `first` and build the tables.

    Raises:
        BadSetup: A field of the setup is out of range; the message names it.
    """
    batch = Batch.of(setup, first)
    cars = np.arange(1, batch.cars + 1)
    race_laps = batch.per_episode(batch.circuit("race_laps")[:, 0] if setup.race_laps is None else setup.race_laps,
                                  np.int64)
    numbers = batch.per_car(cars if setup.car_numbers is None else setup.car_numbers, np.int64)
    grid = batch.per_car(cars if setup.grid is None else setup.grid)
    check_setup(setup, race_laps, numbers, grid, first)
    laps = int(race_laps.max())
    lap = np.arange(first + 1, laps + 1)
    draws: dict[str, Any] = lap_draws(setup.engine, batch.seeds, first, laps, numbers, batch.circuit)
    water = race_arrays.water(batch, laps)
    if water["wet"]:
        draws["noise_s"] *= np.where(water["wetness"] > DAMP, WET_SCATTER, 1.0)[:, :, None]
    return Race(
        setup=setup, episodes=len(batch.seeds), cars=batch.cars, laps=laps, first=first, race_laps=race_laps,
        shortest=int(race_laps.min()), **race_arrays.indices(batch, grid, numbers), **water, **draws,
        **race_arrays.lap_times(batch, lap, draws["noise_s"]),
        **race_arrays.failures(batch, draws["hazard_u"], float(water["weather"][:, 2].max())),
        **race_arrays.statuses(batch, lap), **race_arrays.constants(batch))
