"""Messages due in a race and the laps in which each is in time: stops, closed track, rain, rival."""
from __future__ import annotations

import numpy as np

from f1_pipelines.sim.engine.parameters import COMPOUNDS, GREEN, SC
from f1_pipelines.sim.scenarios import Scenario

RIVAL = "rival"  # placeholder: the text depends on the lap it is sent in
Window = tuple[int, int, str]  # first lap, last lap, text


def can_announce(scenario: Scenario, lap: int) -> bool:
    """Whether a stop can be announced before its lap: not in lap 1, nor when the track has just closed."""
    closed = scenario.status[lap - 1] != GREEN and (lap == 1 or scenario.status[lap - 2] == GREEN)
    return lap > 1 and not closed


def message_windows(scenario: Scenario, stops: tuple[tuple[int, int], ...]) -> list[Window]:
    """Messages due with these stops, earliest deadline first."""
    due: list[Window] = [
        (max(lap - 4, 1), lap - 1, f"Box lap {lap} for {COMPOUNDS[compound]}s")
        for lap, compound in stops if can_announce(scenario, lap)]
    slow = np.flatnonzero(scenario.status != GREEN) + 1
    if len(slow):
        word = "Safety car" if scenario.status[slow[0] - 1] == SC else "VSC"
        due.append((int(slow[0]), int(slow[-1]), f"{word} is out"))
    rain = np.flatnonzero(scenario.rain > 0) + 1
    if len(rain):
        due.append((max(int(rain[0]) - 5, 1), int(rain[0]) + 1, f"Rain from lap {rain[0]}"))
    if scenario.rival:
        due.append((2, scenario.laps, RIVAL))
    if not stops:
        due.append((1, scenario.laps, "Stay out, no stop"))
    return sorted(due, key=lambda window: window[1])


def assign_messages(due: list[Window], free: list[int]) -> dict[int, str]:
    """Lap -> text: each message, earliest deadline first, in the first free lap of its window.

    >>> assign_messages([(1, 2, "a"), (1, 3, "b"), (2, 2, "c")], [2, 3])
    {2: 'a', 3: 'b'}
    """
    messages: dict[int, str] = {}
    for first, last, text in due:
        lap = next((lap for lap in free if first <= lap <= last and lap not in messages), None)
        if lap is not None:
            messages[lap] = text
    return messages
