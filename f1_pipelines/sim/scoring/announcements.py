"""Messages due in a race and the laps in which each is in time: stops, closed track, rain, rival."""
from __future__ import annotations

import numpy as np

from f1_pipelines.sim.engine.parameters import COMPOUNDS, GREEN, SC
from f1_pipelines.sim.scenarios import Scenario

STOP_WITHIN, RAIN_BEFORE, RAIN_AFTER = 4, 5, 1  # laps of the windows before a stop and around the first rain
RIVAL = "rival"  # placeholder: the text depends on the lap it is sent in
Window = tuple[int, int, str]  # first lap, last lap, text


def can_announce(scenario: Scenario, lap: int) -> bool:
    """Whether a stop can be announced before its lap: not in lap 1, nor when the track has just closed."""
    closed = scenario.status[lap - 1] != GREEN and (lap == 1 or scenario.status[lap - 2] == GREEN)
    return lap > 1 and not closed


def message_windows(scenario: Scenario, stops: tuple[tuple[int, int], ...]) -> list[Window]:
    """Messages due with these stops, earliest deadline first."""
    due: list[Window] = [
        (max(lap - STOP_WITHIN, 1), lap - 1, f"Box lap {lap} for {COMPOUNDS[compound]}s")
        for lap, compound in stops if can_announce(scenario, lap)]
    due += event_windows(scenario)
    if not stops:
        due.append((1, scenario.laps, "Stay out, no stop"))
    return sorted(due, key=lambda window: window[1])


def event_windows(scenario: Scenario) -> list[Window]:
    """Messages due whatever the stops: closed track, rain, rival."""
    due: list[Window] = []
    slow = np.flatnonzero(scenario.status != GREEN) + 1
    if len(slow):
        word = "Safety car" if scenario.status[slow[0] - 1] == SC else "VSC"
        due.append((int(slow[0]), int(slow[-1]), f"{word} is out"))
    rain = np.flatnonzero(scenario.rain > 0) + 1
    if len(rain):
        first = int(rain[0])
        due.append((max(first - RAIN_BEFORE, 1), first + RAIN_AFTER, f"Rain from lap {first}"))
    if scenario.rival:
        due.append((2, scenario.laps, RIVAL))
    return due


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
