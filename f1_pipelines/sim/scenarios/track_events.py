"""Rain and safety cars of a race, and what is known of them beforehand.

The forecast is drawn first and the weather is drawn from it, so every stated chance and error is right by construction:
nine in ten races with "rain 90 %" see rain.
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from f1_pipelines.sim.engine.parameters import GREEN, SC, VSC, CircuitParameters
from f1_pipelines.sim.scenarios.families import Family
from f1_pipelines.sim.scenarios.rng import ScenarioRng

CODE = {"sc": SC, "vsc": VSC}
SURE, UNLIKELY = 0.95, 0.05  # the chances that forecasts give
ONSET_ERROR = ((-1, 0.2), (0, 0.6), (1, 0.2))  # (laps, probability)
RADAR_LAPS = 3  # the radar shows for certain whether rain begins within this many laps
PEAK_ERROR, LENGTH_ERROR = 0.10, 1  # uniform +- intensity, +- laps
PEAKS = (0.38, 0.55, 0.70, 0.90)  # light, moderate, steady, heavy
SC_LENGTH, VSC_LENGTH = (2, 4), (2, 3)  # laps in a sprint, uniform
# Laps in a Grand Prix, uniform; docs/physics.md#safety-car: 2 / 4 / 7 and 1 / 2 / 3 laps.
FULL_SC_LENGTH, FULL_VSC_LENGTH = (3, 6), (1, 3)
SC_AT_THE_START = 0.24  # docs/physics.md#safety-car: share of safety cars that come out in lap 1, so that lap 2 is slow


@dataclass(frozen=True)
class Closure:
    """What may close the track, as known before the start."""

    kind: str  # sc or vsc
    chance: float  # of one in a sprint; mean number in a Grand Prix
    first: int  # lap in which one may begin
    last: int
    lengths: tuple[int, int]  # laps, uniform
    often: bool = False  # may happen more than once


@dataclass(frozen=True)
class Forecast:
    """The weather forecast before the start; laps count from 1."""

    chance: float
    onset_lap: int  # first lap of rain, +-1
    peak: float  # intensity, +-PEAK_ERROR
    length_laps: int  # +-LENGTH_ERROR


@dataclass(frozen=True)
class Shower:
    """The rain that falls."""

    onset_lap: int
    peak: float
    length_laps: int


def rain_trace(shower: Shower | None, laps: int) -> np.ndarray:
    """Rain intensity by lap, (laps,): half of the peak in the first and last lap of the shower."""
    rain = np.zeros(laps)
    if shower is not None:
        last = shower.onset_lap + shower.length_laps - 1
        for lap in range(max(shower.onset_lap, 1), min(last, laps) + 1):
            edge = lap in (shower.onset_lap, last) and shower.length_laps > 2
            rain[lap - 1] = shower.peak * (0.5 if edge else 1.0)
    return rain


def draw_weather(rng: ScenarioRng, rain: float, laps: int, longest: int) -> tuple[Forecast | None, Shower | None]:
    """Draw a forecast, and the weather from it.

    Args:
        rng: The scenario's random numbers.
        rain: Chance of a shower.
        laps: Race distance [laps].
        longest: Longest shower of a forecast [laps].
    """
    if rain == 0.0:
        return None, None
    sure = rng.chance((rain - UNLIKELY) / (SURE - UNLIKELY))
    forecast = Forecast(SURE if sure else UNLIKELY, rng.integer(3, laps - 4), rng.choice(PEAKS),
                        rng.integer(3, longest))
    return forecast, draw_shower(rng, forecast)


def draw_shower(rng: ScenarioRng, forecast: Forecast) -> Shower | None:
    """Draw the weather from a forecast."""
    falls, shift, peak, length = rng.chance(forecast.chance), rng.uniform(), rng.uniform(-1, 1), rng.integer(-1, 1)
    if not falls:
        return None
    onset = forecast.onset_lap + (-1 if shift < 0.2 else 0 if shift < 0.8 else 1)
    return Shower(onset, min(forecast.peak + PEAK_ERROR * peak, 1.0), max(forecast.length_laps + length, 2))


def closures_of(family: Family, laps: int) -> tuple[Closure, ...]:
    """What may close the track in a sprint of the family."""
    kind, chance = family.slow
    if not chance:
        return ()
    low, high = family.window
    return (Closure(kind, chance, max(2, round(low * laps)), max(3, round(high * laps)),
                    SC_LENGTH if kind == "sc" else VSC_LENGTH),)


def draw_status(rng: ScenarioRng, family: Family, laps: int) -> np.ndarray:
    """Draw the status of each lap of a sprint, (laps,)."""
    closes, when, length = rng.chance(family.slow[1]), rng.uniform(), rng.uniform()
    status = np.full(laps, GREEN)
    for closure in closures_of(family, laps) if closes else ():
        begin, lasts = integer_in(when, closure.first, closure.last), integer_in(length, *closure.lengths)
        status[begin - 1:begin - 1 + lasts] = CODE[closure.kind]
    return status


def closures_of_race(circuit: CircuitParameters, laps: int) -> tuple[Closure, ...]:
    """What may close the track in a Grand Prix at the circuit."""
    return (Closure("sc", round(circuit.sc_per_race, 2), 2, laps - 3, FULL_SC_LENGTH, True),
            Closure("vsc", round(circuit.vsc_per_race, 2), 2, laps - 3, FULL_VSC_LENGTH, True))


def draw_race_status(rng: ScenarioRng, closures: tuple[Closure, ...], laps: int) -> np.ndarray:
    """Draw the status of each lap of a Grand Prix, (laps,): up to three periods of each kind, without overlap."""
    status = np.full(laps, GREEN)
    for closure in closures:
        count = sum(rng.uniform() < p for p in _period_chances(closure.chance))  # three draws whatever the chances
        for nth in range(3):
            start, when, length = rng.chance(SC_AT_THE_START), rng.uniform(), rng.uniform()
            begin = 2 if start and closure.kind == "sc" else integer_in(when, closure.first, closure.last)
            lasts = integer_in(length, *closure.lengths)
            if nth < count and (status[max(begin - 3, 0):begin + lasts + 1] == GREEN).all():
                status[begin - 1:begin - 1 + lasts] = CODE[closure.kind]
    return status


def _period_chances(mean: float) -> tuple[float, float, float]:
    """Chances of three independent periods with this mean number."""
    return (min(mean / 3.0, 1.0),) * 3


def integer_in(u: float, low: int, high: int) -> int:
    """Map a uniform draw to an integer from low to high, both included."""
    return min(low + int(u * (high - low + 1)), high)
