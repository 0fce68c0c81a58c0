"""The expert's calls, lap by lap, as examples to learn from: `expert_demonstrations(sampler, races)`.

Notable choices:
- `PERTURBATION_RATE` of the laps use a non-expert command, to cover states that the expert avoids. Their label is
  still the expert's command; the expert continues from what happened.
- A driving command that gains less than `MINIMUM_GAIN_S` becomes STAY_OUT (`without_needless_call`): the expert's
  values are sampled, so smaller differences are noise. Its score is .89 that way, .90 without.
- STAY_OUT is the commonest label and the least informative: `with_fewer_stay_outs` keeps a share of them.
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
from f1_pipelines.sim.engine.hashing import stable_hash
from f1_pipelines.sim.environment.commands import STAY, Command, parse
from f1_pipelines.sim.environment.environment import RaceEnvironment
from f1_pipelines.sim.environment.observation import Observation
from f1_pipelines.sim.policies.expert import Expert
from f1_pipelines.sim.policies.policy import Decision
from f1_pipelines.sim.policies.scripted import Random
from f1_pipelines.sim.scenarios import Scenario
from f1_pipelines.sim.workers import map_races

PERTURBATION_RATE = 0.12  # share of laps driven with a non-expert command
STAY_SHARE = 0.5  # maximum share of STAY_OUT labels; with fewer, a student makes needless calls
FUTURES = 32  # that the expert samples each lap: it scores .88, against .89 with 96 in more than twice the time
MINIMUM_GAIN_S = 1.5  # that a driving command has to gain over STAY_OUT
DRIVING = ("SET_MODE", "MANAGE_TYRE_TEMP", "ATTACK_AHEAD", "DEFEND_POSITION")


@dataclass(frozen=True)
class Demonstration:
    """One lap of one race: the prompt, the expert's command, and the expert's values of all weighed commands.

    `values_s`: gain in seconds by command, 0 for the best weighed, negative for worse ones; `expert_value` is that of
    the expert's command. Inspections and messages drive like STAY_OUT, so they have its value.
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
                          perturbation_rate: float = PERTURBATION_RATE,
                          futures: int = FUTURES) -> Iterator[list[Demonstration]]:
    """Demonstrations of each race that the expert drives, in order.

    Args:
        sampler: Makes the races.
        races: Family and seed of each race.
        workers: Number of processes.
        perturbation_rate: Share of laps driven with a non-expert command.
        futures: Futures that the expert samples each lap.
    """
    yield from map_races(partial(_expert_race, sampler=sampler, perturbation_rate=perturbation_rate, futures=futures),
                         races, workers)


def relabel_with_expert(sampler: ScenarioSampler, outputs: Mapping[RaceKey, Sequence[str]],
                        workers: int = 1) -> Iterator[list[Demonstration]]:
    """The expert's command in each lap of races that a student drove, in order (DAgger, Ross et al. 2011).

    Args:
        sampler: Makes the races.
        outputs: The student's raw outputs by race.
        workers: Number of processes.
    """
    yield from map_races(partial(_relabelled_race, sampler=sampler), list(outputs.items()), workers)


def without_needless_call(lap: Demonstration, min_gain_s: float = MINIMUM_GAIN_S) -> Demonstration:
    """The demonstration, with STAY_OUT in place of a driving command that gains less than `min_gain_s` over it."""
    stay, own = lap.values_s.get(str(STAY)), lap.values_s.get(lap.completion)
    if lap.completion.split()[0] not in DRIVING or stay is None or own is None or own - stay >= min_gain_s:
        return lap
    return replace(lap, completion=str(STAY), expert_value=stay)


def with_fewer_stay_outs(laps: Sequence[Demonstration], seed: int = 0,
                         stay_share: float = STAY_SHARE) -> list[Demonstration]:
    """Demonstrations of which at most `stay_share` are STAY_OUT; which ones stay is drawn, the order is kept."""
    idle = np.array([lap.completion == str(STAY) for lap in laps], dtype=bool)
    keep = min(int(idle.sum()), int(stay_share / (1.0 - stay_share) * (~idle).sum()))
    dropped = set(np.random.default_rng(seed).permutation(np.flatnonzero(idle))[keep:].tolist())
    return [lap for k, lap in enumerate(laps) if k not in dropped]


def turn_rows(laps: Iterable[Demonstration]) -> pd.DataFrame:
    """Rows of `strategy.sft_turns`, without the columns that are the same in all rows."""
    return pd.DataFrame([{
        "turn": f"{lap.family}/{lap.seed}/{lap.lap}", "family": lap.family, "seed": lap.seed, "split": lap.split,
        "circuit": lap.circuit, "lap": lap.lap, "prompt": lap.prompt, "completion": lap.completion,
        "expert_value": lap.expert_value, "reason": lap.reason,
        "values_s": json.dumps({name: round(value, 2) for name, value in lap.values_s.items()}),
    } for lap in laps])


def _relabelled_race(race: tuple[RaceKey, Sequence[str]], sampler: ScenarioSampler) -> list[Demonstration]:
    key, outputs = race
    scenario = sampler.scenario(*key)
    environment, expert = RaceEnvironment(), _expert(scenario, FUTURES)
    observation, laps = environment.begin(scenario), []
    expert.begin(observation)
    for output in outputs:
        before = copy.deepcopy(expert)
        laps.append(_demonstration(observation, expert.decide(observation), scenario.seed, scenario.split))
        if laps[-1].completion != output:
            expert = before  # it must remember what the student called, not what it would have called
            expert.see(observation)
        observation = environment.step(output).observation
    return laps


def _expert_race(key: RaceKey, sampler: ScenarioSampler, perturbation_rate: float,
                 futures: int) -> list[Demonstration]:
    scenario = sampler.scenario(*key)
    environment, expert, random = RaceEnvironment(), _expert(scenario, futures), Random()
    rng = np.random.default_rng(stable_hash("odd", *key))
    observation, done, laps = environment.begin(scenario), False, []
    expert.begin(observation)
    random.begin(observation)
    while not done:
        before = copy.deepcopy(expert)
        decision = expert.decide(observation)
        laps.append(_demonstration(observation, decision, scenario.seed, scenario.split))
        command = decision.command
        if rng.random() < perturbation_rate:
            command = _perturbed(observation, decision, random, rng)
            expert = before  # it must not remember a command that was not given
            expert.see(observation)
        step = environment.step(command)
        observation, done = step.observation, step.done
    return laps


def _expert(scenario: Scenario, futures: int) -> Expert:
    return Expert(futures, {scenario.circuit.circuit: scenario.circuit})


def _perturbed(observation: Observation, decision: Decision, random: Random,
               rng: np.random.Generator) -> Command | str:
    """A non-expert command: STAY_OUT, another weighed command, or a random one; never DONE."""
    weighed = sorted(set(decision.costs_s) - {str(decision.command)})
    kind = rng.random()
    if kind < 0.5 and decision.command != STAY:
        return STAY
    if kind < 0.8 and weighed:
        return parse(weighed[rng.integers(len(weighed))])
    command = random.decide(observation).command
    return STAY if isinstance(command, Command) and command.verb == "DONE" else command


def _demonstration(observation: Observation, decision: Decision, seed: int, split: str) -> Demonstration:
    values = {name: -cost for name, cost in decision.costs_s.items()}
    value = values.get(str(decision.command), values.get(str(STAY)))
    hint = random_hint(observation.family, seed) if split == "train" else ""
    return Demonstration(observation.family, seed, split, observation.circuit, observation.lap,
                         with_hint(observation.text, hint), str(decision.command), value, values, decision.reason)
