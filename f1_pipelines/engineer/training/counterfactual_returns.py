"""Returns of calls under the current policy: `counterfactual_returns(states, calls, policy)`.

A race is forked before a lap, each call is made, and the policy itself drives the rest. State and noise are the same,
so returns at one state differ only by the call (common random numbers). If the expert drove the rest, a delay would
cost nothing and the policy would learn not to stop.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from f1_pipelines.engineer.rollout import BatchPolicy
from f1_pipelines.sim.environment.environment import RaceEnvironment
from f1_pipelines.sim.environment.observation import Observation
from f1_pipelines.sim.scenarios import Scenario


@dataclass(frozen=True)
class DecisionState:
    """A race before the call of a lap. The environment is never stepped, only forked.

    Attributes:
        environment: The race.
        observation: Its observation.
        output: Raw output of the policy in this lap.
        outcome: Result of the race, `info` of its last step.
    """

    environment: RaceEnvironment
    observation: Observation
    output: str = ""
    outcome: dict[str, Any] = field(default_factory=dict)


def decision_states(scenarios: Sequence[Scenario], policy: BatchPolicy) -> list[list[DecisionState]]:
    """Drive the races with the policy and return the states of all laps of each."""
    states: list[list[DecisionState]] = [[] for _ in scenarios]
    running: dict[int, DecisionState] = {}
    for k, scenario in enumerate(scenarios):
        environment = RaceEnvironment(reward="terminal")
        running[k] = DecisionState(environment, environment.begin(scenario))
    while running:
        outputs = policy([state.observation.text for state in running.values()])
        for k, output in zip(list(running), outputs, strict=True):
            state = replace(running.pop(k), output=output)
            states[k].append(state)
            environment = state.environment.fork()
            step = environment.step(output)
            if step.done:
                states[k] = [replace(earlier, outcome=step.info) for earlier in states[k]]
            else:
                running[k] = DecisionState(environment, step.observation)
    return states


def counterfactual_returns(states: Sequence[DecisionState], calls: Sequence[Sequence[str]],
                           policy: BatchPolicy) -> list[list[dict[str, Any]]]:
    """Return the result of the race for each call at each state, with the policy driving the rest.

    Equal calls are simulated once. The policy's own call at a state is not simulated again.

    Args:
        states: States of races that this policy drove.
        calls: Raw outputs to try at each state, whether they parse or not.
        policy: Drives the rest.

    Returns:
        For each state and call, `info` of the last step, with the score.
    """
    outcomes = {(k, state.output): state.outcome for k, state in enumerate(states)}
    running: dict[tuple[int, str], tuple[RaceEnvironment, Observation]] = {}
    for k, (state, state_calls) in enumerate(zip(states, calls, strict=True)):
        for call in set(state_calls) - {state.output}:
            _advance((k, call), state.environment.fork(), call, outcomes, running)
    while running:
        keys = list(running)
        outputs = policy([running[key][1].text for key in keys])
        for key, output in zip(keys, outputs, strict=True):
            _advance(key, running.pop(key)[0], output, outcomes, running)
    return [[outcomes[k, call] for call in state_calls] for k, state_calls in enumerate(calls)]


def _advance(key: tuple[int, str], environment: RaceEnvironment, output: str,
             outcomes: dict[tuple[int, str], dict[str, Any]],
             running: dict[tuple[int, str], tuple[RaceEnvironment, Observation]]) -> None:
    step = environment.step(output)
    if step.done:
        outcomes[key] = step.info
    else:
        running[key] = (environment, step.observation)
