"""Many races at once: every live race's observation is answered in one batch, lap by lap."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from f1_pipelines.sim.environment.environment import RaceEnvironment
from f1_pipelines.sim.environment.observation import Observation
from f1_pipelines.sim.scenarios import Scenario

BatchPolicy = Callable[[Sequence[str]], Sequence[str]]  # texts of observations in, raw calls out


@dataclass
class Rollout:
    """A race as it was played: what was seen and called each lap, and how it ended."""

    scenario: Scenario
    environment: RaceEnvironment
    seen: list[Observation] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)  # raw
    errors: list[str | None] = field(default_factory=list)  # why an output did not parse
    rewards: list[float] = field(default_factory=list)
    info: dict[str, Any] = field(default_factory=dict)  # of the last step
    answers: list[str] = field(default_factory=list)


def with_hint(text: str, hint: str) -> str:
    """An observation with a line of memory under it."""
    return f"{text}\n{hint}" if hint else text


def batched_rollout(scenarios: Sequence[Scenario], call: BatchPolicy, hints: Sequence[str] = ()) -> list[Rollout]:
    """Play the races to the flag.

    Args:
        scenarios: The races.
        call: Answers the observations of all races that are still on.
        hints: A line for each race that stands under all its observations; empty for none.
    """
    below = hints or [""] * len(scenarios)
    races = [Rollout(scenario, RaceEnvironment()) for scenario in scenarios]
    now = {k: race.environment.begin(race.scenario) for k, race in enumerate(races)}
    while now:
        outputs = call([with_hint(seen.text, below[k]) for k, seen in now.items()])
        for k, output in zip(list(now), outputs, strict=True):
            race, seen = races[k], now.pop(k)
            step = race.environment.step(output)
            race.seen.append(seen)
            race.outputs.append(output)
            race.errors.append(step.info.get("error"))
            race.rewards.append(step.reward)
            race.answers.append(step.observation.answer)
            if step.done:
                race.info = step.info
            else:
                now[k] = step.observation
    return races
