"""Batches of scenarios for the engine, of any size and mixed lengths."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from f1_pipelines.sim.engine.parameters import GREEN
from f1_pipelines.sim.engine.race import Race, prepare
from f1_pipelines.sim.engine.setup import RaceSetup
from f1_pipelines.sim.engine.state import RaceState, new_state
from f1_pipelines.sim.scenarios.plans import OpponentPlans
from f1_pipelines.sim.scenarios.scenario import HAZARD_SCALE, Scenario


class PreparedScenario(NamedTuple):
    """A scenario ready to be driven."""

    race: Race
    plans: OpponentPlans
    start: RaceState


@lru_cache(maxsize=256)
def prepared(scenario: Scenario) -> PreparedScenario:
    """The race of one scenario, cached: it is driven by several engineers, and again to judge them."""
    race = prepare(setup_of([scenario]))
    return PreparedScenario(race, plans_of([scenario]), new_state(race))


def plans_of(scenarios: Sequence[Scenario]) -> OpponentPlans:
    """Stack the opponents' plans of a batch."""
    lap, compound = (np.array([getattr(s, name) for s in scenarios]).transpose(1, 0, 2)
                     for name in ("plan_lap", "plan_compound"))
    return OpponentPlans.of(lap, compound, np.array([s.gamble_lap for s in scenarios]), bool(scenarios[0].weekend))


def setup_of(scenarios: Sequence[Scenario]) -> RaceSetup:
    """The setup of a batch; all scenarios have the same number of cars.

    Shorter races are padded with dry green laps that no car drives.
    """
    longest = max(s.laps for s in scenarios)
    rain, status = np.zeros((len(scenarios), longest)), np.full((len(scenarios), longest), GREEN)
    for row, s in enumerate(scenarios):
        rain[row, :s.laps], status[row, :s.laps] = s.rain, s.status
    burn = np.array([s.circuit.fuel_burn_kg_per_lap for s in scenarios])[:, None]
    laps = np.array([s.laps for s in scenarios])
    hazard = np.array([_hazard(s) for s in scenarios])
    mechanical = hazard.copy()
    mechanical[:, 0] = 0.0  # a failure that no call can avoid says nothing about the calls
    return RaceSetup(
        circuits=tuple(s.circuit for s in scenarios), circuit_of=np.arange(len(scenarios)),
        seeds=np.array([s.race_seed for s in scenarios]), car_pace_s=np.array([s.pace_s for s in scenarios]),
        race_laps=laps, car_numbers=np.array([s.numbers for s in scenarios]),
        grid=np.array([s.grid for s in scenarios]),
        start_compound=np.array([s.compound for s in scenarios]),
        start_age_laps=np.array([s.age_laps for s in scenarios]),
        start_fuel_kg=burn * (laps[:, None] + np.array([s.fuel_laps for s in scenarios])),
        rain=rain if rain.any() else None, status=status, accident_scale=hazard, mechanical_scale=mechanical,
        team=np.array([s.team for s in scenarios]) if scenarios[0].weekend else None,
        wear_scale=np.array([s.wear_scale for s in scenarios]), track_heat_c=np.array([s.heat_c for s in scenarios]),
        two_compound_rule=np.array([s.rule for s in scenarios]))


def _hazard(scenario: Scenario) -> list[float]:
    """Factor on the hazards of a Grand Prix, by car."""
    others = 1.0 if scenario.weekend else HAZARD_SCALE
    return [HAZARD_SCALE] + [others] * (scenario.cars - 1)


_PER_CAR = ("car_pace_s", "driver_pace_s", "car_numbers", "start_compound", "start_age_laps", "start_fuel_kg",
            "accident_scale", "mechanical_scale")


def single(setup: RaceSetup) -> RaceSetup:
    """The races with our car alone: the cost of a plan before traffic, at a fraction of the work."""
    cut: dict[str, Any] = {name: np.asarray(getattr(setup, name))[:, :1] for name in _PER_CAR
                           if np.ndim(getattr(setup, name)) == 2}
    return replace(setup, **cut, team=None, grid=None, start_gap_s=None)


def without_luck(race: Race) -> Race:
    """The race with the same events, tyre sets and start, but no scatter of laps and stops, and no failures."""
    table = race.tables.lap_of_car
    return race.with_lap_of_car(
        lap_s=table["lap_s"] - table["noise_s"], noise_s=0.0, unseen_s=0.0, stop_s=0.0, hazard_u=1.0, puncture_u=1.0,
        needed_s=np.median(table["needed_s"], axis=(0, 2), keepdims=True))


def with_other_luck(race: Race, drawn: Race) -> Race:
    """The races `drawn` from other seeds, with the start and tyre sets of the one race `race`, and no failures."""
    lucky = drawn.with_lap_of_car(cliff_factor=race.tables.lap_of_car["cliff_factor"], hazard_u=1.0, puncture_u=1.0)
    of_car = lucky.tables.of_car.copy()
    of_car["start_key"] = race.tables.of_car["start_key"]
    return replace(lucky, tables=lucky.tables._replace(of_car=of_car))
