"""Returns of calls under the current policy: `counterfactual_returns(states, calls, policy)`.

A race is forked before a lap, each call is driven, and the policy itself drives the rest: same state, same noise, so
two calls at one state differ by nothing but the call (common random numbers). The expert does not drive the rest: then
a delay would cost nothing, and the policy would learn not to stop.
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
    """A race just before a lap is called. The environment is never stepped, only forked.

    Attributes:
        environment: The race.
        observation: Its observation.
        called: Raw output of the policy in this lap.
        outcome: How the race then ended, `info` of its last step.
    """

    environment: RaceEnvironment
    observation: Observation
    called: str = ""
    outcome: dict[str, Any] = field(default_factory=dict)


def decision_states(scenarios: Sequence[Scenario], policy: BatchPolicy) -> list[list[DecisionState]]:
    """Every lap of each race that the policy drives."""
    states: list[list[DecisionState]] = [[] for _ in scenarios]
    running: dict[int, DecisionState] = {}
    for k, scenario in enumerate(scenarios):
        environment = RaceEnvironment(reward="terminal")
        running[k] = DecisionState(environment, environment.begin(scenario))
    while running:
        outputs = policy([state.observation.text for state in running.values()])
        for k, output in zip(list(running), outputs, strict=True):
            state = replace(running.pop(k), called=output)
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
    """How the race ends after each call at each state if the policy drives the rest.

    Equal calls are raced once, and the call that the policy made there in the first place is not raced again.

    Args:
        states: States of races that the same policy drove.
        calls: Raw outputs to try at each state, whether they parse or not.
        policy: Drives the rest.

    Returns:
        For each state and call, `info` of the last step, with the score.
    """
    outcomes = {(k, state.called): state.outcome for k, state in enumerate(states)}
    running: dict[tuple[int, str], tuple[RaceEnvironment, Observation]] = {}
    for k, (state, tried) in enumerate(zip(states, calls, strict=True)):
        for call in set(tried) - {state.called}:
            _advance((k, call), state.environment.fork(), call, outcomes, running)
    while running:
        keys = list(running)
        outputs = policy([running[key][1].text for key in keys])
        for key, output in zip(keys, outputs, strict=True):
            _advance(key, running.pop(key)[0], output, outcomes, running)
    return [[outcomes[k, call] for call in tried] for k, tried in enumerate(calls)]


def _advance(key: tuple[int, str], environment: RaceEnvironment, output: str,
             outcomes: dict[tuple[int, str], dict[str, Any]],
             running: dict[tuple[int, str], tuple[RaceEnvironment, Observation]]) -> None:
    step = environment.step(output)
    if step.done:
        outcomes[key] = step.info
    else:
        running[key] = (environment, step.observation)
