"""The observation before a lap: a typed object, and its text for models.

Includes timing, tyres and tyre ages of all cars, wetness of the last lap, track status of the next one, our settings
and the answer to the last command. Excludes wear, cliffs, fuel, opponents' plans, forecasts and future track status.
"""
from __future__ import annotations

from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Any

from f1_pipelines.sim.engine.drive import MODES, TEMPS
from f1_pipelines.sim.engine.parameters import COMPOUNDS, STATUSES
from f1_pipelines.sim.engine.race import Race
from f1_pipelines.sim.engine.state import RaceState
from f1_pipelines.sim.environment.pit_wall import PitWallState
from f1_pipelines.sim.environment.prompt import briefing_of, text_of
from f1_pipelines.sim.scenarios import EGO, ENV_VERSION, Scenario
from f1_pipelines.sim.scenarios.opponents import wetness_now
from f1_pipelines.sim.scenarios.track_events import Closure


@dataclass(frozen=True)
class CarSeen:
    """One car on the timing screen."""

    number: int
    position: int
    gap_s: float  # to ours, - is ahead
    compound: str
    age_laps: int
    stops: int
    practice_s: float  # pace in practice [s/lap], standard deviation 0.1
    running: bool


@dataclass(frozen=True)
class Observation:
    """The observation before lap `lap`; after the flag `lap` stays at the last lap."""

    family: str
    circuit: str
    lap: int
    laps: int
    status: str
    status_laps: int  # laps of this status so far, the next one included
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
    closures: tuple[Closure, ...]  # track closures that may come
    rain_chance: float
    offsets_s: tuple[float, ...]  # of the slicks against a medium, as in the briefing
    lasts_laps: tuple[float, ...]  # usual life of new slicks in this race, as in the briefing
    briefing: str
    answer: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()  # notes on questions and messages, newest last
    done: bool = False
    weekend: str = ""  # of a Grand Prix
    env_version: int = ENV_VERSION

    @property
    def own(self) -> CarSeen:
        """Our car."""
        return next(car for car in self.cars if car.number == self.number)

    @property
    def set_left_laps(self) -> float | None:
        """Usual life of our compound minus the age of our set [laps]; None on rain tyres."""
        tyre = COMPOUNDS.index(self.own.compound)
        return self.lasts_laps[tyre] - self.own.age_laps if tyre < len(self.lasts_laps) else None

    def as_dict(self) -> dict[str, Any]:
        """Fields as a dictionary for JSON."""
        return asdict(self)

    @property
    def text(self) -> str:
        """The prompt that models read."""
        return text_of(self)


def observe(scenario: Scenario, race: Race, state: RaceState, wall: PitWallState, answer: str = "",
            facts: dict[str, Any] | None = None, over: bool = False, row: int = 0,
            notes: tuple[str, ...] = ()) -> Observation:
    """The observation before the next lap.

    Args:
        scenario: The scenario.
        race: The batch that holds the scenario.
        state: State of the batch.
        wall: State of our pit wall.
        answer: Text of the answer to the last command.
        facts: Numbers of that answer.
        over: Whether the race is over.
        row: Row of the scenario in the batch.
        notes: Notes of the pit wall, newest last.
    """
    cars, race_state = state.cars[row], state.races[row]
    order, out, elapsed_s = (cars[name].tolist() for name in ("order", "out", "elapsed_s"))
    compound, age_laps, stops = (cars[name].tolist() for name in ("compound", "age_laps", "stops"))
    ours_s = elapsed_s[EGO] if not out[EGO] else float(race_state["leader_s"])
    seen = tuple(CarSeen(
        scenario.numbers[k], place, 999.0 if out[k] else round(elapsed_s[k] - ours_s, 1), COMPOUNDS[compound[k]],
        age_laps[k], stops[k], float(scenario.practice_s[k]), not out[k]) for place, k in enumerate(order, 1))
    lines = state.line_s
    driven = len(lines) > 1 and not out[EGO]
    used = int(cars["used"][EGO])
    return Observation(
        **_constant_fields(scenario), lap=min(state.lap + 1, scenario.laps),
        status=STATUSES[race_state["status"]], status_laps=int(race_state["status_age"]),
        wetness=round(float(wetness_now(race, state)[row]), 2),
        rain=round(float(scenario.rain[min(max(state.lap, 1), scenario.laps) - 1]), 2),
        cars=seen, position=order.index(EGO) + 1,
        last_lap_s=round(float(lines[-1][row, EGO] - lines[-2][row, EGO]), 1) if driven else 0.0,
        tyre_temp_c=round(float(cars["temp_c"][EGO])), mode=MODES[wall.mode], temp=TEMPS[wall.temp], drs=wall.drs,
        used=tuple(name for k, name in enumerate(COMPOUNDS) if used >> k & 1), answer=answer, facts=facts or {},
        notes=notes, done=over)


@lru_cache(maxsize=256)
def _constant_fields(scenario: Scenario) -> dict[str, Any]:
    """The fields of an observation that hold for the whole race."""
    return {
        "family": scenario.family, "circuit": scenario.circuit.circuit, "laps": scenario.laps,
        "number": scenario.numbers[EGO], "wear_scale": scenario.wear_scale, "heat_c": scenario.heat_c,
        "rule": scenario.rule, "rival": scenario.rival, "closures": scenario.closures,
        "rain_chance": scenario.rain_chance,
        "offsets_s": tuple(round(x, 1) for x in scenario.circuit.compound_offset_s[:3]),
        "lasts_laps": tuple(round(x / scenario.wear_scale, 1) for x in scenario.circuit.cliff_laps[:3]),
        "briefing": briefing_of(scenario), "weekend": scenario.weekend}
