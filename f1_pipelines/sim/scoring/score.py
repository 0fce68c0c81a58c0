"""The `Score` of a finished race, and the potential whose differences are the step rewards."""
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
from f1_pipelines.sim.scoring.announcements import can_announce
from f1_pipelines.sim.scoring.dimensions import Score
from f1_pipelines.sim.scoring.messages import Course, Lap, Message, comms
from f1_pipelines.sim.scoring.outcome import RaceOutcome, outcome_of
from f1_pipelines.sim.scoring.reference import Reference, reference_of

FREE_LAPS = 2  # before the flag, in which handing over costs nothing


class CallLog(Protocol):
    """The log of a pit wall; `left_laps` were driven after it handed over."""

    messages: list[Message]
    stops: list[tuple[int, int]]
    illegal: int
    void: int
    harmful: int
    left_laps: int


def score_race(scenario: Scenario, race: Race, history: Sequence[RaceState], wall: CallLog) -> tuple[Score,
                                                                                                     dict[str, Any]]:
    """The score of one finished race, and its details.

    Args:
        scenario: The scenario.
        race: The batch that holds only this race.
        history: States after each lap, lap 0 first.
        wall: The log of its commands.
    """
    outcome = outcome_of(race, history, np.array([max(scenario.column(scenario.rival), 0)])).one(0)
    reference = reference_of(scenario)
    score, verdicts = _score(scenario, history, wall, outcome, 0)
    return score, {
        "position": outcome.position, "best_position": reference.position, "finished": outcome.finished,
        "time_lost_s": round(outcome.time_s - reference.time_s, 2) if outcome.finished else None,
        "disqualified": outcome.disqualified, "ran_dry": outcome.ran_dry, "stops": list(wall.stops),
        "best_stops": list(reference.stops), "regret_s": round(reference.regret_s(scenario, tuple(wall.stops)), 2),
        "tyre_loss_s": round(outcome.tyre_loss_s, 2), "fuel_left_laps": round(outcome.fuel_left_laps, 2),
        "messages": verdicts, "illegal": wall.illegal, "void": wall.void, "harmful": wall.harmful,
        "family": scenario.family, "seed": scenario.seed, "split": scenario.split, "circuit": scenario.circuit.circuit,
    }


def score_batch(scenarios: Sequence[Scenario], race: Race, history: Sequence[RaceState],
                walls: Sequence[CallLog]) -> list[Score]:
    """Scores of a batch of finished races."""
    outcome = outcome_of(race, history, np.array([max(s.column(s.rival), 0) for s in scenarios]))
    return [_score(s, history, wall, outcome.one(row), row)[0]
            for row, (s, wall) in enumerate(zip(scenarios, walls, strict=True))]


def _score(scenario: Scenario, history: Sequence[RaceState], wall: CallLog, outcome: RaceOutcome,
           row: int) -> tuple[Score, list[str]]:
    message_score, verdicts = comms(wall.messages, course_of(scenario, history, wall, row))
    calls = (wall.illegal, wall.void, wall.harmful, max(wall.left_laps - FREE_LAPS, 0))
    return score_of(scenario, outcome, reference_of(scenario), tuple(wall.stops), message_score, calls), verdicts


def score_of(scenario: Scenario, outcome: RaceOutcome, reference: Reference, stops: tuple[tuple[int, int], ...],
             message_score: float, calls: tuple[int, int, int, int]) -> Score:
    """The dimensions of one race.

    Args:
        scenario: The scenario.
        outcome: What happened to our car.
        reference: The best race of the scenario.
        stops: Our stops as (lap, compound).
        message_score: Dimension comms.
        calls: Numbers of illegal, void and harmful commands, and of laps handed over.
    """
    rival = "none" if not scenario.rival else "beaten" if not outcome.beaten_by_rival else \
        "ahead" if reference.rival_beaten else "unbeatable"
    legal = not outcome.disqualified
    each = scenario.length  # seconds of a longer race weigh less
    strategy = dimensions.strategic_decisions(reference.regret_s(scenario, stops) / each, legal)
    # A retirement that no command could prevent counts as a finish.
    finished = outcome.finished or not reference.finished and legal and not outcome.ran_dry
    time_s = outcome.time_s if outcome.finished else reference.time_s
    return Score(
        race=dimensions.race_result(finished, outcome.position, time_s / each, reference.position,
                                    reference.time_s / each, rival),
        strategy=strategy,
        tyres=dimensions.tyre_management(outcome.tyre_loss_s / each, reference.tyre_loss_s / each, legal),
        fuel=dimensions.fuel_management(outcome.fuel_left_laps, outcome.fuel_natural_laps, outcome.fuel_slow_laps,
                                        outcome.ran_dry),
        comms=message_score, operations=dimensions.operations(*calls, legal and not outcome.ran_dry))


def course_of(scenario: Scenario, history: Sequence[RaceState], wall: CallLog, row: int = 0) -> Course:
    """The facts that the messages of row `row` are checked against."""
    laps = []
    for before, after in zip(history[:scenario.laps], history[1:scenario.laps + 1], strict=True):
        stopped = np.flatnonzero(after.stops[row] > before.stops[row])
        running = np.flatnonzero(before.out[row] == 0)
        gaps = before.elapsed_s[row] - before.elapsed_s[row, EGO]
        if before.lap == 0:
            gaps = (scenario.grid - scenario.grid[EGO]).astype(float)  # on the grid a place counts as a second
        laps.append(Lap(int(before.status[row]), float(scenario.rain[before.lap]),
                        {scenario.numbers[k]: float(gaps[k]) for k in running if k != EGO},
                        frozenset(scenario.numbers[k] for k in stopped)))
    stops = tuple((lap, compound, can_announce(scenario, lap)) for lap, compound in wall.stops)
    return Course(tuple(laps), stops, scenario.rival, bool(scenario.fuel_laps[EGO] < 0.1))


def potential(race: Race, history: Sequence[RaceState], illegal: np.ndarray | int) -> np.ndarray:
    """(E,) potential of the state: an estimate of the score if nothing changed, times the share of the race driven.

    0 before the start. Rewards sum to the score for any potential; this one weighs position, tyres past their cliff,
    slicks on a wet track, retirement and illegal commands.
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
    """(E,) number of cars ahead of ours; an int for a single race, which takes a sixth of the time."""
    if race.episodes == 1:
        return state.order.tolist()[0].index(EGO)
    return (state.order == race.rows[:, :1]).argmax(axis=1)


@cache
def _worth_of_place(cars: int) -> np.ndarray:
    """(N,) weighted result by number of cars ahead."""
    return dimensions.WEIGHTS["race"] * (1.0 - dimensions.PLACE_COST * np.arange(cars))


@cache
def _flawless(cars: int) -> np.ndarray:
    """(N,) potential by number of cars ahead, if nothing else costs."""
    return _worth_of_place(cars) + dimensions.WEIGHTS["tyres"] + dimensions.WEIGHTS["operations"]
