"""What commands are worth under the policy in training: `counterfactual_returns(states, commands, policy)`.

A race is forked before a lap, each command is driven, and the policy itself drives the rest: same state, same noise, so
two commands at one state differ by nothing but the command (common random numbers). The expert never finishes a race:
then every delay would be free, and a policy learns not to stop.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from f1_pipelines.engineer.rollout import BatchPolicy
from f1_pipelines.sim.environment.commands import Command
from f1_pipelines.sim.environment.environment import RaceEnvironment
from f1_pipelines.sim.environment.observation import Observation
from f1_pipelines.sim.policies.expert import Expert
from f1_pipelines.sim.scenarios import Scenario


@dataclass(frozen=True)
class DecisionState:
    """A race just before a lap. Its environment is never stepped, only forked.

    Attributes:
        environment: The race so far.
        seen: Observation of the coming lap.
        before: Observations of the laps driven.
        called: The command that the policy gave here.
        end: The final `info` of that race.
    """

    environment: RaceEnvironment
    seen: Observation
    before: tuple[Observation, ...] = ()
    called: str = ""
    end: dict[str, Any] = field(default_factory=dict)

    def expert_call(self) -> Command | str:
        """What the expert would command here, given the same observations."""
        scenario = self.environment.scenario
        expert = Expert(circuits={scenario.circuit.circuit: scenario.circuit})
        expert.begin((*self.before, self.seen)[0])
        for seen in self.before:
            expert.see(seen)
        return expert.decide(self.seen).command


def decision_states(scenarios: Sequence[Scenario], policy: BatchPolicy) -> list[list[DecisionState]]:
    """Every lap of each race as the policy drives it.

    Args:
        scenarios: The races.
        policy: Commands all races that are still on, lap by lap.

    Returns:
        For each race its states in order, with the policy's command and how the race ended.
    """
    states: list[list[DecisionState]] = [[] for _ in scenarios]
    now: dict[int, DecisionState] = {}
    for k, scenario in enumerate(scenarios):
        environment = RaceEnvironment(reward="terminal")
        now[k] = DecisionState(environment, environment.begin(scenario))
    while now:
        for k, output in zip(list(now), policy([state.seen.text for state in now.values()]), strict=True):
            state = replace(now.pop(k), called=output)
            states[k].append(state)
            twin = state.environment.fork()
            step = twin.step(output)
            if step.done:
                states[k] = [replace(each, end=step.info) for each in states[k]]
            else:
                now[k] = DecisionState(twin, step.observation, (*state.before, state.seen))
    return states


def counterfactual_returns(states: Sequence[DecisionState], commands: Sequence[Sequence[str]],
                           policy: BatchPolicy) -> list[list[dict[str, Any]]]:
    """How each race ends after each command when the policy drives on.

    Args:
        states: States of races that the same policy drove.
        commands: Raw outputs to try at each state; one that does not parse costs what it costs.
        policy: Drives the rest of each race.

    Returns:
        The final `info` by state and command, the score among it. A command is simulated once however often it is
        listed, and the policy's own command is not simulated again.
    """
    done = {(k, state.called): state.end for k, state in enumerate(states)}
    going: dict[tuple[int, str], tuple[RaceEnvironment, Observation]] = {}
    for k, (state, tried) in enumerate(zip(states, commands, strict=True)):
        for command in set(tried) - {state.called}:
            _advance((k, command), state.environment.fork(), command, done, going)
    while going:
        keys = list(going)
        outputs = policy([going[key][1].text for key in keys])
        for key, output in zip(keys, outputs, strict=True):
            _advance(key, going.pop(key)[0], output, done, going)
    return [[done[k, command] for command in tried] for k, tried in enumerate(commands)]


def _advance(key: tuple[int, str], environment: RaceEnvironment, command: str,
             done: dict[tuple[int, str], dict[str, Any]],
             going: dict[tuple[int, str], tuple[RaceEnvironment, Observation]]) -> None:
    step = environment.step(command)
    if step.done:
        done[key] = step.info
    else:
        going[key] = (environment, step.observation)
