"""What the pit wall has written down: the last answer to each question, and what was said last.

An engineer keeps a note pad, so a model that reads one observation at a time must have one too: without it every answer
is forgotten a lap later.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from f1_pipelines.sim.environment.commands import Command
from f1_pipelines.sim.parameters import COMPOUNDS

KEPT = 8  # notes, the latest; the text shows as many as fit


@dataclass
class Notes:
    """One line per question, the latest answer only."""

    lines: dict[object, tuple[int, str]] = field(default_factory=dict)

    def write(self, lap: int, command: Command, facts: Mapping[str, Any]) -> None:
        """Note what a command brought in that lap."""
        line = _line(command, facts)
        if line is not None:
            key = (command.verb, command.car)
            self.lines.pop(key, None)
            self.lines[key] = (lap, line)

    def copy(self) -> Notes:
        """The same notes, written on separately."""
        return Notes(dict(self.lines))

    def latest(self) -> tuple[str, ...]:
        """The newest `KEPT`, oldest first: `L3 fuel -0.35`."""
        shown = list(self.lines.values())[-KEPT:]
        return tuple(f"L{lap} {line}" for lap, line in shown)


def _line(command: Command, facts: Mapping[str, Any]) -> str | None:
    """A command and its answer in a few words; None for what needs no note."""
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
