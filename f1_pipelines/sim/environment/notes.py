"""Notes of the pit wall: the latest answer to each question and the latest message.

A model reads one observation at a time; without notes it loses each answer a lap later. Fuel and tyre margins are
updated as laps are driven.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from f1_pipelines.sim.engine.drive import MODE_EFFECTS, TEMP_EFFECTS
from f1_pipelines.sim.engine.parameters import COMPOUNDS
from f1_pipelines.sim.environment.commands import Command

REMEMBERED = 8  # latest notes in an observation; the text shows as many as fit
FUEL_SLOW = {"green": 1.0, "vsc": 0.65, "sc": 0.5, "red": 0.5}  # share of a racing lap's use
WEAR_SLOW = {"green": 1.0, "vsc": 0.5, "sc": 0.25, "red": 0.25}
FUEL, TYRES = "INSPECT_FUEL_MARGIN", "INSPECT_TYRE_DEGRADATION"


def lap_usage(mode: int, temp: int, status: str) -> tuple[float, float]:
    """Nominal fuel and wear of a lap [laps at race pace].

    >>> lap_usage(1, 0, "green")
    (1.0, 1.0)
    """
    driven = MODE_EFFECTS[mode] + TEMP_EFFECTS[temp]
    return driven.fuel * FUEL_SLOW[status], driven.wear * WEAR_SLOW[status]


@dataclass
class Notes:
    """One line per question, with its latest answer."""

    lines: dict[object, tuple[int, str]] = field(default_factory=dict)
    margins: dict[str, float] = field(default_factory=dict)  # laps that fuel and set last beyond the flag, by question

    def write(self, lap: int, command: Command, facts: Mapping[str, Any]) -> None:
        """Note the answer to a command of a lap."""
        line = _line(command, facts)
        if line is not None:
            key = (command.verb, command.car)
            self.lines.pop(key, None)
            self.lines[key] = (lap, line)
            for name, fact in ((FUEL, "fuel_margin_laps"), (TYRES, "tyre_laps_left")):
                if command.verb == name:
                    self.margins[name] = facts[fact]

    def driven(self, mode: int, temp: int, status: str, changed: bool) -> None:
        """Update the margins after a lap; drop the tyre note if the set was `changed`."""
        fuel, wear = lap_usage(mode, temp, status)
        if FUEL in self.margins:
            self.margins[FUEL] += 1.0 - fuel
        if TYRES in self.margins:
            self.margins[TYRES] -= wear
        if changed:
            self.margins.pop(TYRES, None)
            self.lines.pop((TYRES, 0), None)

    def copy(self) -> Notes:
        """An independent copy."""
        return Notes(dict(self.lines), dict(self.margins))

    def latest(self) -> tuple[str, ...]:
        """The latest `REMEMBERED` notes, oldest first. `L3 fuel -0.35`: asked in lap 3, margin as of now."""
        shown = list(self.lines.items())[-REMEMBERED:]
        return tuple(f"L{lap} {self._now(key, line)}" for key, (lap, line) in shown)

    def _now(self, key: object, line: str) -> str:
        verb = key[0] if isinstance(key, tuple) else ""
        if verb == FUEL:
            return f"fuel {self.margins[FUEL]:+.2f}"
        return f"set {self.margins[TYRES]:+.1f} laps" if verb == TYRES else line


def _line(command: Command, facts: Mapping[str, Any]) -> str | None:
    """A note on a command and its answer; None for commands without a note."""
    verb = command.verb
    if verb == "INSPECT_FUEL_MARGIN":
        return f"fuel {facts['fuel_margin_laps']:+.2f}"
    if verb == "INSPECT_TYRE_DEGRADATION":
        return f"set {facts['tyre_laps_left']:+.1f} laps"
    if verb == "REQUEST_FORECAST":
        if facts["chance"] == 0.0:
            return "no rain"
        sure = "" if facts["chance"] < 1 else " sure"
        chance = "" if sure else f" {facts['chance']:.0%}"
        last = facts["onset_lap"] + facts["length_laps"] - 1
        return f"rain{chance}{sure} {facts['onset_lap']}-{last} peak {facts['peak']:.2f}"
    if verb == "CHECK_OPPONENT_STRATEGY":
        plan = ", ".join(f"{COMPOUNDS[tyre]} lap {lap}" for lap, tyre in facts["plan"]) or "no stop"
        return f"{facts['car']} {facts['character']} {plan}"
    if verb == "ASSESS_UNDERCUT_WINDOW" and "gain_s" in facts:
        return f"undercut {facts['car']} {facts['gain_s']:+.1f} s"
    if verb == "RADIO_DRIVER":
        return f'told "{command.text[:40]}"'
    return None
