"""Futures sampled from a belief: `sample(observation, belief, count, rng)`. What is known holds in all of them."""
from __future__ import annotations

import numpy as np

from f1_pipelines.sim.environment.observation import Observation
from f1_pipelines.sim.parameters import COMPOUNDS, GREEN, HARD, SC, STATUSES, VSC
from f1_pipelines.sim.policies.belief import Belief, bell
from f1_pipelines.sim.policies.futures import Futures
from f1_pipelines.sim.race import prepare
from f1_pipelines.sim.scenarios import CHARACTERS, Plans
from f1_pipelines.sim.scenarios.happenings import (
    PEAK_ERROR,
    PEAKS,
    SC_LENGTH,
    VSC_LENGTH,
    Forecast,
    Shower,
    rain_trace,
)
from f1_pipelines.sim.setup import RaceSetup
from f1_pipelines.sim.state import new_state


def sample(o: Observation, belief: Belief, count: int, rng: np.random.Generator) -> Futures:
    """`count` futures that agree with what is known."""
    first, cars = o.lap - 1, sorted(o.cars, key=lambda c: c.number != o.number)
    numbers = np.array([c.number for c in cars])
    order = np.stack([_columns(numbers, belief, rng) for _ in range(count)])  # (F, 6) car of each column

    def field(values: list[float | int]) -> np.ndarray:
        return np.asarray(values)[order]

    gap = np.array([c.gap_s if c.running else 900.0 for c in cars])
    gap = gap - gap.min() + 1e-3 * np.array([c.position for c in cars])
    stops, compound = field([c.stops for c in cars]), field([COMPOUNDS.index(c.compound) for c in cars])
    pace = field([c.practice_s for c in cars]) + rng.normal(0.0, 0.08, (count, 6))
    burn = belief.circuit.fuel_burn_kg_per_lap
    fuel = np.full((count, 6), burn * (o.laps - first + 0.45))
    fuel[:, 0] = burn * (o.laps - first + belief.fuel_laps + np.clip(bell(rng, belief.fuel_sd, count), -0.3, 0.3))
    rain, status = _rain(o, belief, count, rng), _status(o, belief, count, rng)
    setup = RaceSetup(
        circuits=(belief.circuit,), seeds=rng.integers(0, 2**62, count), car_pace_s=pace, race_laps=o.laps,
        car_numbers=numbers[order], grid=field([c.position for c in cars]), start_gap_s=gap[order] if first else None,
        start_compound=compound, start_age_laps=field([c.age_laps for c in cars]), start_fuel_kg=fuel,
        rain=rain if rain.any() else None, status=status, accident_scale=0.0, mechanical_scale=0.0,
        wear_scale=o.wear_scale, track_heat_c=o.heat_c, two_compound_rule=o.rule)
    state = new_state(prepare(setup, first=first))
    used = (1 << compound) | (1 << field([COMPOUNDS.index(belief.first_used[c.number]) for c in cars]))
    used[:, 0] = sum(1 << COMPOUNDS.index(name) for name in o.used)
    wear = state.wear_laps.copy()
    wear[:, 0] = belief.wear_laps * o.wear_scale
    cliff = belief.circuit.cliff_laps[COMPOUNDS.index(o.own.compound)] * rng.uniform(0.85, 1.15, count)
    if belief.tyre_left is not None:
        cliff = wear[:, 0] + (belief.tyre_left + bell(rng, belief.tyre_sd, count)) * o.wear_scale
    cliffs, temp = state.cliff_laps.copy(), state.temp_c + 0.0
    cliffs[:, 0], temp[:, :] = cliff, o.tyre_temp_c
    out = np.where(field([c.running for c in cars]), 0, 1)
    age = np.full(count, o.status_laps)
    state = state.after(stops=stops, used=used, wear_laps=wear, cliff_laps=cliffs, temp_c=temp, out=out,
                        any_out=bool(out.any()), status_age=age)
    rival = (numbers[order] == o.rival).argmax(axis=1) if o.rival else np.zeros(count, dtype=int)
    return Futures(setup, state, _plans(o, belief, numbers[order], compound, rng), rival, first, o.wetness)


def _columns(numbers: np.ndarray, belief: Belief, rng: np.random.Generator) -> np.ndarray:
    """(6,) index of the car in each column: ours first, opponents by character, unknown ones at random."""
    column = np.zeros(6, dtype=int)
    known = {CHARACTERS.index(kind) + 1: int(np.flatnonzero(numbers == n)[0])
             for n, (kind, _, _) in belief.plans.items()}
    rest = rng.permutation([k for k in range(1, 6) if k not in known.values()]).tolist()
    for k in range(1, 6):
        column[k] = known[k] if k in known else rest.pop()
    return column


def _plans(o: Observation, belief: Belief, numbers: np.ndarray, compound: np.ndarray,
           rng: np.random.Generator) -> Plans:
    """Plans of the opponents, asked for or as anybody would make them."""
    count = len(numbers)
    life = np.array(belief.circuit.cliff_laps)[np.minimum(compound, HARD)] / o.wear_scale
    when = rng.uniform(0.35, 0.75, numbers.shape)
    worn = o.laps > life + 1.0
    lap = np.round(np.where(worn, np.minimum(life * (0.75 + 0.3 * when), when * o.laps + 1.0), when * o.laps))
    stays = ~worn & ~np.bool_(o.rule) & (rng.random(numbers.shape) < 0.75)
    lap = np.where(stays, 0, np.clip(lap, 2, o.laps - 2)).astype(int)
    lap = np.where((lap > 0) & (lap < o.lap), rng.integers(o.lap, max(o.laps - 1, o.lap + 1), numbers.shape), lap)
    tyre = (compound % 3 + rng.integers(1, 3, numbers.shape)) % 3
    for number, (_, told_lap, told_tyre) in belief.plans.items():
        lap, tyre = np.where(numbers == number, told_lap, lap), np.where(numbers == number, told_tyre, tyre)
    gamble = np.zeros(count, dtype=int)
    if belief.forecast is not None and belief.forecast.chance > 0.5 and not belief.onset:
        gamble = belief.forecast.onset_lap - rng.integers(0, 2, count)
    return Plans(lap, tyre, gamble, np.full(count, o.rule))


def _rain(o: Observation, belief: Belief, count: int, rng: np.random.Generator) -> np.ndarray:
    """(F, L) rain: what fell, and what may come."""
    past = belief.rain[:o.lap - 1]
    rain = np.zeros((count, o.laps))
    if past:
        rain[:, :len(past)] = past
    if belief.dry and not belief.onset:
        return rain
    for row in rain:
        row[len(past):] = _shower(o, belief, rng)[len(past):]
    return rain


def _shower(o: Observation, belief: Belief, rng: np.random.Generator) -> np.ndarray:
    told, onset = belief.forecast, belief.onset
    if told is None:
        chance = o.rain_chance
        told = Forecast(chance, int(rng.integers(3, o.laps - 3)), PEAKS[rng.integers(4)],
                        int(rng.integers(3, o.laps + 1)))
        if onset and max(belief.rain) > 0:
            told = Forecast(1.0, onset, max(belief.rain), told.length_laps)
    for _ in range(20):
        falls = onset or rng.random() < told.chance
        first = onset or told.onset_lap + (0 if belief.exact else int(rng.choice((-1, 0, 0, 0, 1))))
        length = max(told.length_laps + int(rng.integers(-1, 2)), 2)
        if not falls:
            return np.zeros(o.laps)
        last = first + length - 1
        over = bool(onset) and belief.rain[-1] == 0
        if onset and over == (last < len(belief.rain)) or (not onset and first >= o.lap):
            break
    else:
        if not onset or belief.rain[-1] == 0:
            return np.zeros(o.laps)
        length = len(belief.rain) - first + 2
    peak = told.peak + rng.uniform(-PEAK_ERROR, PEAK_ERROR)
    if onset:  # the first lap of a shower has half of its peak
        peak = max(belief.rain) * (2.0 if len(belief.rain) == onset and length > 2 else 1.0)
    return rain_trace(Shower(first, min(max(peak, 0.05), 1.0), length), o.laps)


def _status(o: Observation, belief: Belief, count: int, rng: np.random.Generator) -> np.ndarray:
    """(F, L) track status: what is on now goes on for a sampled while, what may come may come."""
    status = np.full((count, o.laps), GREEN)
    kind, chance, low, high = o.closure
    code = SC if kind == "sc" else VSC
    least, most = SC_LENGTH if kind == "sc" else VSC_LENGTH
    if o.status != "green":
        length = rng.integers(max(least, o.status_laps), most + 1, count) if most >= o.status_laps else \
            np.full(count, o.status_laps)
        ahead = np.arange(o.laps)[None] - (o.lap - 1)
        on = (ahead >= 0) & (ahead < (length - o.status_laps + 1)[:, None])
        return np.where(on, STATUSES.index(o.status), status)
    begins = [lap for lap in range(max(low, o.lap + 1), high + 1)]
    if not chance or belief.closed_lap or not begins:
        return status
    # Of the ways it could have gone, those in which nothing has come yet.
    still = chance * len(begins) / (high - low + 1)
    comes = rng.random(count) < still / (still + 1.0 - chance)
    begin = rng.choice(begins, count)[:, None] - 1
    length = rng.integers(least, most + 1, count)[:, None]
    lap = np.arange(o.laps)[None]
    return np.where(comes[:, None] & (lap >= begin) & (lap < begin + length), code, status)


