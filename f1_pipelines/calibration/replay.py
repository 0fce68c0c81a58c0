"""Real races driven again by the engine: the given inputs are real, the rest is simulated.

The engine takes the track status of every lap and a compound for each stop. What it has no input for is done here
between two steps, on a copy of the state: a car that stopped for good in reality stops (`retire`), and a used set gets
its wear (`wear_of_sets`). Chance failures, punctures and the cliff are off: their real outcome is already an input.
"""
from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from f1_pipelines.calibration.real_race import RealRace
from f1_pipelines.sim import Calls, CircuitParameters, EngineParameters, RaceSetup, classify, new_state, prepare, step
from f1_pipelines.sim.engine.race import Race
from f1_pipelines.sim.engine.state import MECHANICAL, OUT_S, RaceState, gaps

NO_CLIFF = 999.0
GIVEN = EngineParameters(puncture_per_lap=0.0, puncture_per_lap_past=0.0)
NOISE_FREE = replace(GIVEN, noise_below=0.0, noise_above=0.0, stop_noise_below=0.0, stop_noise_above=0.0)


@dataclass(frozen=True)
class Replay:
    """What came out, over E episodes that differ in their noise."""

    place: np.ndarray  # (E, N)
    line_s: np.ndarray  # (L + 1 - first, E, N) elapsed time at the line, first lap given first; OUT_S and more: out
    first: int
    status: np.ndarray  # (L,)

    @property
    def mean_place(self) -> np.ndarray:
        return self.place.mean(axis=0)


def replay(real: RealRace, circuit: CircuitParameters, pace_s: np.ndarray, episodes: int = 100, first: int = 0,
           engine: EngineParameters = GIVEN, stops: bool = True, stop_extra_s: np.ndarray | None = None) -> Replay:
    """Drive a real race again.

    Args:
        real: The race: grid, stops, track status and retirements are taken from it.
        circuit: Physics of the circuit.
        pace_s: (N,) s/lap against the circuit's base lap.
        first: Laps already driven when the replay starts; their gaps and tyres are then real. 0: from the grid.
        stops: False leaves every stop out (cars run to the end on the first set).
        stop_extra_s: (L, N) what each real stop cost beyond the circuit's loss, instead of the engine's scatter.
    """
    cars = len(real.drivers)
    circuit = replace(circuit, cliff_laps=(NO_CLIFF,) * 5, race_laps=real.laps)
    joined = {} if first == 0 else _joined(real, first)
    setup = RaceSetup(
        circuits=(circuit,), seeds=np.arange(episodes), car_pace_s=np.asarray(pace_s), race_laps=real.laps,
        start_compound=real.start_compound if first == 0 else joined.pop("compound"), status=real.status,
        accident_scale=0.0, mechanical_scale=0.0, two_compound_rule=False, engine=engine,
        grid=np.arange(1, cars + 1), **joined)
    race = prepare(setup, first)
    if stop_extra_s is not None:
        race = replace(race, stop_s=np.broadcast_to(stop_extra_s[first:, None, :], race.stop_s.shape))
    # A car that fell out in lap 1 is timed once by us: the engine retires cars at the line.
    last, leaving = np.maximum(real.laps_done, 1), real.stopped & (real.laps_done < real.laps)
    state = new_state(race)
    if first == 0:
        state = state.after(wear_laps=np.broadcast_to(real.start_wear, state.wear_laps.shape).copy())
    else:
        state = state.after(wear_laps=_wear_at(real, first, state.wear_laps.shape))
        state = retire(race, state, leaving & (last <= first))
    while state.lap < race.laps:
        lap = state.lap
        pit = np.broadcast_to(real.pit[lap], state.compound.shape) if stops else None
        state = step(race, state, Calls(pit=pit))
        if stops:
            state = wear_of_sets(state, real.pit[lap], real.set_wear[lap])
        state = retire(race, state, leaving & (last == state.lap))
    return Replay(classify(race, state).position, np.stack(state.line_s), first, real.status)


def retire(race: Race, state: RaceState, cars: np.ndarray) -> RaceState:
    """The state with these cars (N,) out of the race after the lap just driven."""
    off = np.broadcast_to(cars, state.out.shape) & (state.out == 0)
    if not off.any():
        return state
    elapsed = np.where(off, OUT_S - 1e6 * state.lap + 1e3 * state.position, state.elapsed_s)
    order = elapsed.argsort(axis=1, kind="stable") + race.rows
    gap, leader = gaps(elapsed.take(order), order)
    return state.after(elapsed_s=elapsed, order=order, gap_ahead_s=gap, leader_s=leader,
                       out=np.where(off, MECHANICAL, state.out), out_lap=np.where(off, state.lap + 1, state.out_lap),
                       any_out=True, line_s=(*state.line_s[:-1], elapsed))


def wear_of_sets(state: RaceState, pit: np.ndarray, wear_laps: np.ndarray) -> RaceState:
    """The state with the wear that the sets put on in the last lap (pit >= 0) already had."""
    used = (pit >= 0) & (wear_laps > 0)
    return state.after(wear_laps=np.where(used, wear_laps, state.wear_laps)) if used.any() else state


def _joined(real: RealRace, first: int) -> dict[str, np.ndarray]:
    """Gaps and compounds at the end of lap `first`, as `RaceSetup` wants them; cars already out come last."""
    at_line = real.line_s[first - 1]
    gap = at_line - np.nanmin(at_line)
    missing = ~np.isfinite(gap)
    gap = np.where(missing, np.nanmax(gap) + 100.0 + np.arange(len(gap)), gap)
    gap = gap + 1e-6 * np.arange(len(gap))  # two cars timed alike are still two cars
    changes = [np.where(real.pit[:first, n] >= 0)[0] for n in range(len(gap))]
    compound = np.array([real.pit[laps[-1], n] if len(laps) else real.start_compound[n]
                         for n, laps in enumerate(changes)])
    return {"start_gap_s": gap, "compound": compound}


def _wear_at(real: RealRace, first: int, shape: tuple[int, ...]) -> np.ndarray:
    wear = real.start_wear + 0.0
    for lap in range(first):
        wear = np.where(real.pit[lap] >= 0, real.set_wear[lap], wear + 1.0)
    return np.broadcast_to(wear, shape).copy()
