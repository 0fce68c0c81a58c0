"""The `Score` of a finished race, and the potential whose differences are the step rewards."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from f1_pipelines.sim.engine.compiled import Records, compiled
from f1_pipelines.sim.engine.parameters import HARD
from f1_pipelines.sim.engine.race import Race
from f1_pipelines.sim.engine.state import RUNNING, RaceState
from f1_pipelines.sim.engine.tables import Tables
from f1_pipelines.sim.scenarios import EGO, Scenario
from f1_pipelines.sim.scenarios.opponents import last_wetness
from f1_pipelines.sim.scoring import dimensions
from f1_pipelines.sim.scoring.announcements import can_announce
from f1_pipelines.sim.scoring.dimensions import Score
from f1_pipelines.sim.scoring.messages import Course, Lap, Message, comms
from f1_pipelines.sim.scoring.outcome import RaceOutcome, outcomes_of, race_outcome
from f1_pipelines.sim.scoring.reference import Reference, reference_of

FREE_LAPS = 2  # before the flag, in which handing over costs nothing
WET_FOR_SLICKS = 0.35  # wetness at which slicks count as lost in the potential
RACE_WEIGHT, TYRES_WEIGHT, OPERATIONS_WEIGHT = (dimensions.WEIGHTS[name] for name in ("race", "tyres", "operations"))


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
    outcome = race_outcome(outcomes_of(race, history, np.array([max(scenario.column(scenario.rival), 0)]))[0])
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
    outcomes = outcomes_of(race, history, np.array([max(s.column(s.rival), 0) for s in scenarios]))
    return [_score(s, history, wall, race_outcome(outcomes[row]), row)[0]
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
    laps, numbers = [], scenario.numbers
    for before, after in zip(history[:scenario.laps], history[1:scenario.laps + 1], strict=True):
        cars = before.cars[row]
        # On the grid a place counts as a second.
        at_s = (cars["elapsed_s"] if before.lap else scenario.grid).tolist()
        out, stops_before, stops_after = cars["out"].tolist(), cars["stops"].tolist(), after.stops[row].tolist()
        laps.append(Lap(
            int(before.races["status"][row]), float(scenario.rain[before.lap]),
            {number: float(at_s[k] - at_s[EGO]) for k, number in enumerate(numbers) if k != EGO and not out[k]},
            frozenset(number for k, number in enumerate(numbers) if stops_after[k] > stops_before[k])))
    stops = tuple((lap, compound, can_announce(scenario, lap)) for lap, compound in wall.stops)
    return Course(tuple(laps), stops, scenario.rival, bool(scenario.fuel_laps[EGO] < 0.1))


def potential(race: Race, state: RaceState, illegal: np.ndarray) -> np.ndarray:
    """Potential of a state, (E,): an estimate of the score if nothing changed, times the share of the race driven.

    0 before the start. Rewards sum to the score for any potential; this one weighs position, tyres past their cliff,
    slicks on a wet track, retirement and illegal commands.

    Args:
        race: The batch.
        state: Its state.
        illegal: Numbers of illegal commands so far, (E,).
    """
    potentials = np.empty(race.episodes)
    _fill_potentials(race.tables, state.lap, state.cars, illegal, potentials)
    return potentials


@compiled
def _fill_potentials(tables: Tables, lap: int, cars: Records, illegal: np.ndarray, potentials: np.ndarray) -> None:
    for episode in range(len(cars)):
        potentials[episode] = potential_of(tables, tables.row_of[episode], lap, cars, episode, illegal[episode])


@compiled
def potential_of(tables: Tables, t: int, lap: int, cars: Records, row: int, illegal: int) -> float:
    """As `potential`, for the race in row `t` of the tables and row `row` of the states."""
    car, ahead = cars[row, EGO], 0
    while cars[row, ahead].order != EGO:
        ahead += 1
    tyres = 1.0 - min(max((car.wear_laps - car.cliff_laps) / 8.0, 0.0), 1.0)
    if lap and car.compound <= HARD and last_wetness(tables, t, lap + 1) > WET_FOR_SLICKS:
        tyres = 0.0
    worth = RACE_WEIGHT * (1.0 - dimensions.PLACE_COST * ahead) + TYRES_WEIGHT * tyres
    if car.out != RUNNING:
        worth = 0.0
    order = max(0.0, 1.0 - dimensions.ILLEGAL_COST * illegal)
    return (worth + OPERATIONS_WEIGHT * order) * min(lap / tables.of_race[t].race_laps, 1.0)
