"""Sample futures from a belief: `sample(observation, belief, count, rng)`. Known facts hold in all of them."""
from __future__ import annotations

import numpy as np

from f1_pipelines.sim.engine.parameters import COMPOUNDS, GREEN, HARD, MEDIUM, SOFT
from f1_pipelines.sim.engine.race import prepare
from f1_pipelines.sim.engine.setup import RaceSetup
from f1_pipelines.sim.engine.state import new_state
from f1_pipelines.sim.environment.observation import CarSeen, Observation
from f1_pipelines.sim.policies.belief import Belief, normal_noise
from f1_pipelines.sim.policies.sampled_futures import SampledFutures
from f1_pipelines.sim.scenarios import CHARACTERS, OpponentPlans
from f1_pipelines.sim.scenarios.plans import kind_of
from f1_pipelines.sim.scenarios.track_events import CODE, PEAK_ERROR, PEAKS, Forecast, Shower, rain_trace

NEAR_CARS = 10  # cars of a full grid in the futures, ours included


def sample(o: Observation, belief: Belief, count: int, rng: np.random.Generator) -> SampledFutures:
    """Sample `count` futures that agree with the observation and the belief."""
    first, cars = o.lap - 1, cars_that_matter(o, belief)
    numbers = np.array([c.number for c in cars])
    order = _columns(numbers, belief, count, rng)  # (F, N) car of each column
    shape = order.shape

    def field(values: list[float | int]) -> np.ndarray:
        return np.asarray(values)[order]

    gap = np.array([c.gap_s if c.running else 900.0 for c in cars])
    gap = gap - gap.min() + 1e-3 * np.array([c.position for c in cars])
    stops, compound = field([c.stops for c in cars]), field([COMPOUNDS.index(c.compound) for c in cars])
    pace = field([c.practice_s for c in cars]) + rng.normal(0.0, 0.08, shape)
    burn = belief.circuit.fuel_burn_kg_per_lap
    fuel = np.full(shape, burn * (o.laps - first + 0.45))
    fuel[:, 0] = burn * (o.laps - first + belief.fuel_laps + np.clip(normal_noise(rng, belief.fuel_sd, count), -0.3,
                                                                     0.3))
    rain, status = _rain(o, belief, count, rng), _status(o, belief, count, rng)
    place = np.array([c.position for c in cars]).argsort().argsort() + 1
    setup = RaceSetup(
        circuits=(belief.circuit,), seeds=rng.integers(0, 2**62, count), car_pace_s=pace, race_laps=o.laps,
        car_numbers=numbers[order], grid=place[order], start_gap_s=gap[order] if first else None,
        start_compound=compound, start_age_laps=field([c.age_laps for c in cars]), start_fuel_kg=fuel,
        rain=rain if rain.any() else None, status=status, accident_scale=0.0, mechanical_scale=0.0,
        wear_scale=o.wear_scale, track_heat_c=o.heat_c, two_compound_rule=o.rule)
    race = prepare(setup, first=first)
    state = new_state(race)
    used = (1 << compound) | (1 << field([COMPOUNDS.index(belief.first_used[c.number]) for c in cars]))
    used[:, 0] = sum(1 << COMPOUNDS.index(name) for name in o.used)
    wear = state.wear_laps.copy()
    wear[:, 0] = belief.wear_laps * o.wear_scale
    cliff = belief.circuit.cliff_laps[COMPOUNDS.index(o.own.compound)] * rng.uniform(0.85, 1.15, count)
    if belief.tyre_left is not None:
        cliff = wear[:, 0] + (belief.tyre_left + normal_noise(rng, belief.tyre_sd, count)) * o.wear_scale
    cliffs, temp = state.cliff_laps.copy(), state.temp_c + 0.0
    cliffs[:, 0], temp[:, :] = cliff, o.tyre_temp_c
    out = np.where(field([c.running for c in cars]), 0, 1)
    age = np.full(count, o.status_laps)
    plans = _race_plans(o, belief, numbers[order], compound, used, rng) if o.weekend else \
        _plans(o, belief, numbers[order], compound, rng)
    if o.weekend:  # plans of opponents count stops from now on
        stops[:, 1:] = 0
    state = state.after(stops=stops, used=used, wear_laps=wear, cliff_laps=cliffs, temp_c=temp, out=out,
                        status_age=age)
    rival = (numbers[order] == o.rival).argmax(axis=1) if o.rival else np.zeros(count, dtype=int)
    return SampledFutures(race, state, plans, rival, first, o.wetness)


def cars_that_matter(o: Observation, belief: Belief) -> list[CarSeen]:
    """Our car, then the others; of a full grid those around us and around our position after a stop."""
    others = [c for c in o.cars if c.number != o.number]
    if len(others) >= NEAR_CARS:
        middle = 0.35 * belief.circuit.stop_loss_green_s
        if o.lap == 1:  # no gaps yet: use grid positions
            others.sort(key=lambda c: abs(c.position - o.position - 1))
        else:
            others.sort(key=lambda c: (not c.running, abs(c.gap_s - middle)))
        others = sorted(others[:NEAR_CARS - 1], key=lambda c: c.position)
    return [o.own, *others]


def _columns(numbers: np.ndarray, belief: Belief, count: int, rng: np.random.Generator) -> np.ndarray:
    """Index of the car in each column, (F, N): ours first, opponents by known character, the others at random."""
    characters = [CHARACTERS[kind_of(k)] if k else "" for k in range(len(numbers))]
    known = [(car, belief.plans[number][0]) for car, number in enumerate(numbers.tolist()) if car and
             number in belief.plans]
    columns = np.zeros((count, len(numbers)), dtype=np.int64)
    for future in columns:
        free, unknown = rng.permutation(np.arange(1, len(numbers))).tolist(), list(range(1, len(numbers)))
        for car, character in known:
            fit = next((k for k in free if characters[k] == character), None)
            if fit is not None:
                free.remove(fit)
                unknown.remove(car)
                future[fit] = car
        future[free] = unknown
    return columns


def _plans(o: Observation, belief: Belief, numbers: np.ndarray, compound: np.ndarray,
           rng: np.random.Generator) -> OpponentPlans:
    """Plans of opponents in a sprint: known, else sampled."""
    count = len(numbers)
    life = np.array(belief.circuit.cliff_laps)[np.minimum(compound, HARD)] / o.wear_scale
    when = rng.uniform(0.35, 0.75, numbers.shape)
    worn = o.laps > life + 1.0
    lap = np.round(np.where(worn, np.minimum(life * (0.75 + 0.3 * when), when * o.laps + 1.0), when * o.laps))
    stays = ~worn & ~np.bool_(o.rule) & (rng.random(numbers.shape) < 0.75)
    lap = np.where(stays, 0, np.clip(lap, 2, o.laps - 2)).astype(int)
    lap = np.where((lap > 0) & (lap < o.lap), rng.integers(o.lap, max(o.laps - 1, o.lap + 1), numbers.shape), lap)
    tyre = (compound % 3 + rng.integers(1, 3, numbers.shape)) % 3
    for number, (_, stops) in belief.plans.items():
        planned_lap, planned_tyre = stops[0] if stops else (0, 0)
        lap, tyre = np.where(numbers == number, planned_lap, lap), np.where(numbers == number, planned_tyre, tyre)
    return OpponentPlans.of(lap[None], tyre[None], _gambles(belief, count, rng))


def _race_plans(o: Observation, belief: Belief, numbers: np.ndarray, compound: np.ndarray, used: np.ndarray,
                rng: np.random.Generator) -> OpponentPlans:
    """The next stop of each opponent in a Grand Prix: known, else before its set wears out or for the rule."""
    ages = {c.number: c.age_laps for c in o.cars}
    life = np.array(belief.circuit.cliff_laps)
    slick = np.minimum(compound, HARD)
    lasts = life[slick] - np.vectorize(ages.get)(numbers)
    to_go = o.laps - o.lap + 1
    slicks = used & 7
    owed = bool(o.rule) & (slicks & (slicks - 1) == 0) & (used < 8)
    ahead = np.where(lasts < to_go, rng.uniform(0.5, 0.95, numbers.shape) * lasts,
                     rng.uniform(0.1, 0.6, numbers.shape) * to_go)
    lap = o.lap + np.clip(np.round(ahead), 0, max(to_go - 4, 0)).astype(int)
    lap = np.where(((lasts < to_go) | owed) & (to_go > 4), lap, 0)
    left = o.laps - lap
    tyre = np.where(left < 0.9 * life[SOFT], SOFT, np.where(left < 0.95 * life[MEDIUM], MEDIUM, HARD))
    tyre = np.where(tyre == slick, np.where(tyre == HARD, MEDIUM, HARD), tyre)
    for number, (_, stops) in belief.plans.items():
        planned_lap, planned_tyre = next(((at, c) for at, c in stops if at >= o.lap), (0, 0))
        if planned_lap:
            lap, tyre = np.where(numbers == number, planned_lap, lap), np.where(numbers == number, planned_tyre, tyre)
    return OpponentPlans.of(lap[None], tyre[None], _gambles(belief, len(numbers), rng), full=True)


def _gambles(belief: Belief, count: int, rng: np.random.Generator) -> np.ndarray:
    """(F,) lap at whose end gamblers change to intermediates, 0 for never."""
    if belief.forecast is not None and belief.forecast.chance > 0.5 and not belief.onset:
        return belief.forecast.onset_lap - rng.integers(0, 2, count)
    return np.zeros(count, dtype=int)


def _rain(o: Observation, belief: Belief, count: int, rng: np.random.Generator) -> np.ndarray:
    """(F, L) rain: past laps as observed, later laps sampled."""
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
    forecast, onset = belief.forecast, belief.onset
    if forecast is None:
        chance = o.rain_chance
        forecast = Forecast(chance, int(rng.integers(3, o.laps - 3)), PEAKS[rng.integers(4)],
                            int(rng.integers(3, (o.laps // 2 if o.weekend else o.laps) + 1)))
        if onset and max(belief.rain) > 0:
            forecast = Forecast(1.0, onset, max(belief.rain), forecast.length_laps)
    for _ in range(20):
        falls = onset or rng.random() < forecast.chance
        first = onset or forecast.onset_lap + (0 if belief.exact else int(rng.choice((-1, 0, 0, 0, 1))))
        length = max(forecast.length_laps + int(rng.integers(-1, 2)), 2)
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
    peak = forecast.peak + rng.uniform(-PEAK_ERROR, PEAK_ERROR)
    if onset:  # the first lap of a shower has half its peak
        peak = max(belief.rain) * (2.0 if len(belief.rain) == onset and length > 2 else 1.0)
    return rain_trace(Shower(first, min(max(peak, 0.05), 1.0), length), o.laps)


def _status(o: Observation, belief: Belief, count: int, rng: np.random.Generator) -> np.ndarray:
    """(F, L) track status: the current one lasts a sampled time, later closures are sampled."""
    status, lap = np.full((count, o.laps), GREEN), np.arange(o.laps)[None]
    for closure in o.closures:
        least, most = closure.lengths
        if o.status == closure.kind:
            length = rng.integers(max(least, o.status_laps), most + 1, count) if most >= o.status_laps else \
                np.full(count, o.status_laps)
            ahead = lap - (o.lap - 1)
            on = (ahead >= 0) & (ahead < (length - o.status_laps + 1)[:, None])
            status = np.where(on, CODE[closure.kind], status)
        begins = range(max(closure.first, o.lap + 1), closure.last + 1)
        if not begins or (not closure.often and belief.closed_lap):
            continue
        still = closure.chance * len(begins) / (closure.last - closure.first + 1)
        # Chance given that it has not come yet; frequent closures are memoryless.
        comes = rng.random(count) < (1.0 - np.exp(-still) if closure.often else still / (still + 1.0 - closure.chance))
        begin = rng.choice(begins, count)[:, None] - 1
        length = rng.integers(least, most + 1, count)[:, None]
        on = comes[:, None] & (lap >= begin) & (lap < begin + length) & (status == GREEN)
        status = np.where(on, CODE[closure.kind], status)
    return status
