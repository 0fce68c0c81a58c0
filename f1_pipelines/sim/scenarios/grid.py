"""Scenarios laid out for the engine, in a batch of any size and mixed lengths."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from f1_pipelines.sim.parameters import GREEN
from f1_pipelines.sim.race import Race
from f1_pipelines.sim.scenarios.scenario import SCRATCH, Scenario
from f1_pipelines.sim.setup import RaceSetup

OURS_LASTS = np.array([0.0, 1.0, 1.0, 1.0, 1.0, 1.0])  # a car that breaks whatever is called tells nothing of a call


@dataclass(frozen=True, eq=False)
class Plans:
    """What the opponents mean to do, (E, 6) unless said; column 0, ours, is not used."""

    lap: np.ndarray
    compound: np.ndarray
    gamble_lap: np.ndarray  # (E,)
    rule: np.ndarray  # (E,)

    def take(self, episodes: np.ndarray) -> Plans:
        """These episodes, in this order."""
        return Plans(self.lap[episodes], self.compound[episodes], self.gamble_lap[episodes], self.rule[episodes])


def plans_of(scenarios: Sequence[Scenario]) -> Plans:
    """The opponents' plans of a batch."""
    return Plans(np.stack([s.plan_lap for s in scenarios]), np.stack([s.plan_compound for s in scenarios]),
                 np.array([s.gamble_lap for s in scenarios]), np.array([s.rule for s in scenarios]))


def setup_of(scenarios: Sequence[Scenario]) -> RaceSetup:
    """The races of a batch. Shorter races are padded with dry green laps that nobody drives."""
    longest = max(s.laps for s in scenarios)
    rain, status = np.zeros((len(scenarios), longest)), np.full((len(scenarios), longest), GREEN)
    for row, s in enumerate(scenarios):
        rain[row, :s.laps], status[row, :s.laps] = s.rain, s.status
    burn = np.array([s.circuit.fuel_burn_kg_per_lap for s in scenarios])[:, None]
    laps = np.array([s.laps for s in scenarios])
    return RaceSetup(
        circuits=tuple(s.circuit for s in scenarios), circuit_of=np.arange(len(scenarios)),
        seeds=np.array([s.race_seed for s in scenarios]), car_pace_s=np.stack([s.pace_s for s in scenarios]),
        race_laps=laps, car_numbers=np.array([s.numbers for s in scenarios]),
        grid=np.stack([s.grid for s in scenarios]),
        start_compound=np.stack([s.compound for s in scenarios]),
        start_age_laps=np.stack([s.age_laps for s in scenarios]),
        start_fuel_kg=burn * (laps[:, None] + np.stack([s.fuel_laps for s in scenarios])),
        rain=rain if rain.any() else None, status=status, accident_scale=SCRATCH, mechanical_scale=OURS_LASTS * SCRATCH,
        wear_scale=np.array([s.wear_scale for s in scenarios]), track_heat_c=np.array([s.heat_c for s in scenarios]),
        two_compound_rule=np.array([s.rule for s in scenarios]))


def without_luck(race: Race) -> Race:
    """The same race with the same events, sets of tyres and start, but no scatter of laps and stops and no failures."""
    calm = np.zeros_like(race.noise_s)
    ones = np.ones_like(race.hazard_u)
    level = np.broadcast_to(np.median(race.needed_s, axis=(0, 2), keepdims=True), race.needed_s.shape)
    return replace(race, lap_s=race.lap_s - race.noise_s, noise_s=calm, unseen_s=calm, stop_s=calm, hazard_u=ones,
                   puncture_u=ones, needed_s=level)


def with_other_luck(race: Race, drawn: Race) -> Race:
    """The race `drawn` from other seeds, with events, start and sets of tyres of `race`, without failures."""
    ones = np.ones_like(drawn.hazard_u)
    return replace(drawn, cliff_factor=race.cliff_factor, start_key=race.start_key, hazard_u=ones, puncture_u=ones)
