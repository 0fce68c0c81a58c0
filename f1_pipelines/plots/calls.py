"""Selects the commands of a race to show in its plot, and formats their texts."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from f1_pipelines.sim.policies.play import Played


@dataclass(frozen=True)
class PlottedCall:
    """A command to mark in a plot. `text` is the command with the error, reply or reason."""

    lap: int
    text: str


def calls_of(race: Played, max_calls: int) -> list[PlottedCall]:
    """Select up to `max_calls` commands by lap, spread over the race: pit stops first, then messages, then others."""
    min_laps_apart = max(row["lap"] for row in race.laps) / (max_calls + 1)
    selected: list[dict[str, Any]] = []
    for decision in sorted(active_decisions(race), key=_priority):
        if len(selected) < max_calls and all(abs(decision["lap"] - other["lap"]) >= min_laps_apart
                                             for other in selected):
            selected.append(decision)
    return [PlottedCall(d["lap"], _call_text(d)) for d in sorted(selected, key=lambda d: d["lap"])]


def active_decisions(race: Played) -> list[dict[str, Any]]:
    """The decisions other than STAY_OUT."""
    return [decision for decision in race.decisions if decision["command"] != "STAY_OUT"]


def _call_text(decision: dict[str, Any]) -> str:
    command, text = decision["command"], decision["error"] or decision["answer"] or decision["reason"]
    return _ascii_line(text if text.startswith(command) else f"{command}: {text}")


def _ascii_line(text: str) -> str:
    """Convert to one line of ASCII, which every font has: a model can output any text."""
    return " ".join(text.encode("ascii", "replace").decode().split()).replace("+-", "±")


def _priority(decision: dict[str, Any]) -> tuple[int, int]:
    stops, messages = ("PIT_NOW", "RECOMMEND_PIT", "DONE"), ("RADIO_DRIVER", "DRAFT_PIT_WALL", "BRIEF_MEDIA")
    verb = decision["command"].split(" ")[0]
    return (0 if verb in stops else 1 if verb in messages else 2), decision["lap"]
