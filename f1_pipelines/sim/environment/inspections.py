"""Answers to inspections: the simulation's true values, or estimates with their true standard deviation.

Errors are drawn from (race, question, lap), so repeating a question within a lap repeats the answer.
"""
from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from f1_pipelines.sim.engine.drive import Calls
from f1_pipelines.sim.engine.hashing import stable_uniform
from f1_pipelines.sim.engine.parameters import COMPOUNDS, GREEN, HARD, MEDIUM, SOFT
from f1_pipelines.sim.engine.race import Race, prepare
from f1_pipelines.sim.engine.state import RaceState
from f1_pipelines.sim.engine.step import step
from f1_pipelines.sim.scenarios import CHARACTERS, EGO, Scenario, setup_of, without_luck
from f1_pipelines.sim.scenarios.plans import kind_of
from f1_pipelines.sim.scenarios.track_events import ONSET_ERROR, PEAK_ERROR, RADAR_LAPS, Forecast

ANSWERS_PER_RACE, ANSWERS_IN_FULL_FIELD = 6, 4  # cars in an answer about the field
TYRE_ERROR_LAPS, FUEL_ERROR_LAPS, UNDERCUT_ERROR_S = 0.4, 0.08, 0.8  # standard deviations, as stated


@dataclass(frozen=True)
class Answer:
    """An answer: text for the engineer, the same numbers for code."""

    text: str
    facts: dict[str, Any]


def error(scenario: Scenario, question: str, lap: int, sd: float) -> float:
    """A triangular error with standard deviation `sd`."""
    u = sum(stable_uniform("inspect", scenario.race_seed, question, lap, draw) for draw in (1, 2))
    return sd * 6.0**0.5 * (u - 1.0)


def tyre_life(scenario: Scenario, race: Race, state: RaceState, row: int = 0) -> Answer:
    """Laps at race pace until our set reaches its cliff."""
    left = (state.cliff_laps[row, EGO] - state.wear_laps[row, EGO]) / scenario.wear_scale
    estimate = round(float(left) + error(scenario, "tyre", state.lap, TYRE_ERROR_LAPS), 1)
    return Answer(f"Set falls off in {estimate} laps at race pace (+-{TYRE_ERROR_LAPS})." if estimate > 0 else
                  f"Set is past its end by {-estimate} laps (+-{TYRE_ERROR_LAPS}).",
                  {"tyre_laps_left": estimate, "sd": TYRE_ERROR_LAPS})


def fuel_margin(scenario: Scenario, race: Race, state: RaceState, row: int = 0) -> Answer:
    """Laps of fuel left at the flag, with the rest driven at race pace under green."""
    margin = state.fuel_kg[row, EGO] / race.fuel_burn[row] - (scenario.laps - state.lap)
    estimate = round(float(margin) + error(scenario, "fuel", state.lap, FUEL_ERROR_LAPS), 2)
    return Answer(f"Fuel {estimate:+.2f} laps at the flag at race pace (+-{FUEL_ERROR_LAPS}).",
                  {"fuel_margin_laps": estimate, "sd": FUEL_ERROR_LAPS})


def opponent(scenario: Scenario, column: int) -> Answer:
    """The plan and character of an opponent."""
    stops = [(int(lap), int(tyre)) for lap, tyre in zip(scenario.plan_lap[:, column], scenario.plan_compound[:, column],
                                                        strict=True) if lap]
    kind, number = CHARACTERS[kind_of(column)], scenario.numbers[column]
    plan = ", ".join(f"{COMPOUNDS[tyre]} at lap {lap}" for lap, tyre in stops)
    return Answer(f"#{number}: {kind}, plans {plan or 'no stop'}.", {"car": number, "character": kind, "plan": stops})


def forecast_now(scenario: Scenario, lap: int) -> tuple[Forecast | None, str]:
    """The forecast before a lap, and its kind: `coming`, `radar`, `raining`, `over` or `dry`.

    The radar shows with certainty rain that begins within `RADAR_LAPS`; the chance is conditional on an empty radar.
    """
    forecast, shower = scenario.forecast, scenario.shower
    if forecast is None:
        return None, "dry"
    if shower is not None and shower.onset_lap < lap:
        raining = scenario.rain[lap - 2] > 0
        return Forecast(1.0, shower.onset_lap, forecast.peak, forecast.length_laps), "raining" if raining else "over"
    seen = lap + RADAR_LAPS - 1
    if shower is not None and shower.onset_lap <= seen:
        return Forecast(1.0, shower.onset_lap, forecast.peak, forecast.length_laps), "radar"
    still = sum(p for shift, p in ONSET_ERROR if forecast.onset_lap + shift > seen)
    chance = forecast.chance * still / (forecast.chance * still + 1.0 - forecast.chance)
    if chance == 0.0:
        return None, "dry"
    return Forecast(round(chance, 2), forecast.onset_lap, forecast.peak, forecast.length_laps), "coming"


def forecast(scenario: Scenario, state: RaceState) -> Answer:
    """The rain still to come."""
    current, kind = forecast_now(scenario, state.lap + 1)
    if current is None or kind == "over":
        return Answer("No rain to come before the flag.", {"rain": "none", "chance": 0.0})
    end = current.onset_lap + current.length_laps - 1
    facts = {"rain": kind, "chance": current.chance, "onset_lap": current.onset_lap, "peak": current.peak,
             "length_laps": current.length_laps}
    strength = f"peak {current.peak:.2f} (+-{PEAK_ERROR:.1f})"
    if kind == "radar":
        return Answer(f"Radar: rain begins on lap {current.onset_lap}, until about {end} (+-1), {strength}.", facts)
    if kind == "raining":
        return Answer(f"Rain until about lap {end} (+-1), {strength}.", facts)
    span = f"from lap {current.onset_lap} (+-1) to about {end} (+-2)"
    return Answer(f"Rain {current.chance:.0%}, {span}, {strength}.", facts)


def undercut(scenario: Scenario, race: Race, state: RaceState, row: int = 0) -> Answer:
    """Gain of stopping this lap on the car ahead, if it stops a lap later, and our position after the stop."""
    if scenario.laps - state.lap < 4:
        return Answer("Too late for an undercut.", {"undercut": "late"})
    state = state.take(np.array([row]))
    place = state.position[0]
    target = -1 if place[EGO] == 1 else int(np.flatnonzero(place == place[EGO] - 1)[0])
    no_luck = without_luck(prepare(setup_of([as_it_stands(scenario, state.lap)]), first=state.lap))
    stay = np.full((1, scenario.cars), -1)
    ours, theirs = stay.copy(), stay.copy()
    ours[0, EGO] = _other(int(state.compound[0, EGO]))
    out = step(no_luck, state, Calls(pit=ours))
    facts: dict[str, Any] = {"rejoin": int(out.position[0, EGO])}
    text = f"Stop now: out P{facts['rejoin']}"
    if target < 0:
        return Answer(text + "; nobody ahead to undercut.", facts)
    theirs[0, target] = _other(int(state.compound[0, target]))
    after = step(no_luck, step(no_luck, out, Calls(pit=theirs)))
    gap = state.elapsed_s[0, EGO] - state.elapsed_s[0, target]
    gain = float(gap - (after.elapsed_s[0, EGO] - after.elapsed_s[0, target]))
    gain = round(gain + error(scenario, "undercut", state.lap, UNDERCUT_ERROR_S), 1)
    number = scenario.numbers[target]
    facts.update(car=number, gain_s=gain, gap_s=round(float(gap), 1), sd=UNDERCUT_ERROR_S)
    return Answer(f"{text}; gain on {number} {gain:+.1f} s (+-{UNDERCUT_ERROR_S}), gap {gap:.1f}.", facts)


def as_it_stands(scenario: Scenario, lap: int) -> Scenario:
    """The scenario with its future hidden: green after the next lap, rain as it is now."""
    rain, status = scenario.rain.copy(), scenario.status.copy()
    rain[lap:] = rain[lap - 1] if lap else 0.0
    status[lap + 1:] = GREEN
    return replace(scenario, rain=rain, status=status)


def _other(compound: int) -> int:
    return {SOFT: MEDIUM, MEDIUM: HARD, HARD: MEDIUM}.get(compound, MEDIUM)


def information(scenario: Scenario, topic: str) -> Answer:
    """Public facts on a topic."""
    c = scenario.circuit
    if topic == "circuit":
        text = (f"Lap {c.base_lap_s:.1f} s; stop {c.stop_loss_green_s:.0f}, VSC {c.stop_loss_vsc_s:.0f}, SC "
                f"{c.stop_loss_sc_s:.0f}; a pass asks {-(c.pass_intercept + c.pass_circuit - 2.2) / 2.4:.1f} s.")
    elif topic == "tyres":
        wear = [slope * scenario.wear_scale for slope in c.degradation_s_per_lap]
        text = "Wear s/lap, life: " + ", ".join(f"{COMPOUNDS[k]} {wear[k]:.2f} {lasts_laps(scenario, k):.0f}"
                                                for k in (SOFT, MEDIUM, HARD)) + " +-15%"
        text = text.replace(" 0.", " .")
    elif topic == "rules":
        text = ("Two dry compounds unless it gets wet, else disqualified." if scenario.rule else
                "No stop is required.") + " An empty tank ends the race."
    else:
        order = sorted(range(scenario.cars), key=lambda k: scenario.practice_s[k])
        count = ANSWERS_PER_RACE if scenario.cars <= ANSWERS_PER_RACE else ANSWERS_IN_FULL_FIELD
        first = min(max(order.index(EGO) - count // 2, 0), max(len(order) - count, 0))
        text = "Practice" + (f" from P{first + 1}" if first else "") + ": " + " ".join(
            f"{scenario.numbers[k]} {scenario.practice_s[k]:+.1f}" for k in order[first:first + count])
        text = text.replace("+0.", "+.").replace("-0.", "-.")
    return Answer(text, {"topic": topic})


def principal(scenario: Scenario) -> Answer:
    """The place expected from practice pace and grid."""
    order = np.argsort(scenario.practice_s + 0.08 * scenario.grid, kind="stable")
    par = int(np.flatnonzero(order == EGO)[0]) + 1
    text = f"P{par} is what this car is worth"
    return Answer(text + (f"; finish ahead of #{scenario.rival}." if scenario.rival else "; places before pride."),
                  {"par": par})


def lasts_laps(scenario: Scenario, compound: int) -> float:
    """Usual life of a new set at race pace [laps]; public."""
    return scenario.circuit.cliff_laps[compound if compound <= HARD else HARD] / scenario.wear_scale
