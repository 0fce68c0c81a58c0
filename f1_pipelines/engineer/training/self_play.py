"""Opponents driven by a copy of the policy: the cars next to ours on the grid stop when it would have them stop.

The copy is put into the neighbour's car and races it, its calls drawn at a temperature, which makes it weaker than the
greedy policy it is compared with. Its stops become the neighbour's plan in our race: the plan from which the car
departs, as always, by its own character (`sim.scenarios.opponents`).
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from f1_pipelines.engineer.rollout import BatchPolicy, batched_rollout
from f1_pipelines.sim.scenarios import Scenario
from f1_pipelines.sim.scenarios.scenario import EGO

_BY_COLUMN = ("pace_s", "practice_s", "grid", "compound", "age_laps", "fuel_laps")


def with_self_play(scenarios: Sequence[Scenario], copy: BatchPolicy) -> list[Scenario]:
    """The races with the plans of both neighbours on the grid as the copy drove them.

    Args:
        scenarios: Sprints.
        copy: Who drives in the neighbours' place.
    """
    seats = [(k, column) for k, scenario in enumerate(scenarios) for column in range(1, scenario.cars)
             if abs(scenario.grid[column] - scenario.grid[EGO]) == 1]
    races = batched_rollout([_in_the_car_of(scenarios[k], column) for k, column in seats], copy)
    changed = list(scenarios)
    for (k, column), race in zip(seats, races, strict=True):
        changed[k] = _planned(changed[k], column, race.info["stops"])
    return changed


def _in_the_car_of(scenario: Scenario, column: int) -> Scenario:
    """The race from another car: it and ours change places, ours then follows that one's plan."""
    order = np.arange(scenario.cars)
    order[[EGO, column]] = column, EGO
    return replace(scenario, numbers=tuple(scenario.numbers[k] for k in order), rival=0,
                   **{name: getattr(scenario, name)[order] for name in _BY_COLUMN})


def _planned(scenario: Scenario, column: int, stops: Sequence[tuple[int, int]]) -> Scenario:
    """The race in which that car means to make these stops, lap and compound of each."""
    rows = max(len(stops), len(scenario.plan_lap))
    laps, compounds = (np.vstack([plan, np.zeros((rows - len(plan), scenario.cars), dtype=plan.dtype)])
                       for plan in (scenario.plan_lap, scenario.plan_compound))
    laps[:, column] = 0
    for row, (lap, compound) in enumerate(stops):
        laps[row, column], compounds[row, column] = lap, compound
    return replace(scenario, plan_lap=laps, plan_compound=compounds)
