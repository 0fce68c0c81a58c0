"""What will happen in a race, and what can be known of it beforehand: rain, safety cars.

The forecast comes first and the truth is drawn from it, so that every stated chance and error is right by
construction: of the races with "rain 90 %" nine in ten see rain.
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from f1_pipelines.sim.engine.parameters import GREEN, SC, VSC, CircuitParameters
from f1_pipelines.sim.scenarios.families import Family
from f1_pipelines.sim.scenarios.rng import ScenarioRng

CODE = {"sc": SC, "vsc": VSC}
SURE, UNLIKELY = 0.95, 0.05  # chances a forecast gives
ONSET_ERROR = ((-1, 0.2), (0, 0.6), (1, 0.2))  # laps, probability
RADAR_LAPS = 3  # whoever asks sees for certain whether rain begins in the coming laps, so many
PEAK_ERROR, LENGTH_ERROR = 0.10, 1  # uniform +- intensity, +- laps
PEAKS = (0.38, 0.55, 0.70, 0.90)  # light, moderate, steady, heavy
SC_LENGTH, VSC_LENGTH = (2, 4), (2, 3)  # laps of a sprint, evenly
# Laps, of a Grand Prix; docs/physics.md#safety-car: 2 / 4 / 7 and 1 / 2 / 3 laps.
FULL_SC_LENGTH, FULL_VSC_LENGTH = (3, 6), (1, 3)
SC_AT_THE_START = 0.24  # docs/physics.md#safety-car: share of the safety cars that come out in lap 1, and slow lap 2


@dataclass(frozen=True)
class Closure:
    """What may close the track, as everybody knows beforehand."""

    kind: str  # sc or vsc
    chance: float  # of one in a sprint; of a Grand Prix: mean number
    first: int  # lap in which one may begin
    last: int
    lengths: tuple[int, int]  # laps, evenly
    often: bool = False  # it may come back


@dataclass(frozen=True)
class Forecast:
    """What the weather desk believes before the start; laps count from 1."""

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
    """(laps,) intensity: half of the peak in the first and last lap of the shower."""
    rain = np.zeros(laps)
    if shower is not None:
        last = shower.onset_lap + shower.length_laps - 1
        for lap in range(max(shower.onset_lap, 1), min(last, laps) + 1):
            edge = lap in (shower.onset_lap, last) and shower.length_laps > 2
            rain[lap - 1] = shower.peak * (0.5 if edge else 1.0)
    return rain


def draw_weather(dice: ScenarioRng, rain: float, laps: int, longest: int) -> tuple[Forecast | None, Shower | None]:
    """A forecast and the weather that comes of it, where a shower has that chance and lasts `longest` laps at most."""
    if rain == 0.0:
        return None, None
    sure = dice.chance((rain - UNLIKELY) / (SURE - UNLIKELY))
    forecast = Forecast(SURE if sure else UNLIKELY, dice.whole(3, laps - 4), dice.pick(PEAKS), dice.whole(3, longest))
    return forecast, draw_shower(dice, forecast)


def draw_shower(dice: ScenarioRng, forecast: Forecast) -> Shower | None:
    """The truth behind a forecast."""
    falls, shift, peak, length = dice.chance(forecast.chance), dice.uniform(), dice.uniform(-1, 1), dice.whole(-1, 1)
    if not falls:
        return None
    onset = forecast.onset_lap + (-1 if shift < 0.2 else 0 if shift < 0.8 else 1)
    return Shower(onset, min(forecast.peak + PEAK_ERROR * peak, 1.0), max(forecast.length_laps + length, 2))


def closures_of(family: Family, laps: int) -> tuple[Closure, ...]:
    """What may close the track in a sprint of that family."""
    kind, chance = family.slow
    if not chance:
        return ()
    low, high = family.window
    return (Closure(kind, chance, max(2, round(low * laps)), max(3, round(high * laps)),
                    SC_LENGTH if kind == "sc" else VSC_LENGTH),)


def draw_status(dice: ScenarioRng, family: Family, laps: int) -> np.ndarray:
    """(laps,) status of each lap of a sprint."""
    comes, when, length = dice.chance(family.slow[1]), dice.uniform(), dice.uniform()
    status = np.full(laps, GREEN)
    for closure in closures_of(family, laps) if comes else ():
        begin, lasts = within(when, closure.first, closure.last), within(length, *closure.lengths)
        status[begin - 1:begin - 1 + lasts] = CODE[closure.kind]
    return status


def closures_of_race(circuit: CircuitParameters, laps: int) -> tuple[Closure, ...]:
    """What may close the track in a Grand Prix there."""
    return (Closure("sc", round(circuit.sc_per_race, 2), 2, laps - 3, FULL_SC_LENGTH, True),
            Closure("vsc", round(circuit.vsc_per_race, 2), 2, laps - 3, FULL_VSC_LENGTH, True))


def draw_race_status(dice: ScenarioRng, closures: tuple[Closure, ...], laps: int) -> np.ndarray:
    """(laps,) status of each lap of a Grand Prix: up to three periods of each kind, none on top of another."""
    status = np.full(laps, GREEN)
    for closure in closures:
        count = sum(dice.uniform() < p for p in _more_than(closure.chance))  # three draws, whatever comes
        for nth in range(3):
            start, when, length = dice.chance(SC_AT_THE_START), dice.uniform(), dice.uniform()
            begin = 2 if start and closure.kind == "sc" else within(when, closure.first, closure.last)
            lasts = within(length, *closure.lengths)
            if nth < count and (status[max(begin - 3, 0):begin + lasts + 1] == GREEN).all():
                status[begin - 1:begin - 1 + lasts] = CODE[closure.kind]
    return status


def _more_than(mean: float) -> tuple[float, float, float]:
    """Chances of three independent periods whose mean number is that."""
    return (min(mean / 3.0, 1.0),) * 3


def within(u: float, low: int, high: int) -> int:
    """A whole number from low to high by a uniform draw."""
    return min(low + int(u * (high - low + 1)), high)
