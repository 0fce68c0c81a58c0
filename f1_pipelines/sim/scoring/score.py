"""A finished race and the log of its pit wall -> `Score`; and the potential that step rewards are differences of."""
from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Protocol

import numpy as np

from f1_pipelines.sim.engine.arrays import any_of
from f1_pipelines.sim.engine.parameters import HARD
from f1_pipelines.sim.engine.race import Race
from f1_pipelines.sim.engine.state import RaceState
from f1_pipelines.sim.scenarios import EGO, Scenario
from f1_pipelines.sim.scoring import dimensions
from f1_pipelines.sim.scoring.announcements import foreseen
from f1_pipelines.sim.scoring.dimensions import Score
from f1_pipelines.sim.scoring.messages import Course, Lap, Message, comms
from f1_pipelines.sim.scoring.outcome import RaceOutcome, outcome_of
from f1_pipelines.sim.scoring.reference import Reference, reference_of

FREE_LAPS = 2  # before the flag: to hand over here leaves nothing uncalled


class CallLog(Protocol):
    """What a pit wall logged of a race; `left_laps` were driven after it handed over."""

    messages: list[Message]
    stops: list[tuple[int, int]]
    illegal: int
    void: int
    harmful: int
    left_laps: int


def score_race(scenario: Scenario, race: Race, history: Sequence[RaceState], wall: CallLog) -> tuple[Score,
                                                                                                     dict[str, Any]]:
    """The score of one finished race, and what it rests on.

    Args:
        race, history: A batch of one.
        wall: The log of its calls.
    """
    facts = outcome_of(race, history, np.array([max(scenario.column(scenario.rival), 0)])).one(0)
    reference = reference_of(scenario)
    score, verdicts = _judged(scenario, history, wall, facts, 0)
    return score, {
        "position": facts.position, "best_position": reference.position, "finished": facts.finished,
        "time_lost_s": round(facts.time_s - reference.time_s, 2) if facts.finished else None,
        "disqualified": facts.disqualified, "ran_dry": facts.ran_dry, "stops": list(wall.stops),
        "best_stops": list(reference.stops), "regret_s": round(reference.regret_s(scenario, tuple(wall.stops)), 2),
        "tyre_loss_s": round(facts.tyre_loss_s, 2), "fuel_left_laps": round(facts.fuel_left_laps, 2),
        "messages": verdicts, "illegal": wall.illegal, "void": wall.void, "harmful": wall.harmful,
        "family": scenario.family, "seed": scenario.seed, "split": scenario.split, "circuit": scenario.circuit.circuit,
    }


def score_batch(scenarios: Sequence[Scenario], race: Race, history: Sequence[RaceState],
                walls: Sequence[CallLog]) -> list[Score]:
    """Scores of a batch of finished races."""
    facts = outcome_of(race, history, np.array([max(s.column(s.rival), 0) for s in scenarios]))
    return [_judged(s, history, wall, facts.one(row), row)[0]
            for row, (s, wall) in enumerate(zip(scenarios, walls, strict=True))]


def _judged(scenario: Scenario, history: Sequence[RaceState], wall: CallLog, facts: RaceOutcome,
            row: int) -> tuple[Score, list[str]]:
    message_score, verdicts = comms(wall.messages, course_of(scenario, history, wall, row))
    calls = (wall.illegal, wall.void, wall.harmful, max(wall.left_laps - FREE_LAPS, 0))
    return score_of(scenario, facts, reference_of(scenario), tuple(wall.stops), message_score, calls), verdicts


def score_of(scenario: Scenario, facts: RaceOutcome, reference: Reference, stops: tuple[tuple[int, int], ...],
             message_score: float, calls: tuple[int, int, int, int]) -> Score:
    """The six dimensions from the facts of one race (numbers) and the counts of `operations`."""
    rival = "none" if not scenario.rival else "beaten" if not facts.beaten_by_rival else \
        "ahead" if reference.rival_beaten else "unbeatable"
    legal = not facts.disqualified
    each = scenario.length  # seconds of a long race are worth less
    strategy = dimensions.strategic_decisions(reference.regret_s(scenario, stops) / each, legal)
    finished = facts.finished or not reference.finished and legal and not facts.ran_dry  # no call could have saved it
    time_s = facts.time_s if facts.finished else reference.time_s
    return Score(
        race=dimensions.race_result(finished, facts.position, time_s / each, reference.position,
                                    reference.time_s / each, rival),
        strategy=strategy,
        tyres=dimensions.tyre_management(facts.tyre_loss_s / each, reference.tyre_loss_s / each, legal),
        fuel=dimensions.fuel_management(facts.fuel_left_laps, facts.fuel_natural_laps, facts.fuel_slow_laps,
                                        facts.ran_dry),
        comms=message_score, operations=dimensions.operations(*calls, legal and not facts.ran_dry))


def course_of(scenario: Scenario, history: Sequence[RaceState], wall: CallLog, row: int = 0) -> Course:
    """The race in that row of a batch as messages are judged on it."""
    laps = []
    for before, after in zip(history[:scenario.laps], history[1:scenario.laps + 1], strict=True):
        stopped = np.flatnonzero(after.stops[row] > before.stops[row])
        running = np.flatnonzero(before.out[row] == 0)
        gaps = before.elapsed_s[row] - before.elapsed_s[row, EGO]
        if before.lap == 0:
            gaps = (scenario.grid - scenario.grid[EGO]).astype(float)  # on the grid: places stand for seconds
        laps.append(Lap(int(before.status[row]), float(scenario.rain[before.lap]),
                        {scenario.numbers[k]: float(gaps[k]) for k in running if k != EGO},
                        frozenset(scenario.numbers[k] for k in stopped)))
    stops = tuple((lap, compound, foreseen(scenario, lap)) for lap, compound in wall.stops)
    return Course(tuple(laps), stops, scenario.rival, bool(scenario.fuel_laps[EGO] < 0.1))


def potential(race: Race, history: Sequence[RaceState], illegal: np.ndarray | int) -> np.ndarray:
    """(E,) what the race so far is worth: the score it would have if all stayed as it is, by the share driven.

    0 before the start. Any function of the state would do: differences add up to the score all the same. This one
    looks at the place, kept compounds, tyres past their end and water on the wrong tyre.
    """
    state = history[-1]
    ahead = _cars_ahead(race, state)
    if not (state.worn or state.any_out or race.wet or (illegal if isinstance(illegal, int) else any_of(illegal > 0))):
        return _flawless(race.cars)[ahead] * race.share[state.lap]
    tyres = 1.0
    if state.worn:
        wear, cliff = state.wear_laps[:, EGO], state.cliff_laps[:, EGO]
        tyres = 1.0 - np.minimum(np.maximum((wear - cliff) / 8.0, 0.0), 1.0)
    if race.wet and state.lap:
        tyres = tyres * ~((state.compound[:, EGO] <= HARD) & (race.wetness[race.row(state.lap)] > 0.35))
    weight, order = dimensions.WEIGHTS, np.maximum(0.0, 1.0 - dimensions.ILLEGAL_COST * illegal)
    worth = _worth_of_place(race.cars)[ahead] + weight["tyres"] * tyres
    if state.any_out:
        worth = worth * (state.out[:, EGO] == 0)
    return (worth + weight["operations"] * order) * race.share[state.lap]


def _cars_ahead(race: Race, state: RaceState) -> np.ndarray | int:
    """(E,) cars in front of ours; of a single race a number, which is found in a sixth of the time."""
    if race.episodes == 1:
        return state.order.tolist()[0].index(EGO)
    return (state.order == race.rows[:, :1]).argmax(axis=1)


@cache
def _worth_of_place(cars: int) -> np.ndarray:
    """(N,) by cars ahead."""
    return dimensions.WEIGHTS["race"] * (1.0 - dimensions.PLACE_COST * np.arange(cars))


@cache
def _flawless(cars: int) -> np.ndarray:
    """(N,) by cars ahead, with nothing wrong but the place."""
    return _worth_of_place(cars) + dimensions.WEIGHTS["tyres"] + dimensions.WEIGHTS["operations"]
