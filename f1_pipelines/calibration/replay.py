"""Replay real races in the engine: stops, track status and retirements are real inputs, the rest is simulated.

The engine takes the track status of each lap and a compound for each stop. Two inputs it lacks are applied to a copy of
the state between steps: real retirements (`retire`) and the wear of used sets (`wear_of_sets`). Random failures,
punctures and the cliff are off, because the inputs already contain their real outcome.
"""
from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from f1_pipelines.calibration.real_race import RealRace
from f1_pipelines.sim import Calls, CircuitParameters, EngineParameters, RaceSetup, classify, new_state, prepare, step
from f1_pipelines.sim.engine.state import MECHANICAL, OUT_S, RaceState

NO_CLIFF = 999.0
REPLAY_ENGINE = EngineParameters(puncture_per_lap=0.0, puncture_per_lap_past=0.0)
NOISE_FREE = replace(REPLAY_ENGINE, noise_below=0.0, noise_above=0.0, stop_noise_below=0.0, stop_noise_above=0.0)


@dataclass(frozen=True)
class Replay:
    """Result of E episodes with different noise."""

    place: np.ndarray  # (E, N)
    line_s: np.ndarray  # (L + 1 - first, E, N) time at the line from lap `first` on; >= OUT_S: out
    first: int
    status: np.ndarray  # (L,)

    @property
    def mean_place(self) -> np.ndarray:
        return self.place.mean(axis=0)


def replay(real: RealRace, circuit: CircuitParameters, pace_s: np.ndarray, episodes: int = 100, first: int = 0,
           engine: EngineParameters = REPLAY_ENGINE, stops: bool = True,
           stop_extra_s: np.ndarray | None = None) -> Replay:
    """Replay a real race.

    Args:
        real: The race, which gives grid, stops, track status and retirements.
        circuit: Physics of the circuit.
        pace_s: (N,) pace relative to the circuit's base lap [s/lap].
        first: Lap after which the replay starts, with real gaps and tyres; 0 starts from the grid.
        stops: False leaves all stops out: cars stay on their first set.
        stop_extra_s: (L, N) loss of each real stop beyond the circuit's [s], in place of the engine's scatter.
    """
    cars = len(real.drivers)
    circuit = replace(circuit, cliff_laps=(NO_CLIFF,) * 5, race_laps=real.laps)
    start = {} if first == 0 else _start_after(real, first)
    setup = RaceSetup(
        circuits=(circuit,), seeds=np.arange(episodes), car_pace_s=np.asarray(pace_s), race_laps=real.laps,
        start_compound=real.start_compound if first == 0 else start.pop("compound"), status=real.status,
        accident_scale=0.0, mechanical_scale=0.0, two_compound_rule=False, engine=engine,
        grid=np.arange(1, cars + 1), **start)
    race = prepare(setup, first)
    if stop_extra_s is not None:
        race = race.with_lap_of_car(stop_s=stop_extra_s[first:, None, :])
    # A car that retired in lap 1 still gets a time for it: the engine retires cars at the line.
    last, leaving = np.maximum(real.laps_done, 1), real.stopped & (real.laps_done < real.laps)
    state = new_state(race)
    if first == 0:
        state = state.after(wear_laps=np.broadcast_to(real.start_wear, state.wear_laps.shape).copy())
    else:
        state = state.after(wear_laps=_wear_at(real, first, state.wear_laps.shape))
        state = retire(state, leaving & (last <= first))
    while state.lap < race.laps:
        lap = state.lap
        pit = np.broadcast_to(real.pit[lap], state.compound.shape) if stops else None
        state = step(race, state, Calls(pit=pit))
        if stops:
            state = wear_of_sets(state, real.pit[lap], real.set_wear[lap])
        state = retire(state, leaving & (last == state.lap))
    return Replay(classify(race, state).position, np.stack(state.line_s), first, real.status)


def retire(state: RaceState, cars: np.ndarray) -> RaceState:
    """Retire these cars (N,) at the end of the lap just driven."""
    retiring = np.broadcast_to(cars, state.out.shape) & (state.out == 0)
    if not retiring.any():
        return state
    elapsed = np.where(retiring, OUT_S - 1e6 * state.lap + 1e3 * state.position, state.elapsed_s)
    return state.after(elapsed_s=elapsed, out=np.where(retiring, MECHANICAL, state.out),
                       out_lap=np.where(retiring, state.lap + 1, state.out_lap))


def wear_of_sets(state: RaceState, pit: np.ndarray, wear_laps: np.ndarray) -> RaceState:
    """Apply the initial wear of the sets fitted in the last lap (pit >= 0)."""
    used = (pit >= 0) & (wear_laps > 0)
    return state.after(wear_laps=np.where(used, wear_laps, state.wear_laps)) if used.any() else state


def _start_after(real: RealRace, first: int) -> dict[str, np.ndarray]:
    """Gaps and compounds at the end of lap `first` for `RaceSetup`; retired cars come last."""
    at_line = real.line_s[first - 1]
    gap = at_line - np.nanmin(at_line)
    missing = ~np.isfinite(gap)
    gap = np.where(missing, np.nanmax(gap) + 100.0 + np.arange(len(gap)), gap)
    gap = gap + 1e-6 * np.arange(len(gap))  # breaks ties
    changes = [np.where(real.pit[:first, n] >= 0)[0] for n in range(len(gap))]
    compound = np.array([real.pit[laps[-1], n] if len(laps) else real.start_compound[n]
                         for n, laps in enumerate(changes)])
    return {"start_gap_s": gap, "compound": compound}


def _wear_at(real: RealRace, first: int, shape: tuple[int, ...]) -> np.ndarray:
    wear = real.start_wear + 0.0
    for lap in range(first):
        wear = np.where(real.pit[lap] >= 0, real.set_wear[lap], wear + 1.0)
    return np.broadcast_to(wear, shape).copy()
