"""What calls are worth under the policy that is being trained: `counterfactual_returns(moments, calls, caller)`.

A race is forked before a lap, each call is driven, and the policy itself calls the rest: same state, same noise, so two
calls of one moment differ by nothing but the call (common random numbers). The expert never finishes a race: that makes
every delay free, and a policy learns not to stop.
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
    """A race just before a lap is called. The environment is never driven on: it is forked."""

    environment: RaceEnvironment
    seen: Observation
    before: tuple[Observation, ...] = ()  # of the laps driven
    called: str = ""  # what was called here
    end: dict[str, Any] = field(default_factory=dict)  # how the race then ended, `info`

    def expert_call(self) -> Command | str:
        """What the expert would call here, having watched the laps driven."""
        scenario = self.environment.scenario
        expert = Expert(circuits={scenario.circuit.circuit: scenario.circuit})
        expert.begin((*self.before, self.seen)[0])
        for seen in self.before:
            expert.see(seen)
        return expert.decide(self.seen).command


def decision_states(scenarios: Sequence[Scenario], caller: BatchPolicy) -> list[list[DecisionState]]:
    """Every lap of each race as the caller drives it, with what it called there and how the race ended."""
    moments: list[list[DecisionState]] = [[] for _ in scenarios]
    now: dict[int, DecisionState] = {}
    for k, scenario in enumerate(scenarios):
        environment = RaceEnvironment(reward="terminal")
        now[k] = DecisionState(environment, environment.begin(scenario))
    while now:
        for k, output in zip(list(now), caller([moment.seen.text for moment in now.values()]), strict=True):
            moment = replace(now.pop(k), called=output)
            moments[k].append(moment)
            twin = moment.environment.fork()
            step = twin.step(output)
            if step.done:
                moments[k] = [replace(one, end=step.info) for one in moments[k]]
            else:
                now[k] = DecisionState(twin, step.observation, (*moment.before, moment.seen))
    return moments


def counterfactual_returns(moments: Sequence[DecisionState], calls: Sequence[Sequence[str]],
                           caller: BatchPolicy) -> list[list[dict[str, Any]]]:
    """How the race ends (`info`, its score among it) after each call at each moment if the caller calls the rest. The
    same call is raced once, and what was called there in the first place is not raced again.

    Args:
        moments: Where, in races that the same caller drove.
        calls: Raw outputs tried at each; one that does not parse costs what it costs.
        caller: Who goes on.
    """
    done = {(k, moment.called): moment.end for k, moment in enumerate(moments)}
    going: dict[tuple[int, str], tuple[RaceEnvironment, Observation]] = {}
    for k, (moment, tried) in enumerate(zip(moments, calls, strict=True)):
        for call in set(tried) - {moment.called}:
            _advance((k, call), moment.environment.fork(), call, done, going)
    while going:
        keys = list(going)
        outputs = caller([going[key][1].text for key in keys])
        for key, output in zip(keys, outputs, strict=True):
            _advance(key, going.pop(key)[0], output, done, going)
    return [[done[k, call] for call in tried] for k, tried in enumerate(calls)]


def _advance(key: tuple[int, str], environment: RaceEnvironment, call: str, done: dict[tuple[int, str], dict[str, Any]],
             going: dict[tuple[int, str], tuple[RaceEnvironment, Observation]]) -> None:
    step = environment.step(call)
    if step.done:
        done[key] = step.info
    else:
        going[key] = (environment, step.observation)
