"""What the pit wall sees before a lap: a typed object, and the same as text for a model to read.

Timing, tyres and ages of all cars, the water of the last lap, the status of the coming one, our settings and the
answer to the last call. Not in it: wear, cliffs, fuel, plans, forecasts, how long a status will last.
"""
from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from f1_pipelines.sim.drive import MODES, TEMPS
from f1_pipelines.sim.environment.wall import Wall
from f1_pipelines.sim.parameters import COMPOUNDS, MEDIUM, STATUSES
from f1_pipelines.sim.race import Race
from f1_pipelines.sim.scenarios import ENV_VERSION, Scenario, family_of
from f1_pipelines.sim.scenarios.happenings import closures
from f1_pipelines.sim.scenarios.opponents import wetness_now
from f1_pipelines.sim.state import RaceState

EGO = 0


@dataclass(frozen=True)
class CarSeen:
    """One car as timing shows it."""

    number: int
    position: int
    gap_s: float  # to ours, - is ahead
    compound: str
    age_laps: int
    stops: int
    practice_s: float  # pace in practice, s/lap, sd .1
    running: bool


@dataclass(frozen=True)
class Observation:
    """Before a lap; `lap` is the one to come (the last one again once the race is over)."""

    family: str
    circuit: str
    lap: int
    laps: int
    status: str
    status_laps: int  # laps of this status so far, the coming one included
    wetness: float
    rain: float
    cars: tuple[CarSeen, ...]  # by position, ours among them
    number: int
    position: int
    last_lap_s: float
    tyre_temp_c: float
    mode: str
    temp: str
    drs: bool
    used: tuple[str, ...]
    wear_scale: float
    heat_c: float
    rule: bool
    rival: int
    closure: tuple[str, float, int, int]  # what may close the track, chance, first and last lap it may begin
    rain_chance: float
    offsets_s: tuple[float, ...]  # of the slicks against a medium, as in the briefing
    briefing: str
    answer: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    done: bool = False
    env_version: int = ENV_VERSION

    @property
    def own(self) -> CarSeen:
        """Our car."""
        return next(car for car in self.cars if car.number == self.number)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    @property
    def text(self) -> str:
        """What a model reads."""
        return text_of(self)


def briefing_of(scenario: Scenario) -> str:
    """The scenario in a few words; the same for every plan that may be right."""
    kind, chance, first, last = closures(family_of(scenario.family), scenario.laps)
    c, life = scenario.circuit, scenario.circuit.cliff_laps[MEDIUM] / scenario.wear_scale
    words = [f"Wear x{scenario.wear_scale}: medium lasts about {life:.0f} laps.",
             f"Soft {c.compound_offset_s[0]:+.1f}, hard {c.compound_offset_s[2]:+.1f} s.",
             "Two dry compounds or disqualified." if scenario.rule else "No stop required.",
             f"Stop {c.stop_loss_green_s:.0f} s"
             + (f" (VSC {c.stop_loss_vsc_s:.0f}, SC {c.stop_loss_sc_s:.0f})." if chance else ".")]
    if chance:
        words.append(f"{kind.upper()} {chance:.0%} from laps {first}-{last}.")
    rain = family_of(scenario.family).rain
    if rain:
        words.append(f"Rain {rain:.0%}.")
    if scenario.rival:
        words.append(f"Title: beat #{scenario.rival}.")
    return " ".join(words)


def observe(scenario: Scenario, race: Race, state: RaceState, wall: Wall, answer: str = "",
            facts: dict[str, Any] | None = None, over: bool = False) -> Observation:
    """The observation before the next lap."""
    place, running = state.position[0], state.out[0] == 0
    ours = state.elapsed_s[0, EGO] if running[EGO] else state.leader_s[0, 0]
    cars = tuple(CarSeen(
        scenario.numbers[k], int(place[k]), round(float(state.elapsed_s[0, k] - ours), 1) if running[k] else 999.0,
        COMPOUNDS[state.compound[0, k]], int(state.age_laps[0, k]), int(state.stops[0, k]),
        float(scenario.practice_s[k]), bool(running[k])) for k in np.argsort(place))
    lines = state.line_s
    used = int(state.used[0, EGO])
    return Observation(
        family=scenario.family, circuit=scenario.circuit.circuit, lap=min(state.lap + 1, scenario.laps),
        laps=scenario.laps, status=STATUSES[state.status[0]], status_laps=int(state.status_age[0]),
        wetness=round(float(wetness_now(race, state)[0]), 2),
        rain=round(float(scenario.rain[max(state.lap - 1, 0)]), 2),
        cars=cars, number=scenario.numbers[EGO], position=int(place[EGO]),
        last_lap_s=round(float(lines[-1][0, EGO] - lines[-2][0, EGO]), 1) if len(lines) > 1 and running[EGO] else 0.0,
        tyre_temp_c=round(float(state.temp_c[0, EGO])), mode=MODES[wall.mode], temp=TEMPS[wall.temp], drs=wall.drs,
        used=tuple(name for k, name in enumerate(COMPOUNDS) if used >> k & 1), wear_scale=scenario.wear_scale,
        heat_c=scenario.heat_c, rule=scenario.rule, rival=scenario.rival,
        closure=closures(family_of(scenario.family), scenario.laps), rain_chance=family_of(scenario.family).rain,
        offsets_s=tuple(round(x, 1) for x in scenario.circuit.compound_offset_s[:3]),
        briefing=briefing_of(scenario), answer=answer, facts=facts or {}, done=over)


def text_of(o: Observation) -> str:
    """Observation as text.

    At most 220 tokens; the field is one line a car, the leader first: number, gap to us (on the grid: pace in
    practice), tyre and its age, stops made.
    """
    water = (f"wet {o.wetness:.2f}" if o.wetness > 0 else "dry") + (f", rain {o.rain:.2f}" if o.rain > 0 else "")
    temp = "" if abs(o.tyre_temp_c) <= 10 else f", tyres {o.tyre_temp_c:+.0f}C"
    manner = o.mode + ("" if o.temp == "normal" else f" {o.temp}") + ("" if o.drs else " no DRS")
    track = "" if abs(o.heat_c) < 10 else ", hot track" if o.heat_c > 0 else ", cold track"
    status = o.status.upper() + (f" lap {o.status_laps}" if o.status != "green" else "")
    lines = [f"{o.family} {o.circuit} lap {o.lap}/{o.laps} {status}, {water}{track}", o.briefing,
             f"#{o.number} P{o.position}, mode {manner}{temp}, used {' '.join(o.used)}"]
    for car in o.cars:
        tyre = f"{car.compound} {car.age_laps}"
        near = f"{car.gap_s:+.1f}" if abs(car.gap_s) < 20 else f"{car.gap_s:+.0f}"
        gap = "out" if not car.running else "us" if car.number == o.number else near
        if o.lap == 1 and not o.done:  # on the grid there are no gaps yet, but practice is known
            gap = f"practice {car.practice_s:+.1f}" + (" us" if car.number == o.number else "")
        lines.append(f"#{car.number} {gap} {tyre}" + (f" stops {car.stops}" if car.stops else ""))
    if o.answer:
        lines.append("> " + o.answer)
    return "\n".join(lines)
