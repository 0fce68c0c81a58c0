"""Scripted policies: degenerate ones that exploit a careless score, and simple honest baselines."""
from __future__ import annotations

import numpy as np

from f1_pipelines.sim.engine.hashing import stable_hash
from f1_pipelines.sim.engine.parameters import COMPOUNDS
from f1_pipelines.sim.environment.commands import CAR, GRAMMAR, STAY, TEXT, VERBS, Command
from f1_pipelines.sim.environment.observation import Observation
from f1_pipelines.sim.policies.policy import Decision

WORDS = "box box pit now, rain, safety car, rival, tyres, undercut, cover, push"


class Fixed:
    """Plays a list of commands, one a lap, and repeats the last. Ignores observations."""

    def __init__(self, *commands: Command, reason: str = "Next of a fixed list.") -> None:
        self._commands, self._reason = commands, reason

    def begin(self, observation: Observation) -> None:
        """Start at the top of the list."""
        self._at = 0

    def decide(self, observation: Observation) -> Decision:
        """The next command of the list."""
        command = self._commands[min(self._at, len(self._commands) - 1)]
        self._at += 1
        return Decision(command, self._reason)


def stay_out() -> Fixed:
    """Always STAY_OUT."""
    return Fixed(STAY, reason="Always stays out.")


def done() -> Fixed:
    """DONE in lap 1."""
    return Fixed(Command("DONE"), reason="Hands over at once.")


def keyword_radio() -> Fixed:
    """A message of all keywords, every lap."""
    return Fixed(Command("RADIO_DRIVER", text=WORDS), reason="Says all keywords every lap.")


def blind_list() -> Fixed:
    """One list for all families, the best of twelve tried: save fuel, inspect, announce a stop, stop."""
    return Fixed(Command("SET_MODE", "fuel_save"), Command("INSPECT_FUEL_MARGIN"), Command("REQUEST_FORECAST"),
                 Command("INSPECT_TYRE_DEGRADATION"), Command("RADIO_DRIVER", text="Box lap 6 for softs"),
                 Command("PIT_NOW", "soft"), Command("SET_MODE", "race"), STAY)


class InspectAll:
    """All inspections in turn, and no stop."""

    def begin(self, observation: Observation) -> None:
        """List the inspections, with one for each opponent."""
        others = sorted(c.number for c in observation.cars if c.number != observation.number)
        self._list = [Command("INSPECT_FUEL_MARGIN"), Command("INSPECT_TYRE_DEGRADATION"), Command("REQUEST_FORECAST"),
                      Command("ASSESS_UNDERCUT_WINDOW"), *(Command("CHECK_OPPONENT_STRATEGY", car=n) for n in others)]
        self._at = 0

    def decide(self, observation: Observation) -> Decision:
        """The next inspection."""
        self._at += 1
        return Decision(self._list[(self._at - 1) % len(self._list)], "Asks everything, in turn.")


class FixedStop:
    """Stops at half distance for hards (from hards for mediums) and announces it one lap before."""

    def begin(self, observation: Observation) -> None:
        """Choose lap and compound of the stop."""
        self._lap = observation.laps // 2
        self._tyre = "medium" if observation.own.compound == "hard" else "hard"

    def decide(self, observation: Observation) -> Decision:
        """A message the lap before, then the stop."""
        if observation.lap == self._lap:
            return Decision(Command("PIT_NOW", self._tyre), "Stops at half distance.")
        if observation.lap == self._lap - 1:
            return Decision(Command("RADIO_DRIVER", text=f"Box lap {self._lap} for {self._tyre}s"), "Says so before.")
        return Decision(STAY, "Stays out.")


class Checklist:
    """Simple rules: inspects fuel and forecast, saves fuel, stops for worn tyres, rain and safety cars."""

    def begin(self, observation: Observation) -> None:
        """Reset the fuel reading."""
        self._fuel: float | None = None

    def decide(self, o: Observation) -> Decision:
        """The first rule that applies."""
        self._fuel = o.facts.get("fuel_margin_laps", self._fuel)
        slick = o.own.compound in COMPOUNDS[:3]
        life = 34.0 * {"soft": 0.84, "medium": 1.0, "hard": 1.2}.get(o.own.compound, 1.0) / o.wear_scale
        owed = o.rule and len(o.used) < 2
        if slick and o.wetness > 0.28:
            return Decision(Command("PIT_NOW", "inter"), "The track is wet.")
        if not slick and o.wetness < 0.17 and o.lap < o.laps:
            return Decision(Command("PIT_NOW", "medium"), "The track has dried.")
        tyre = "medium" if o.own.compound == "hard" else "hard"
        if slick and 1 < o.lap < o.laps and ((owed and o.status != "green") or o.own.age_laps > life * 0.85
                                             or (owed and o.lap > 0.6 * o.laps)):
            return Decision(Command("PIT_NOW", tyre), "Tyres or track say so.")
        if o.lap == 1:
            return Decision(Command("INSPECT_FUEL_MARGIN"), "First item.")
        if o.lap == 2 and self._fuel is not None and self._fuel < 0:
            return Decision(Command("SET_MODE", "fuel_save"), "The tank is short.")
        if o.mode == "fuel_save" and self._fuel is not None and o.lap > 2 - self._fuel / 0.12 + 1:
            return Decision(Command("SET_MODE", "race"), "Saved enough.")
        if o.rain_chance and o.lap == 3:
            return Decision(Command("REQUEST_FORECAST"), "Rain is possible.")
        return Decision(STAY, "Nothing applies.")


class Random:
    """A uniformly random verb with a random argument."""

    def begin(self, observation: Observation) -> None:
        """Seed the generator by the race."""
        self._rng = np.random.default_rng(stable_hash(
            "random", observation.family, observation.circuit, observation.number,
            *(c.number for c in observation.cars)))

    def decide(self, observation: Observation) -> Decision:
        """A random command with an argument from this race; DONE in the last lap only."""
        verbs = [v for v in VERBS if v != "DONE"] if observation.lap < observation.laps else list(VERBS)
        verb = verbs[self._rng.integers(len(verbs))]
        kind = GRAMMAR[verb]
        if kind == CAR:
            others = [c.number for c in observation.cars if c.number != observation.number]
            return Decision(Command(verb, car=others[self._rng.integers(len(others))]), "Random.")
        if kind == TEXT:
            text = ("box this lap", "rain soon", "all fine")[self._rng.integers(3)]
            return Decision(Command(verb, text=text), "Random.")
        word = "" if kind is None else kind[self._rng.integers(len(kind))]
        return Decision(Command(verb, word=word), "Random.")
