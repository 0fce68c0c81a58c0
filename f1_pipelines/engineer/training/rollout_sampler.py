"""GRPO rollouts: decision states of simulated races, commands sampled at them, and their rewards.

Notable choices:
- Each step drives some races with the current policy and samples `num_generations` commands at some of their states. A
  group whose commands are all equal has no advantage to learn from; it is skipped and counted.
- A command that was sampled several times is simulated and trained on once, weighted by its count: the same gradient at
  a third of the cost, so a step has room for more states.
- The reward of a command is the final score of the race after it; its advantage is the reward less the mean reward of
  its group. The environment computes the score: there is no reward model.
- (seed, step) decides which races a step uses, so a resumed run repeats an uninterrupted one.
"""
from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from f1_pipelines.engineer.inference.engineer import Engineer
from f1_pipelines.engineer.profiles import GrpoSettings
from f1_pipelines.engineer.scenario_sampler import ScenarioSampler
from f1_pipelines.engineer.seed_ranges import GRPO_RACES, GRPO_START, TRAINED_FAMILIES, race_keys
from f1_pipelines.engineer.training.counterfactual_returns import DecisionState, counterfactual_returns, decision_states
from f1_pipelines.engineer.training.self_play import with_self_play
from f1_pipelines.sim.engine.parameters import COMPOUNDS
from f1_pipelines.sim.environment.commands import BadCommand, parse
from f1_pipelines.sim.scenarios import Scenario
from f1_pipelines.sim.scenarios.rng import digest

if TYPE_CHECKING:
    from f1_pipelines.engineer.prompting.rendering import Rendering

EASIEST = "dry_strategy_sprint"  # no rain, no closed track, no rival
DRY = ("soft", "medium", "hard")


@dataclass(frozen=True)
class SampledGroup:
    """Commands sampled at one state, each distinct completion once.

    Attributes:
        state: The decision state.
        token_ids: Token ids of each completion.
        commands: Text of each completion.
        counts: (completions,) how often each was sampled.
    """

    state: DecisionState
    token_ids: list[list[int]]
    commands: list[str]
    counts: np.ndarray


class RolloutSampler:
    """Samples the rollouts of each step for TRL's trainer (`rollout_func`)."""

    def __init__(self, rendering: Rendering, sampler: ScenarioSampler, settings: GrpoSettings, seed: int,
                 max_new_tokens: int, batch: int, share: slice = slice(None)) -> None:
        """
        Args:
            rendering: Prompts and completions of the policy's tokenizer.
            sampler: Makes the races.
            settings: GRPO settings; `states` are those of this process.
            seed: Seed of races and states.
            max_new_tokens: Tokens of a completion at most.
            batch: Prompts that are generated for at a time.
            share: The part of a step's races that this process drives.
        """
        self._rendering, self._sampler, self._settings = rendering, sampler, settings
        self._seed, self._share = seed, share
        self._max_new_tokens, self._batch = max_new_tokens, batch
        self._pool = race_keys("train", GRPO_RACES // len(TRAINED_FAMILIES), start=GRPO_START)
        self.metrics: dict[str, float] = {}  # of the last step

    def __call__(self, prompts: Sequence[str], trainer: Any) -> dict[str, Any]:
        """TRL's `rollout_func`: one completion for each prompt, so `states` x `samples` of them.

        Groups are taken in the order in which they were sampled until the next one does not fit. The last completion,
        with an advantage of 0, fills the rest.
        """
        started = time.process_time()
        engineer = Engineer(trainer.accelerator.unwrap_model(trainer.model), self._rendering, self._max_new_tokens,
                            self._batch)
        sampled, frac_zero_std = self.sample_groups(engineer, trainer.state.global_step,
                                                    self._settings.states * self._settings.looks)
        groups, room = [], self._settings.states * self._settings.samples
        for group in sampled:
            if len(group.commands) > room:
                break
            groups.append(group)
            room -= len(group.commands)
        outcomes, simulator_s = self.rollouts(engineer, groups)
        advantages = [self.advantages(group, ends) for group, ends in zip(groups, outcomes, strict=True)]
        scores = [np.array([end["score"] for end in ends]) for ends in outcomes]
        completions = [(command, ids) for group in groups
                       for command, ids in zip(group.commands, group.token_ids, strict=True)]
        counts = np.concatenate([group.counts for group in groups])
        self.metrics = {
            "score": float(np.mean([group.counts @ own / group.counts.sum()
                                    for group, own in zip(groups, scores, strict=True)])),
            "frac_reward_zero_std": frac_zero_std, "states": len(groups),
            "reward_range": float(np.mean([np.ptp(own) for own in scores])),
            "parse_failures": float(np.average([not _parses(command) for command, _ in completions], weights=counts)),
            "clipped": float(np.average([len(ids) >= self._max_new_tokens for _, ids in completions],
                                        weights=counts)),
            "rollout_s": time.process_time() - started, "simulator_s": simulator_s,
        }
        prompt_ids = [self._rendering.prompt_ids(group.state.seen.text) for group in groups for _ in group.commands]
        completion_ids = [ids for _, ids in completions]
        weighted = np.concatenate([group.counts * own for group, own in zip(groups, advantages, strict=True)]).tolist()
        return {"prompt_ids": prompt_ids + [prompt_ids[-1]] * room, "logprobs": None,
                "completion_ids": completion_ids + [completion_ids[-1]] * room,
                "advantage": weighted + [0.0] * room}

    def sample_groups(self, engineer: Engineer, step: int,
                      count: int | None = None) -> tuple[list[SampledGroup], float]:
        """Sample commands at states of the step's races.

        Args:
            engineer: The policy.
            step: Optimizer step.
            count: States to sample at; None for every lap.

        Returns:
            The groups whose commands differ, and the share of groups whose commands are all equal. If all groups are
            like that, the first one.
        """
        settings, rng = self._settings, np.random.default_rng(digest("practice", self._seed, step))
        pool = [key for key in self._pool if key[0] == EASIEST] if step < settings.easy_steps else self._pool
        keys = [pool[k] for k in rng.choice(len(pool), settings.races, replace=False)][self._share]
        scenarios = [self._sampler.scenario(*key) for key in keys]
        if settings.copies:
            scenarios = with_self_play(scenarios, lambda texts: engineer.commands(texts, settings.copies))
        states = [state for race in decision_states(scenarios, engineer.commands) for state in race]
        chosen = [states[k] for k in rng.permutation(len(states))[:count]]
        completions = engineer.draws([state.seen.text for state in chosen], settings.samples, settings.temperature)
        groups = [self._distinct(state, own) for state, own in zip(chosen, completions, strict=True)]
        differ = [group for group in groups if len(group.commands) > 1]
        return differ or groups[:1], 1.0 - len(differ) / len(groups)

    def rollouts(self, engineer: Engineer,
                 groups: Sequence[SampledGroup]) -> tuple[list[list[dict[str, Any]]], float]:
        """How each race ends after each command when the policy drives on; and the simulator's CPU time [s]."""
        timed, started = _Timed(engineer), time.process_time()
        outcomes = counterfactual_returns([group.state for group in groups], [group.commands for group in groups],
                                          timed)
        return outcomes, time.process_time() - started - timed.seconds

    def advantages(self, group: SampledGroup, outcomes: Sequence[Mapping[str, Any]]) -> np.ndarray:
        """(completions,) reward of each, shaping included, less the mean reward of the group's samples."""
        rewards = np.array([end["score"] for end in outcomes]) + self.shaping_rewards(group, outcomes)
        return rewards - group.counts @ rewards / group.counts.sum()

    def shaping_rewards(self, group: SampledGroup, outcomes: Sequence[Mapping[str, Any]]) -> np.ndarray:
        """(completions,) what is added to the score; 0 without an option."""
        added = np.zeros(len(group.commands))
        if self._settings.two_compounds:
            scenario = group.state.environment.scenario
            added += self._settings.two_compounds * np.array([_used_two(scenario, end) for end in outcomes])
        if self._settings.agreement:
            best = str(group.state.expert_call())
            added += self._settings.agreement * np.array([command == best for command in group.commands])
        return added

    def _distinct(self, state: DecisionState, completions: Sequence[Sequence[int]]) -> SampledGroup:
        counted = sorted(Counter(map(tuple, completions)).items())
        return SampledGroup(state, [list(ids) for ids, _ in counted],
                            [self._rendering.command(ids) for ids, _ in counted],
                            np.array([count for _, count in counted]))


def _used_two(scenario: Scenario, end: Mapping[str, Any]) -> bool:
    used = {int(scenario.compound[0]), *(compound for _, compound in end["stops"])}
    return scenario.rule and sum(COMPOUNDS[compound] in DRY for compound in used) >= 2


def _parses(command: str) -> bool:
    try:
        parse(command)
    except BadCommand:
        return False
    return True


class _Timed:
    """An engineer as a batch policy, with the CPU seconds that it took."""

    def __init__(self, engineer: Engineer) -> None:
        self._engineer, self.seconds = engineer, 0.0

    def __call__(self, observations: Sequence[str]) -> list[str]:
        started = time.process_time()
        commands = self._engineer.commands(observations)
        self.seconds += time.process_time() - started
        return commands
