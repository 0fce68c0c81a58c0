"""The noise of every car and lap, drawn into LAP_OF_CAR: `fill_laps(...)`."""
from __future__ import annotations

import numpy as np

from f1_pipelines.sim.engine import noise
from f1_pipelines.sim.engine.compiled import Record, compiled
from f1_pipelines.sim.engine.tables import record
from f1_pipelines.sim.engine.weather import DAMP, WET_SCATTER

DRAW_SCALE = record("lap_scatter stop_scatter "  # s
                    "needed_s needed_scale "  # advantage to pass with no gap: median and scale, s
                    "unseen")  # minus the share of a lost second that opens no pass


@compiled
def fill_laps(seeds: np.ndarray, numbers: np.ndarray, lap_of_race: np.ndarray, scales: np.ndarray, engine: np.ndarray,
              first: int, out: np.ndarray) -> None:
    """Draw all noise by lap and car.

    Args:
        seeds: Seeds of the races, (T,) uint64.
        numbers: Car numbers, (T, N).
        lap_of_race: (L + 1, T) LAP_OF_RACE.
        scales: (T,) DRAW_SCALE.
        engine: (1,) ENGINE.
        first: Laps already driven.
        out: Filled except `lap_s`, (L, T, N) LAP_OF_CAR.
    """
    for race in range(len(seeds)):
        for row in range(len(out)):
            _fill_places(seeds[race], first + row + 1, engine[0], race, row, out)
            wet = lap_of_race[row, race].wetness > DAMP
            key = noise.lap_key(seeds[race], first + row + 1)
            for car in range(numbers.shape[1]):
                _fill_car(key, seeds[race], first + row + 1, numbers[race, car], wet, scales[race], engine[0],
                          out[row, race, car])


@compiled
def _fill_places(seed: np.uint64, lap: int, engine: Record, race: int, row: int, out: np.ndarray) -> None:
    """Draw following distances by place. One lasts some laps: drawn anew each lap, every car would drift to its
    largest draw."""
    key, total = noise.lap_key(seed, lap // int(engine.follow_laps)), 0.0
    for place in range(out.shape[2]):
        u = noise.uniform(key, noise.EPISODE + 2 + place, noise.SLOT)
        total += engine.follow_gap_min_s + (engine.follow_gap_max_s - engine.follow_gap_min_s) * u
        out[row, race, place].follow_s = total


@compiled
def _fill_car(key: np.uint64, seed: np.uint64, lap: int, number: int, wet: bool, scale: Record, engine: Record,
              out: Record) -> None:
    """Draw the lap of one car."""
    drawn = _raw_noise(key, number, scale, engine)
    # Noise carries over from the two laps before, also into a race that is joined under way; a large loss is capped.
    if lap > 1:
        drawn += _carried(_raw_noise(noise.lap_key(seed, lap - 1), number, scale, engine), engine)
    if lap > 2:
        drawn += _carried(_raw_noise(noise.lap_key(seed, lap - 2), number, scale, engine), engine) * engine.noise_carry
    drawn -= engine.noise_centre * scale.lap_scatter  # the base lap is a median: half of the noise lies on either side
    out.noise_s = drawn * WET_SCATTER if wet else drawn
    out.unseen_s = out.noise_s * scale.unseen
    out.needed_s = scale.needed_s + noise.logistic_quantile(
        noise.uniform(key, number, noise.PASS)) * scale.needed_scale
    out.stop_s = noise.heavy_tailed_quantile(
        noise.uniform(key, number, noise.STOP), engine.stop_noise_below * scale.stop_scatter,
        engine.stop_noise_above * scale.stop_scatter, engine.stop_noise_best_s, engine.stop_noise_worst_s)
    out.hazard_u = noise.uniform(key, number, noise.HAZARD)
    out.puncture_u = noise.uniform(key, number, noise.PUNCTURE)
    out.cliff_factor = 1.0 + engine.cliff_spread * (2.0 * noise.uniform(key, number, noise.CLIFF) - 1.0)


@compiled
def _raw_noise(key: np.uint64, number: int, scale: Record, engine: Record) -> float:
    """Noise of a lap before any carries over [s]."""
    return noise.heavy_tailed_quantile(
        noise.uniform(key, number, noise.LAP), engine.noise_below * scale.lap_scatter,
        engine.noise_above * scale.lap_scatter, engine.noise_best_s, engine.noise_worst_s)


@compiled
def _carried(noise_s: float, engine: Record) -> float:
    """What the next lap takes over of a lap's noise [s]."""
    cap = engine.noise_carry_cap_s
    return min(max(noise_s, -cap), cap) * engine.noise_carry
