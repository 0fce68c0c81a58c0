"""The best race that anybody found for a scenario, command by command: `best_commands(scenario)`.

The plan of the reference comes first. Where it is not perfect, every other policy's race is replayed, the expert's too,
and the best of them all is improved: one command of one lap changed, messages included, as long as the score grows.
So no policy of this project is ever better, and whoever is by one command would be found.
"""
from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import cast

import numpy as np

from f1_pipelines.sim.engine.drive import MODES, TEMPS
from f1_pipelines.sim.engine.parameters import COMPOUNDS
from f1_pipelines.sim.environment.commands import STAY, Command
from f1_pipelines.sim.environment.environment import RaceEnvironment
from f1_pipelines.sim.environment.observation import Observation
from f1_pipelines.sim.environment.vector import VectorEnvironment, action_of
from f1_pipelines.sim.policies.policy import Decision, Policy
from f1_pipelines.sim.policies.registry import NON_ORACLE
from f1_pipelines.sim.scenarios import Scenario
from f1_pipelines.sim.scoring.announcements import RIVAL, placed, windows
from f1_pipelines.sim.scoring.reference import reference_of
from f1_pipelines.sim.scoring.schedules import ATTACK, DEFEND, MODE, NOTHING, PIT, TEMP
from f1_pipelines.sim.scoring.search import stops_of

PERFECT_SCORE = 1.0 - 1e-9
ROUNDS = 4
ANYWHERE = (STAY, *(Command("PIT_NOW", c) for c in COMPOUNDS[:4]), *(Command("SET_MODE", m) for m in MODES),
            *(Command("MANAGE_TYRE_TEMP", t) for t in TEMPS), Command("ATTACK_AHEAD"), Command("DEFEND_POSITION"))


@lru_cache(maxsize=1024)
def best_commands(scenario: Scenario) -> tuple[Command, ...]:
    """The commands of the best race found, a lap each. A second where the reference is not perfect, kept."""
    score, best = _race(scenario, _Reference(scenario))
    if score < PERFECT_SCORE:
        for policy in NON_ORACLE.values():
            theirs, commands = _race(scenario, policy(scenario))
            if theirs > score:
                score, best = theirs, commands
    # A Grand Prix has a thousand neighbours that take a minute to drive.
    return tuple(best if score >= PERFECT_SCORE or scenario.weekend else _improved(scenario, best, score))


class _Reference:
    """Calls the plan of the reference, and in its free laps says in time what is going to happen."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario

    def begin(self, observation: Observation) -> None:
        """Look into the future."""
        codes = reference_of(self._scenario).codes
        self._codes = codes.tolist()
        free = [lap for lap, code in enumerate(self._codes, 1) if code == NOTHING]
        self._messages = placed(windows(self._scenario, stops_of(codes)), free)

    def decide(self, observation: Observation) -> Decision:
        """The plan's command, or something true in a lap without one."""
        code, text = self._codes[observation.lap - 1], self._messages.get(observation.lap)
        if code != NOTHING:
            return Decision(command_of(code), "")
        if text == RIVAL:
            text = _about(observation, observation.rival)
        return Decision(Command("RADIO_DRIVER", text=text) if text else STAY, "")


def command_of(code: int) -> Command:
    """A code of a schedule as a command."""
    if code in (ATTACK, DEFEND):
        return Command("ATTACK_AHEAD" if code == ATTACK else "DEFEND_POSITION")
    if code >= TEMP:
        return Command("MANAGE_TYRE_TEMP", TEMPS[code - TEMP])
    return Command("SET_MODE", MODES[code - MODE]) if code >= MODE else Command("PIT_NOW", COMPOUNDS[code - PIT])


def _about(o: Observation, number: int) -> str:
    car = next(c for c in o.cars if c.number == number)
    return f"Car {number} is {abs(car.gap_s):.1f} s {'behind' if car.gap_s > 0 else 'ahead'}"


def _race(scenario: Scenario, player: Policy) -> tuple[float, list[Command]]:
    """Score and commands of a race played by a policy whose commands all parse."""
    environment = RaceEnvironment()
    observation, over = environment.begin(scenario), False
    commands: list[Command] = []
    player.begin(observation)
    while not over:
        commands.append(cast("Command", player.decide(observation).command))
        step = environment.step(commands[-1])
        observation, over = step.observation, step.done
    return environment.final_score.total, commands


def _improved(scenario: Scenario, commands: Sequence[Command], score: float) -> list[Command]:
    """The commands, better by one change at a time."""
    best = [*commands, *[STAY] * (scenario.laps - len(commands))]
    for _ in range(ROUNDS):
        tried = _neighbours(scenario, best)
        scores = _scores(scenario, tried)
        top = int(scores.argmax())
        if scores[top] <= score + 1e-9:
            break
        best, score = tried[top], float(scores[top])
        if score >= PERFECT_SCORE:
            break
    return best


def _neighbours(scenario: Scenario, commands: list[Command]) -> list[list[Command]]:
    """Every race that differs in one lap: another call, or something that is due and could be said there."""
    stops = tuple((lap, COMPOUNDS.index(c.word)) for lap, c in enumerate(commands, 1) if c.verb == "PIT_NOW")
    due = [(first, last, text) for first, last, text in windows(scenario, stops) if text != RIVAL]
    neighbours = []
    for at, old in enumerate(commands):
        messages = [Command("RADIO_DRIVER", text=text) for first, last, text in due if first <= at + 1 <= last]
        neighbours += [[*commands[:at], new, *commands[at + 1:]] for new in (*ANYWHERE, *messages) if new != old]
    return neighbours


def _scores(scenario: Scenario, races: Sequence[Sequence[Command]]) -> np.ndarray:
    """(K,) what each list of commands is worth."""
    batch = VectorEnvironment([scenario] * len(races))
    for calls in zip(*races, strict=True):
        texts = {k: c.text for k, c in enumerate(calls) if c.text}
        batch.step(np.array([action_of(c, scenario) for c in calls]), texts)
    return np.array([score["score"] for score in batch.scores()])
