"""Batched rollouts: in each lap one batch holds the observations of all races that are still running."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from f1_pipelines.sim.environment.environment import RaceEnvironment
from f1_pipelines.sim.environment.observation import Observation
from f1_pipelines.sim.scenarios import Scenario

BatchPolicy = Callable[[Sequence[str]], Sequence[str]]  # observation texts -> raw outputs


@dataclass
class Rollout:
    """A finished race: one entry per called lap in each list, and `info` of the last step."""

    scenario: Scenario
    environment: RaceEnvironment
    observations: list[Observation] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)  # raw, parsed or not
    errors: list[str | None] = field(default_factory=list)  # why an output did not parse
    rewards: list[float] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)  # to inspections
    info: dict[str, Any] = field(default_factory=dict)


def with_hint(text: str, hint: str) -> str:
    """Append a hint to the text of an observation as its last line."""
    return f"{text}\n{hint}" if hint else text


def batched_rollout(scenarios: Sequence[Scenario], policy: BatchPolicy, hints: Sequence[str] = ()) -> list[Rollout]:
    """Drive races to the flag, all in one batch.

    Args:
        scenarios: The races.
        policy: Maps the observations of all running races to outputs.
        hints: A line for each race, appended to all its observations; empty without hints.
    """
    race_hints = hints or [""] * len(scenarios)
    rollouts = [Rollout(scenario, RaceEnvironment()) for scenario in scenarios]
    running = {k: rollout.environment.begin(rollout.scenario) for k, rollout in enumerate(rollouts)}
    while running:
        outputs = policy([with_hint(observation.text, race_hints[k]) for k, observation in running.items()])
        for k, output in zip(list(running), outputs, strict=True):
            rollout, observation = rollouts[k], running.pop(k)
            step = rollout.environment.step(output)
            rollout.observations.append(observation)
            rollout.outputs.append(output)
            rollout.errors.append(step.info.get("error"))
            rollout.rewards.append(step.reward)
            rollout.answers.append(step.observation.answer)
            if step.done:
                rollout.info = step.info
            else:
                running[k] = step.observation
    return rollouts
