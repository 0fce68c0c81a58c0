"""What will happen in a sprint, and what can be known of it beforehand: rain, safety cars.

The forecast comes first and the truth is drawn from it, so that every stated chance and error is right by
construction: of the sprints with "rain 90 %" nine in ten see rain.
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from f1_pipelines.sim.parameters import GREEN, SC, VSC
from f1_pipelines.sim.scenarios.dice import Dice
from f1_pipelines.sim.scenarios.families import Family

SURE, UNLIKELY = 0.95, 0.05  # chances a forecast gives
ONSET_ERROR = ((-1, 0.2), (0, 0.6), (1, 0.2))  # laps, probability
RADAR_LAPS = 3  # whoever asks sees for certain whether rain begins in the coming laps, so many
PEAK_ERROR, LENGTH_ERROR = 0.10, 1  # uniform +- intensity, +- laps
PEAKS = (0.38, 0.55, 0.70, 0.90)  # light, moderate, steady, heavy
SC_LENGTH, VSC_LENGTH = (2, 4), (2, 3)  # laps, evenly


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


def draw_weather(dice: Dice, family: Family, laps: int) -> tuple[Forecast | None, Shower | None]:
    """A forecast and the weather that comes of it."""
    if family.rain == 0.0:
        return None, None
    sure = dice.chance((family.rain - UNLIKELY) / (SURE - UNLIKELY))
    forecast = Forecast(SURE if sure else UNLIKELY, dice.whole(3, laps - 4), dice.pick(PEAKS), dice.whole(3, laps))
    return forecast, draw_shower(dice, forecast)


def draw_shower(dice: Dice, forecast: Forecast) -> Shower | None:
    """The truth behind a forecast."""
    falls, shift, peak, length = dice.chance(forecast.chance), dice.uniform(), dice.uniform(-1, 1), dice.whole(-1, 1)
    if not falls:
        return None
    onset = forecast.onset_lap + (-1 if shift < 0.2 else 0 if shift < 0.8 else 1)
    return Shower(onset, min(forecast.peak + PEAK_ERROR * peak, 1.0), max(forecast.length_laps + length, 2))


def closures(family: Family, laps: int) -> tuple[str, float, int, int]:
    """What may close the track, its chance, and the first and last lap in which it may begin."""
    low, high = family.window
    return *family.slow, max(2, round(low * laps)), max(3, round(high * laps))


def draw_status(dice: Dice, family: Family, laps: int) -> np.ndarray:
    """(laps,) status of each lap."""
    kind, chance, first, last = closures(family, laps)
    comes, begin = dice.chance(chance), dice.whole(first, last)
    length = dice.whole(*(SC_LENGTH if kind == "sc" else VSC_LENGTH))
    status = np.full(laps, GREEN)
    if comes:
        status[begin - 1:begin - 1 + length] = SC if kind == "sc" else VSC
    return status
