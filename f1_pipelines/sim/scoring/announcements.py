"""What has to be said in a race, and in which laps it may be said: the stops, a closed track, the rain, the rival."""
from __future__ import annotations

import numpy as np

from f1_pipelines.sim.engine.parameters import COMPOUNDS, GREEN, SC
from f1_pipelines.sim.scenarios import Scenario

RIVAL = "rival"  # stands for a sentence that only the lap it is said in can fill
Window = tuple[int, int, str]  # first lap, last lap, text


def foreseen(scenario: Scenario, lap: int) -> bool:
    """Whether a stop could be announced before the lap it is made in: not in lap 1, nor when the track just closed."""
    closed = scenario.status[lap - 1] != GREEN and (lap == 1 or scenario.status[lap - 2] == GREEN)
    return lap > 1 and not closed


def windows(scenario: Scenario, stops: tuple[tuple[int, int], ...]) -> list[Window]:
    """Messages that these stops make due, the most urgent first."""
    due: list[Window] = [
        (max(lap - 4, 1), lap - 1, f"Box lap {lap} for {COMPOUNDS[compound]}s")
        for lap, compound in stops if foreseen(scenario, lap)]
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


def placed(due: list[Window], free: list[int]) -> dict[int, str]:
    """Lap -> text, the earliest deadline first into the first free lap of its window.

    >>> placed([(1, 2, "a"), (1, 3, "b"), (2, 2, "c")], [2, 3])
    {2: 'a', 3: 'b'}
    """
    messages: dict[int, str] = {}
    for first, last, text in due:
        lap = next((lap for lap in free if first <= lap <= last and lap not in messages), None)
        if lap is not None:
            messages[lap] = text
    return messages
