"""Who passes whom in a lap, and when each car crosses the line.

Cars are in order of place. Car k passes car j ahead when its advantage exceeds what the circuit demands at that gap,

    free_j - free_k  >  needed_k + ratio * (t_k - t_j),

which is the logistic rule of docs/physics.md#overtaking with its random draw already made (`needed_k`). With
v = ratio * t + free this reads v_k + needed_k < v_j: one number per attacker against one per defender. So a running
maximum (a car held up defends with the pace of its train) and one sort settle a whole field, and a car on the right
tyre may pass several others in a lap. A car that would then arrive too early waits behind the car in front.

All arrays by place, (N,) records of LINE; the functions settle one race.
"""
from __future__ import annotations

import numpy as np

from f1_pipelines.sim.engine.compiled import Record, Records, compiled
from f1_pipelines.sim.engine.tables import record

YIELD_WITHIN_S = 2.0  # a car does not wait for one that is further behind; assumption
LINE = record(
    "arrival_s spacing_s "  # time at the line without other cars; least gaps, summed up from first place
    "attack_s defence_s "  # v + needed of an attacker; v of a defender, or of the train that it is in
    "at_line_s",  # time at the line
    "car old_place lets_by")  # column; place before the lap; column that it lets by, -1 for none


@compiled
def follow(line: Records) -> None:
    """Let every car keep its spacing to the car ahead."""
    latest = -np.inf
    for place in range(len(line)):
        latest = max(latest, line[place].arrival_s - line[place].spacing_s)
        line[place].at_line_s = max(line[place].arrival_s, latest + line[place].spacing_s)


@compiled
def race_on(line: Records, engine: Record) -> None:
    """Let cars pass, by `attack_s` and `defence_s`."""
    train_s, passing = line[0].defence_s, False
    for place in range(1, len(line)):
        entry = line[place]
        if entry.attack_s < train_s:
            passing = True
            train_s = max(train_s, entry.defence_s)
            entry.defence_s = entry.attack_s
        else:
            train_s = max(train_s, entry.defence_s)
            entry.defence_s = train_s
    if not passing:
        return
    for place in range(1, len(line)):  # by defence, equal ones by their old places
        at = place
        while at and line[at - 1].defence_s > line[at].defence_s:
            swap(line[at - 1], line[at])
            at -= 1
    for place in range(len(line)):
        lost = place - line[place].old_place
        if lost:
            line[place].arrival_s += engine.passed_loss_s if lost > 0 else engine.passer_loss_s


@compiled
def yield_places(line: Records) -> None:
    """Let cars by (`lets_by`) that are right behind.

    A car that is being let by does not let a third one by in the same lap.
    """
    behind_yields = False
    for place in range(len(line) - 2, -1, -1):
        yields = (line[place].lets_by == line[place + 1].car
                  and line[place + 1].arrival_s - line[place].arrival_s < YIELD_WITHIN_S)
        if behind_yields and not yields:
            swap(line[place + 1], line[place + 2])
        behind_yields = yields
    if behind_yields:
        swap(line[0], line[1])


@compiled
def swap(one: Record, other: Record) -> None:
    """Exchange two cars of the line; spacing belongs to the place."""
    one.arrival_s, other.arrival_s = other.arrival_s, one.arrival_s
    one.defence_s, other.defence_s = other.defence_s, one.defence_s
    one.car, other.car = other.car, one.car
    one.old_place, other.old_place = other.old_place, one.old_place
    one.lets_by, other.lets_by = other.lets_by, one.lets_by
