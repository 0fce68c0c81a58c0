"""The best race known for a scenario, command by command: `best_commands(scenario)`.

Starts from the plan of the reference. If its score is below 1, replays the race of every other policy and improves the
best of all by hill climbing over single commands, messages included. No policy in the registry scores higher.
"""
from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import cast

import numpy as np

from f1_pipelines.sim.engine.drive import MODES, TEMPS
from f1_pipelines.sim.engine.parameters import COMPOUNDS
from f1_pipelines.sim.environment.actions import action_of
from f1_pipelines.sim.environment.commands import STAY, Command
from f1_pipelines.sim.environment.environment import RaceEnvironment
from f1_pipelines.sim.environment.observation import Observation
from f1_pipelines.sim.environment.vector import VectorEnvironment
from f1_pipelines.sim.policies.policy import Decision, Policy
from f1_pipelines.sim.policies.registry import NON_ORACLE
from f1_pipelines.sim.scenarios import Scenario
from f1_pipelines.sim.scoring.announcements import RIVAL, assign_messages, message_windows
from f1_pipelines.sim.scoring.reference import reference_of
from f1_pipelines.sim.scoring.schedules import ATTACK, DEFEND, MODE, NOTHING, PIT, TEMP
from f1_pipelines.sim.scoring.search import stops_of

PERFECT_SCORE = 1.0 - 1e-9
ROUNDS = 4
REPLACEMENTS = (STAY, *(Command("PIT_NOW", c) for c in COMPOUNDS[:4]), *(Command("SET_MODE", m) for m in MODES),
                *(Command("MANAGE_TYRE_TEMP", t) for t in TEMPS), Command("ATTACK_AHEAD"), Command("DEFEND_POSITION"))


@lru_cache(maxsize=1024)
def best_commands(scenario: Scenario) -> tuple[Command, ...]:
    """The commands of the best race found, one per lap, cached. Takes a second if the reference is not perfect."""
    score, best = _race(scenario, _ReferencePolicy(scenario))
    if score < PERFECT_SCORE:
        for policy in NON_ORACLE.values():
            policy_score, commands = _race(scenario, policy(scenario))
            if policy_score > score:
                score, best = policy_score, commands
    # Hill climbing on a Grand Prix takes a minute: a thousand neighbours.
    return tuple(best if score >= PERFECT_SCORE or scenario.weekend else _hill_climb(scenario, best, score))


class _ReferencePolicy:
    """Plays the plan of the reference, and sends due messages in its free laps."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario

    def begin(self, observation: Observation) -> None:
        """Find the best plan."""
        codes = reference_of(self._scenario).codes
        self._codes = codes.tolist()
        free = [lap for lap, code in enumerate(self._codes, 1) if code == NOTHING]
        self._messages = assign_messages(message_windows(self._scenario, stops_of(codes)), free)

    def decide(self, observation: Observation) -> Decision:
        """The plan's command, else a due message."""
        code, text = self._codes[observation.lap - 1], self._messages.get(observation.lap)
        if code != NOTHING:
            return Decision(command_of(code), "")
        if text == RIVAL:
            text = _rival_message(observation, observation.rival)
        return Decision(Command("RADIO_DRIVER", text=text) if text else STAY, "")


def command_of(code: int) -> Command:
    """The command of a code of `schedules`."""
    if code in (ATTACK, DEFEND):
        return Command("ATTACK_AHEAD" if code == ATTACK else "DEFEND_POSITION")
    if code >= TEMP:
        return Command("MANAGE_TYRE_TEMP", TEMPS[code - TEMP])
    return Command("SET_MODE", MODES[code - MODE]) if code >= MODE else Command("PIT_NOW", COMPOUNDS[code - PIT])


def _rival_message(o: Observation, number: int) -> str:
    car = next(c for c in o.cars if c.number == number)
    return f"Car {number} is {abs(car.gap_s):.1f} s {'behind' if car.gap_s > 0 else 'ahead'}"


def _race(scenario: Scenario, player: Policy) -> tuple[float, list[Command]]:
    """Score and commands of a race played by a policy whose commands are parsed."""
    environment = RaceEnvironment()
    observation, over = environment.begin(scenario), False
    commands: list[Command] = []
    player.begin(observation)
    while not over:
        commands.append(cast("Command", player.decide(observation).command))
        step = environment.step(commands[-1])
        observation, over = step.observation, step.done
    return environment.final_score.total, commands


def _hill_climb(scenario: Scenario, commands: Sequence[Command], score: float) -> list[Command]:
    """Improve the commands by their best neighbour until none helps."""
    best = [*commands, *[STAY] * (scenario.laps - len(commands))]
    for _ in range(ROUNDS):
        candidates = _neighbours(scenario, best)
        scores = _scores(scenario, candidates)
        top = int(scores.argmax())
        if scores[top] <= score + 1e-9:
            break
        best, score = candidates[top], float(scores[top])
        if score >= PERFECT_SCORE:
            break
    return best


def _neighbours(scenario: Scenario, commands: list[Command]) -> list[list[Command]]:
    """All races that differ in one lap: another command, or a message due in it."""
    stops = tuple((lap, COMPOUNDS.index(c.word)) for lap, c in enumerate(commands, 1) if c.verb == "PIT_NOW")
    due = [(first, last, text) for first, last, text in message_windows(scenario, stops) if text != RIVAL]
    neighbours = []
    for at, old in enumerate(commands):
        messages = [Command("RADIO_DRIVER", text=text) for first, last, text in due if first <= at + 1 <= last]
        neighbours += [[*commands[:at], new, *commands[at + 1:]] for new in (*REPLACEMENTS, *messages) if new != old]
    return neighbours


def _scores(scenario: Scenario, races: Sequence[Sequence[Command]]) -> np.ndarray:
    """(K,) score of each list of commands."""
    batch = VectorEnvironment([scenario] * len(races))
    for calls in zip(*races, strict=True):
        texts = {k: c.text for k, c in enumerate(calls) if c.text}
        batch.step(np.array([action_of(c, scenario) for c in calls]), texts)
    return np.array([score["score"] for score in batch.scores()])
