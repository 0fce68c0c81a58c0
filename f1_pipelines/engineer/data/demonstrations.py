"""What the expert does, lap by lap, as examples to learn from: `expert_demonstrations(scenes, races)`.

Notable choices:
- `PERTURBATION_RATE` of the laps use a non-expert command, to cover states that the expert avoids. Their label is
  still the expert's command; the expert continues from what happened.
- A driving command that gains less than `MINIMUM_GAIN_S` becomes STAY_OUT (`without_needless_call`): the expert's
  values are sampled, so smaller differences are noise. Its score is .89 that way, .90 without.
- A lap in which nothing is done is the commonest and says least: `with_fewer_stay_outs` keeps a share of them.
"""
from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pandas as pd

from f1_pipelines.engineer.evaluation.memory_hints import random_hint
from f1_pipelines.engineer.rollout import with_hint
from f1_pipelines.engineer.scenario_sampler import ScenarioSampler
from f1_pipelines.engineer.seed_ranges import RaceKey
from f1_pipelines.sim.environment.commands import STAY, Command, parse
from f1_pipelines.sim.environment.environment import RaceEnvironment
from f1_pipelines.sim.environment.observation import Observation
from f1_pipelines.sim.policies.expert import Expert
from f1_pipelines.sim.policies.policy import Decision
from f1_pipelines.sim.policies.scripted import Random
from f1_pipelines.sim.scenarios import Scenario
from f1_pipelines.sim.scenarios.rng import digest
from f1_pipelines.sim.workers import map_races

PERTURBATION_RATE = 0.12  # share of laps driven otherwise than the expert says
STAY_SHARE = 0.5  # of the turns at most; with a smaller share the student gives needless commands
FUTURES = 32  # that the expert samples each lap: 96 score .89, these .88, in less than half the time
MINIMUM_GAIN_S = 1.5  # a change of driving has to gain so much over staying out
DRIVING = ("SET_MODE", "MANAGE_TYRE_TEMP", "ATTACK_AHEAD", "DEFEND_POSITION")


@dataclass(frozen=True)
class Turn:
    """One lap of one race: the observation, the expert's command, and the values of all commands it weighed.

    `values_s`: seconds by command, 0 for the best, negative is worse; `expert_value` is that of its own command. To
    ask or to tell is to stay out, so it is worth what that is.
    """

    family: str
    seed: int
    split: str
    circuit: str
    lap: int
    prompt: str
    completion: str
    expert_value: float | None
    values_s: dict[str, float]
    reason: str


def expert_demonstrations(sampler: ScenarioSampler, races: Sequence[RaceKey], workers: int = 1,
                          odd: float = PERTURBATION_RATE, futures: int = FUTURES) -> Iterator[list[Turn]]:
    """The turns of each race, in order.

    Args:
        sampler: Where they are driven.
        races: Family and seed of each.
        workers: Processes.
        odd: Share of laps that are driven otherwise.
        futures: Futures that the expert samples each lap.
    """
    yield from map_races(partial(_turns_of_race, sampler=sampler, odd=odd, futures=futures), races, workers)


def relabel_with_expert(sampler: ScenarioSampler, driven: Mapping[RaceKey, Sequence[str]],
                        workers: int = 1) -> Iterator[list[Turn]]:
    """The expert's command in each lap of races that the student drove, in order (DAgger, Ross et al. 2011).

    Args:
        sampler: Where they were driven.
        driven: The student's raw outputs by race.
        workers: Processes.
    """
    yield from map_races(partial(_turns_beside, sampler=sampler), list(driven.items()), workers)


def without_needless_call(turn: Turn, least_s: float = MINIMUM_GAIN_S) -> Turn:
    """The turn, or STAY_OUT where a change of driving gains hardly anything."""
    stay, own = turn.values_s.get(str(STAY)), turn.values_s.get(turn.completion)
    if turn.completion.split()[0] not in DRIVING or stay is None or own is None or own - stay >= least_s:
        return turn
    return replace(turn, completion=str(STAY), expert_value=stay)


def with_fewer_stay_outs(turns: Sequence[Turn], seed: int = 0, stay_share: float = STAY_SHARE) -> list[Turn]:
    """The turns with so many STAY_OUT left out that they make up `stay_share` at most; the order stays."""
    idle = np.array([turn.completion == str(STAY) for turn in turns], dtype=bool)
    keep = min(int(idle.sum()), int(stay_share / (1.0 - stay_share) * (~idle).sum()))
    dropped = set(np.random.default_rng(seed).permutation(np.flatnonzero(idle))[keep:].tolist())
    return [turn for k, turn in enumerate(turns) if k not in dropped]


def turn_rows(turns: Iterable[Turn]) -> pd.DataFrame:
    """Rows of `strategy.sft_turns`, less what belongs to the dataset as a whole."""
    return pd.DataFrame([{
        "turn": f"{turn.family}/{turn.seed}/{turn.lap}", "family": turn.family, "seed": turn.seed, "split": turn.split,
        "circuit": turn.circuit, "lap": turn.lap, "prompt": turn.prompt, "completion": turn.completion,
        "expert_value": turn.expert_value, "reason": turn.reason,
        "values_s": json.dumps({name: round(value, 2) for name, value in turn.values_s.items()}),
    } for turn in turns])


def _turns_beside(race: tuple[RaceKey, Sequence[str]], sampler: ScenarioSampler) -> list[Turn]:
    key, outputs = race
    scenario = sampler.scenario(*key)
    environment, expert = RaceEnvironment(), _expert(scenario, FUTURES)
    seen, turns = environment.begin(scenario), []
    expert.begin(seen)
    for output in outputs:
        before = copy.deepcopy(expert)
        turns.append(_turn(seen, expert.decide(seen), scenario.seed, scenario.split))
        if turns[-1].completion != output:
            expert = before
            expert.see(seen)
        seen = environment.step(output).observation
    return turns


def _turns_of_race(key: RaceKey, sampler: ScenarioSampler, odd: float, futures: int) -> list[Turn]:
    scenario = sampler.scenario(*key)
    environment, expert, other = RaceEnvironment(), _expert(scenario, futures), Random()
    rng = np.random.default_rng(digest("odd", *key))
    seen, over, turns = environment.begin(scenario), False, []
    expert.begin(seen)
    other.begin(seen)
    while not over:
        before = copy.deepcopy(expert)
        decision = expert.decide(seen)
        turns.append(_turn(seen, decision, scenario.seed, scenario.split))
        command = decision.command
        if rng.random() < odd:
            command = _odd_command(seen, decision, other, rng)
            expert = before  # the expert did not command this lap, it only observes the result
            expert.see(seen)
        step = environment.step(command)
        seen, over = step.observation, step.done
    return turns


def _expert(scenario: Scenario, futures: int) -> Expert:
    return Expert(futures, {scenario.circuit.circuit: scenario.circuit})


def _odd_command(seen: Observation, decision: Decision, other: Random, rng: np.random.Generator) -> Command:
    """What a beginner might call: nothing, or another of the calls that were weighed, or anything but the end."""
    weighed = sorted(set(decision.costs_s) - {str(decision.command)})
    kind = rng.random()
    if kind < 0.5 and decision.command != STAY:
        return STAY
    if kind < 0.8 and weighed:
        return parse(weighed[rng.integers(len(weighed))])
    command = parse(str(other.decide(seen).command))
    return STAY if command.verb == "DONE" else command


def _turn(seen: Observation, decision: Decision, seed: int, split: str) -> Turn:
    values = {name: -cost for name, cost in decision.costs_s.items()}
    value = values.get(str(decision.command), values.get(str(STAY)))
    prompt = with_hint(seen.text, random_hint(seen.family, seed)) if split == "train" else seen.text
    return Turn(seen.family, seed, split, seen.circuit, seen.lap, prompt, str(decision.command), value, values,
                decision.reason)
