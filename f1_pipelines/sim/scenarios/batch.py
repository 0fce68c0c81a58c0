"""Batches of scenarios for the engine, of any size and mixed lengths."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from f1_pipelines.sim.engine.parameters import COMPOUNDS, GREEN
from f1_pipelines.sim.engine.race import Race
from f1_pipelines.sim.engine.setup import RaceSetup
from f1_pipelines.sim.scenarios.plans import OpponentPlans
from f1_pipelines.sim.scenarios.scenario import HAZARD_SCALE, Scenario


def plans_of(scenarios: Sequence[Scenario]) -> OpponentPlans:
    """Stack the opponents' plans of a batch."""
    lap, compound = (np.array([getattr(s, name) for s in scenarios]).transpose(1, 0, 2)
                     for name in ("plan_lap", "plan_compound"))
    return OpponentPlans(lap, compound, np.array([s.gamble_lap for s in scenarios]), bool(scenarios[0].weekend))


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


# The axis of the episodes in a table of `Race`: the second of three or the first of two, except for these.
_BY_TYRE = ("tyres", "weather", "stop_loss_s")  # five numbers per episode, flat on the last axis
_LAST = ("status", "event_u", "wetness")  # on the last axis
_FLAT_INDEX = {"rows": "cars", "grid_order": "cars", "mate": "cars", "rows5": "tyres"}  # into (E * cars) or (E * 5)
_SHARED = ("places", "drives", "pass_cost_s", "by_status")


def repeat(race: Race, episodes: np.ndarray) -> Race:
    """Select episodes of a race, with repetitions: `prepare(setup.take(episodes))` without new draws."""
    count = len(episodes)
    changed: dict[str, Any] = {"setup": race.setup.take(episodes), "episodes": len(episodes)}
    moved = (np.arange(count) - episodes)[:, None]
    shift = {"cars": moved * race.cars, "tyres": moved * len(COMPOUNDS)}
    for name in (f.name for f in fields(race)):
        value = getattr(race, name)
        if not isinstance(value, np.ndarray) or name in _SHARED:
            continue
        if name in _BY_TYRE:
            wide = value.reshape(*value.shape[:-1], race.episodes, len(COMPOUNDS))
            changed[name] = wide[..., episodes, :].reshape(*value.shape[:-1], -1)
        elif name in _LAST:
            changed[name] = value[..., episodes]
        elif value.ndim == 3:
            wide_view = (len(value), count, value.shape[2])  # a view of a single episode copies nothing
            changed[name] = np.broadcast_to(value, wide_view) if race.episodes == 1 else value[:, episodes]
        else:
            changed[name] = value[episodes]
            if name in _FLAT_INDEX:
                changed[name] = changed[name] + shift[_FLAT_INDEX[name]]
    return replace(race, **changed)


_PER_CAR = ("car_pace_s", "driver_pace_s", "car_numbers", "start_compound", "start_age_laps", "start_fuel_kg",
            "accident_scale", "mechanical_scale")


def single(setup: RaceSetup) -> RaceSetup:
    """The races with our car alone: the cost of a plan before traffic, at a fraction of the work."""
    cut: dict[str, Any] = {name: np.asarray(getattr(setup, name))[:, :1] for name in _PER_CAR
                           if np.ndim(getattr(setup, name)) == 2}
    return replace(setup, **cut, team=None, grid=None, start_gap_s=None)


def without_luck(race: Race) -> Race:
    """The race with the same events, tyre sets and start, but no scatter of laps and stops, and no failures."""
    zeros = np.zeros_like(race.noise_s)
    ones = np.ones_like(race.hazard_u)
    level = np.broadcast_to(np.median(race.needed_s, axis=(0, 2), keepdims=True), race.needed_s.shape)
    return replace(race, lap_s=race.lap_s - race.noise_s, noise_s=zeros, unseen_s=zeros, stop_s=zeros, hazard_u=ones,
                   puncture_u=ones, needed_s=level)


def with_other_luck(race: Race, drawn: Race) -> Race:
    """The race `drawn` from other seeds, with the start and tyre sets of `race`, and no failures."""
    ones = np.ones_like(drawn.hazard_u)
    return replace(drawn, cliff_factor=race.cliff_factor, start_key=race.start_key, hazard_u=ones, puncture_u=ones)
