"""The expert's commands, lap by lap, as training examples: `expert_demonstrations(sampler, races)`.

Notable choices:
- `PERTURBATION_RATE` of the laps use a non-expert command, to cover states that the expert avoids. Their label is
  still the expert's command; the expert continues from the resulting state.
- A driving command that gains less than `MINIMUM_GAIN_S` becomes STAY_OUT (`without_needless_call`): the expert's
  values are sampled, so smaller differences are noise. The expert scores .89 with this rule, .90 without.
- STAY_OUT is the most frequent and least informative label: `with_fewer_stay_outs` limits its share.
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
STAY_SHARE = 0.5  # maximum share of STAY_OUT labels; a student trained on fewer makes needless calls
FUTURES = 32  # sampled by the expert each lap: it scores .88; 96 futures score .89 in more than twice the time
MINIMUM_GAIN_S = 1.5  # minimum gain of a driving command over STAY_OUT
DRIVING = ("SET_MODE", "MANAGE_TYRE_TEMP", "ATTACK_AHEAD", "DEFEND_POSITION")


@dataclass(frozen=True)
class Demonstration:
    """One lap of one race: the prompt, the expert's command, and the values of all commands that the expert compared.

    `values_s`: gain by command [s], 0 for the best, negative for the others. `expert_value`: value of the expert's
    command; inspections and messages drive like STAY_OUT, so they have its value.
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
    """Yield the demonstrations of each race, driven by the expert, in the order of `races`.

    Args:
        sampler: Makes the races.
        races: Keys of the races.
        workers: Number of processes.
        perturbation_rate: Share of laps driven with a non-expert command.
        futures: Number of futures that the expert samples each lap.
    """
    yield from map_races(partial(_expert_race, sampler=sampler, perturbation_rate=perturbation_rate, futures=futures),
                         races, workers)


def relabel_with_expert(sampler: ScenarioSampler, outputs: Mapping[RaceKey, Sequence[str]],
                        workers: int = 1) -> Iterator[list[Demonstration]]:
    """Yield the expert's command in each lap of races that a student drove, in order (DAgger, Ross et al. 2011).

    Args:
        sampler: Makes the races.
        outputs: Raw outputs of the student by race.
        workers: Number of processes.
    """
    yield from map_races(partial(_relabelled_race, sampler=sampler), list(outputs.items()), workers)


def without_needless_call(turn: Demonstration, min_gain_s: float = MINIMUM_GAIN_S) -> Demonstration:
    """Replace a driving command that gains less than `min_gain_s` over STAY_OUT with STAY_OUT."""
    stay_value, value = turn.values_s.get(str(STAY)), turn.values_s.get(turn.completion)
    driving = turn.completion.split()[0] in DRIVING
    if not driving or stay_value is None or value is None or value - stay_value >= min_gain_s:
        return turn
    return replace(turn, completion=str(STAY), expert_value=stay_value)


def with_fewer_stay_outs(turns: Sequence[Demonstration], seed: int = 0,
                         stay_share: float = STAY_SHARE) -> list[Demonstration]:
    """Drop random STAY_OUT demonstrations until at most `stay_share` of all are left; the order stays the same."""
    is_stay = np.array([turn.completion == str(STAY) for turn in turns], dtype=bool)
    n_stays = min(int(is_stay.sum()), int(stay_share / (1.0 - stay_share) * (~is_stay).sum()))
    excess = set(np.random.default_rng(seed).permutation(np.flatnonzero(is_stay))[n_stays:].tolist())
    return [turn for k, turn in enumerate(turns) if k not in excess]


def turn_rows(turns: Iterable[Demonstration]) -> pd.DataFrame:
    """Rows of `strategy.sft_turns`, without the columns that are the same in all rows."""
    return pd.DataFrame([{
        "turn": f"{turn.family}/{turn.seed}/{turn.lap}", "family": turn.family, "seed": turn.seed, "split": turn.split,
        "circuit": turn.circuit, "lap": turn.lap, "prompt": turn.prompt, "completion": turn.completion,
        "expert_value": turn.expert_value, "reason": turn.reason,
        "values_s": json.dumps({name: round(value, 2) for name, value in turn.values_s.items()}),
    } for turn in turns])


def _relabelled_race(race: tuple[RaceKey, Sequence[str]], sampler: ScenarioSampler) -> list[Demonstration]:
    key, outputs = race
    scenario = sampler.scenario(*key)
    environment, expert = RaceEnvironment(), _expert(scenario, FUTURES)
    observation, turns = environment.begin(scenario), []
    expert.begin(observation)
    for output in outputs:
        undecided = copy.deepcopy(expert)
        turns.append(_demonstration(observation, expert.decide(observation), scenario.seed, scenario.split))
        if turns[-1].completion != output:
            expert = undecided  # the expert must remember the student's command, not its own
            expert.see(observation)
        observation = environment.step(output).observation
    return turns


def _expert_race(key: RaceKey, sampler: ScenarioSampler, perturbation_rate: float,
                 futures: int) -> list[Demonstration]:
    scenario = sampler.scenario(*key)
    environment, expert, random = RaceEnvironment(), _expert(scenario, futures), Random()
    rng = np.random.default_rng(stable_hash("odd", *key))
    observation, done, turns = environment.begin(scenario), False, []
    expert.begin(observation)
    random.begin(observation)
    while not done:
        undecided = copy.deepcopy(expert)
        decision = expert.decide(observation)
        turns.append(_demonstration(observation, decision, scenario.seed, scenario.split))
        command = decision.command
        if rng.random() < perturbation_rate:
            command = _perturbed_command(observation, decision, random, rng)
            expert = undecided  # the expert must not remember a command that was not executed
            expert.see(observation)
        step = environment.step(command)
        observation, done = step.observation, step.done
    return turns


def _expert(scenario: Scenario, futures: int) -> Expert:
    return Expert(futures, {scenario.circuit.circuit: scenario.circuit})


def _perturbed_command(observation: Observation, decision: Decision, random: Random,
                       rng: np.random.Generator) -> Command | str:
    """Draw a non-expert command: STAY_OUT, another one that the expert compared, or a random one; never DONE."""
    alternatives = sorted(set(decision.costs_s) - {str(decision.command)})
    draw = rng.random()
    if draw < 0.5 and decision.command != STAY:
        return STAY
    if draw < 0.8 and alternatives:
        return parse(alternatives[rng.integers(len(alternatives))])
    command = random.decide(observation).command
    return STAY if isinstance(command, Command) and command.verb == "DONE" else command


def _demonstration(observation: Observation, decision: Decision, seed: int, split: str) -> Demonstration:
    values = {name: -cost for name, cost in decision.costs_s.items()}
    value = values.get(str(decision.command), values.get(str(STAY)))
    hint = random_hint(observation.family, seed) if split == "train" else ""
    return Demonstration(observation.family, seed, split, observation.circuit, observation.lap,
                         with_hint(observation.text, hint), str(decision.command), value, values, decision.reason)
