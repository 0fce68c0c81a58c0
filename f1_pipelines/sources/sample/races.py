"""The races and sprints of the sample, driven by the engine in batches.

A race is the same alone and in any batch: the engine's noise is keyed by its seed and the car numbers, and our own
draws by name.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from f1_pipelines.identity.climate import rain_chance
from f1_pipelines.identity.line_ups import Entry
from f1_pipelines.identity.weekend import Weekend
from f1_pipelines.sim import Calls, CircuitParameters, Race, RaceSetup, RaceState, classify, prepare
from f1_pipelines.sim.engine import noise
from f1_pipelines.sim.engine.parameters import INTER, RED, VSC, WET
from f1_pipelines.sim.engine.state import new_state
from f1_pipelines.sim.engine.step import step_with_effects
from f1_pipelines.sim.engine.weather import INTER_WET_CROSSOVER, SLICK_INTER_CROSSOVER, showers
from f1_pipelines.sim.teams import plans
from f1_pipelines.sim.teams.pit_wall import FEEL, PitWall
from f1_pipelines.sim.teams.seeded_draws import seed_of, uniform
from f1_pipelines.sources.sample.circuits import sprint_distance, true_parameters
from f1_pipelines.sources.sample.grids import Grid
from f1_pipelines.sources.sample.strengths import accident_scale, mechanical_scale, pace

PIT_LANE_START_S = 9.0  # behind the field at the end of lap 1: the pit exit opens after the last car
LANE_BYPASS_S = 3.0  # time on the track along the pit lane: the time in the lane is the stop loss plus this


@dataclass(frozen=True)
class Start:
    """A race about to begin."""

    weekend: Weekend
    session: str  # race or sprint
    entries: tuple[Entry, ...]  # of the line-up
    grid: Grid

    @property
    def key(self) -> tuple[str, str]:
        return self.weekend.key, self.session

    @property
    def circuit(self) -> CircuitParameters:
        return true_parameters(self.weekend)

    @property
    def laps(self) -> int:
        return self.circuit.race_laps if self.session == "race" else sprint_distance(self.weekend)


@dataclass(frozen=True)
class DrivenRace:
    """L laps of the N cars that started, in the order of the line-up."""

    start: Start
    cars: np.ndarray  # (N,) index in the line-up
    line_s: np.ndarray  # (L + 1, N) time at the line since lights out, in ms precision; about 1e9 for retired cars
    position: np.ndarray  # (L, N)
    compound: np.ndarray  # (L, N)
    age_laps: np.ndarray  # (L, N) of the set at the start of the lap
    stint: np.ndarray  # (L, N) from 1
    lane_s: np.ndarray  # (L, N) time in the pit lane at the end of the lap; NaN: no stop
    status: np.ndarray  # (L,)
    status_left: np.ndarray  # (L,)
    rain: np.ndarray  # (L,) 0..1
    laps_done: np.ndarray  # (N,)
    place: np.ndarray  # (N,) the engine's order of all starters
    finished: np.ndarray  # (N,) bool: took the flag
    classified: np.ndarray  # (N,)
    out: np.ndarray  # (N,) the engine's reason of a retirement


def drive(starts: Sequence[Start]) -> dict[tuple[str, str], DrivenRace]:
    """Drive races, in one batch per number of cars and kind of session. Return them by (weekend, session)."""
    groups: dict[tuple[int, str], list[Start]] = {}
    for start in starts:
        groups.setdefault((int(start.grid.starts.sum()), start.session), []).append(start)
    return {race.start.key: race for group in groups.values() for race in _drive_batch(group)}


def _drive_batch(starts: list[Start]) -> list[DrivenRace]:
    longest = max(start.laps for start in starts)
    cars = [np.flatnonzero(start.grid.starts) for start in starts]
    entries = [tuple(start.entries[n] for n in indices) for start, indices in zip(starts, cars, strict=True)]
    names = ["/".join(start.key) for start in starts]
    drivers = [[entry.driver for entry in field] for field in entries]
    rain = np.zeros((len(starts), longest))
    for n, start in enumerate(starts):
        rain[n, :start.laps] = showers(np.array([seed_of(f"{names[n]}/rain")]), start.laps,
                                       rain_chance(start.weekend))[:, 0]
    stint_plans = [(plans.race_plans if start.session == "race" else plans.sprint_plans)(
        start.circuit, start.laps, name, field) for start, name, field in zip(starts, names, drivers, strict=True)]
    feel = np.stack([2.0 * uniform(f"{name}/feel", field)[0] - 1.0 for name, field in zip(names, drivers, strict=True)])
    two_compounds = np.array([start.session == "race" for start in starts])
    race = prepare(_setup(starts, cars, entries, rain, _start_tyres(stint_plans, rain, feel), two_compounds))
    numbers = np.array([[entry.car_number for entry in field] for field in entries])
    luck = noise.uniforms(np.array([seed_of(f"{name}/luck") for name in names], dtype=np.uint64),
                          np.arange(1, longest + 1), numbers, (noise.LAP,))[0]
    wall = PitWall(race, np.stack([plan.laps for plan in stint_plans], axis=1),
                   np.stack([plan.compounds for plan in stint_plans], axis=1), luck, feel, two_compounds)
    in_pit_lane = np.stack([start.grid.pit_lane[indices] for start, indices in zip(starts, cars, strict=True)])
    states, stops = _run(race, wall, in_pit_lane)
    return _driven_races(race, states, stops, starts, cars)


def _setup(starts: list[Start], cars: list[np.ndarray], entries: list[tuple[Entry, ...]], rain: np.ndarray,
           tyres: np.ndarray, two_compounds: np.ndarray) -> RaceSetup:
    circuits = tuple(start.circuit for start in starts)
    base = np.array([circuit.base_lap_s for circuit in circuits])[:, None]
    pct = np.stack([pace(start.weekend, start.entries).race[indices]
                    for start, indices in zip(starts, cars, strict=True)])
    slots = np.stack([start.grid.slot[indices] for start, indices in zip(starts, cars, strict=True)])
    teams = [sorted({entry.constructor for entry in field}) for field in entries]
    return RaceSetup(
        circuits=circuits, circuit_of=np.arange(len(starts)), race_laps=np.array([start.laps for start in starts]),
        seeds=np.array([seed_of("/".join(start.key)) for start in starts], dtype=np.uint64),
        car_pace_s=pct * base / 100.0, rain=rain, start_wetness=rain[:, 0], start_compound=tyres,
        car_numbers=np.array([[entry.car_number for entry in field] for field in entries]),
        team=np.array([[names.index(entry.constructor) for entry in field]
                       for field, names in zip(entries, teams, strict=True)]),
        grid=slots.argsort(axis=1).argsort(axis=1) + 1,
        accident_scale=np.stack([accident_scale(field) for field in entries]),
        mechanical_scale=np.stack([mechanical_scale(field, start.weekend.season)
                                   for start, field in zip(starts, entries, strict=True)]),
        two_compound_rule=two_compounds)


def _start_tyres(stint_plans: list[plans.StintPlans], rain: np.ndarray, feel: np.ndarray) -> np.ndarray:
    """Compounds at the start (E, N): the plan's on a dry grid, else intermediates or wets."""
    water = rain[:, :1] + FEEL * feel
    tyres = np.where(water > SLICK_INTER_CROSSOVER, INTER, np.stack([plan.start for plan in stint_plans]))
    return np.where(water > INTER_WET_CROSSOVER, WET, tyres)


def _run(race: Race, wall: PitWall, in_pit_lane: np.ndarray) -> tuple[list[RaceState], list[np.ndarray]]:
    """Drive all laps. Return the states, from the one before the start, and the cost of each lap's stops (E, N) [s]."""
    state = new_state(race)
    states, stops = [state], []
    while state.lap < race.laps:
        calls: Calls = wall(race, state)
        after, effects = step_with_effects(race, state, calls)
        if state.lap == 0 and in_pit_lane.any():
            after = _delayed(after, PIT_LANE_START_S * in_pit_lane)
        stops.append(effects["stop"])
        state = after
        states.append(state)
    return states, stops


def _delayed(state: RaceState, delay_s: np.ndarray) -> RaceState:
    """The state with cars moved back in time: the engine has no pit-lane start."""
    return state.after(elapsed_s=state.elapsed_s + delay_s)


def _driven_races(race: Race, states: list[RaceState], stops: list[np.ndarray], starts: list[Start],
                  cars: list[np.ndarray]) -> list[DrivenRace]:
    """Split the batch into its races."""
    result = classify(race, states[-1])
    before, after = states[:-1], states[1:]
    changed = np.stack([b.stops < a.stops for b, a in zip(before, after, strict=True)])
    status, left = (np.stack([getattr(s, name) for s in before]) for name in ("status", "status_left"))
    # Time in the lane does not depend on the other cars: green loss, the crew's scatter, and the bypass.
    column = np.where((status == VSC) & (left == 1), 4, status)[:, :, None]
    losses = race.tables.stop_loss_s
    scatter = np.stack(stops) - losses[np.arange(race.episodes)[:, None], column]
    lane = losses[:, :1] + scatter + LANE_BYPASS_S
    lane = np.where(status[:, :, None] == RED, race.engine.red_stoppage_s, lane)
    lane = np.where(changed, np.round(lane, 3), np.nan)
    line = np.round(np.stack([s.elapsed_s for s in states]), 3)
    by_lap = {name: np.stack([getattr(s, name) for s in before]) for name in ("compound", "age_laps")}
    stint = np.stack([s.stops for s in before]) + 1
    position = np.stack([s.position for s in after])
    driven = []
    for n, (start, indices) in enumerate(zip(starts, cars, strict=True)):
        laps = slice(0, start.laps)
        driven.append(DrivenRace(
            start=start, cars=indices, line_s=line[:start.laps + 1, n], position=position[laps, n],
            compound=by_lap["compound"][laps, n], age_laps=by_lap["age_laps"][laps, n], stint=stint[laps, n],
            lane_s=lane[laps, n], status=status[laps, n], status_left=left[laps, n], rain=race.setup.rain[n, laps],
            laps_done=result.laps[n], place=result.position[n], finished=result.status[n] != 1,
            classified=result.classified[n], out=states[-1].out[n]))
    return driven
