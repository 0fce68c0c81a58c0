"""Which of a race's calls a picture tells, and in which words."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from f1_pipelines.sim.policies.play import Played


@dataclass(frozen=True)
class PlottedCall:
    """A call of the pit wall worth a mark, with what came back or why it was made."""

    lap: int
    text: str


def calls_of(race: Played, most: int) -> list[PlottedCall]:
    """Up to `most` calls by lap, as far apart as that asks: stops come first, then what was said, then the rest."""
    apart = max(row["lap"] for row in race.laps) / (most + 1)
    chosen: list[dict[str, Any]] = []
    for decision in sorted(active_decisions(race), key=_priority):
        if len(chosen) < most and all(abs(decision["lap"] - other["lap"]) >= apart for other in chosen):
            chosen.append(decision)
    return [PlottedCall(d["lap"], _call_text(d)) for d in sorted(chosen, key=lambda d: d["lap"])]


def active_decisions(race: Played) -> list[dict[str, Any]]:
    """The decisions that asked for something."""
    return [decision for decision in race.decisions if decision["command"] != "STAY_OUT"]


def _call_text(decision: dict[str, Any]) -> str:
    command, text = decision["command"], decision["error"] or decision["answer"] or decision["reason"]
    return _ascii_line(text if text.startswith(command) else f"{command}: {text}")


def _ascii_line(text: str) -> str:
    """One line of characters that every font has: commands may be anything that a model wrote."""
    return " ".join(text.encode("ascii", "replace").decode().split()).replace("+-", "±")


def _priority(decision: dict[str, Any]) -> tuple[int, int]:
    stops, talks = ("PIT_NOW", "RECOMMEND_PIT", "DONE"), ("RADIO_DRIVER", "DRAFT_PIT_WALL", "BRIEF_MEDIA")
    verb = decision["command"].split(" ")[0]
    return (0 if verb in stops else 1 if verb in talks else 2), decision["lap"]
