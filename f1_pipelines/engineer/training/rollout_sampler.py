"""GRPO rollouts: states of races, completions sampled at each, and the reward and advantage of every completion.

`RolloutSampler.rewards` defines the reward, `RolloutSampler.advantages` the advantage.

Notable choices:
- A step drives some races with the current policy and samples completions at some of their states. States at which all
  samples are equal teach nothing and are skipped; their share is logged as `frac_reward_zero_std`.
- A completion that was sampled several times is simulated and trained on once, weighted by its count: the same gradient
  at a third of the cost, so a step has room for more states.
- The reward of a completion is the final score of its race, the advantage is the reward less the mean over the state's
  samples. There is no reward model and no value model.
- The races of a step depend only on (seed, step), so a resumed run repeats them.
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
from f1_pipelines.engineer.seed_ranges import grpo_races
from f1_pipelines.engineer.training.counterfactual_returns import DecisionState, counterfactual_returns, decision_states
from f1_pipelines.sim.engine.hashing import stable_hash
from f1_pipelines.sim.environment.commands import BadCommand, parse

if TYPE_CHECKING:
    from f1_pipelines.engineer.prompting.rendering import Rendering


@dataclass(frozen=True)
class SampledGroup:
    """The distinct completions sampled at one state.

    Attributes:
        state: The race before the lap.
        token_ids: Token ids of each completion.
        completions: Text of each completion.
        counts: (completions,) number of samples of each.
    """

    state: DecisionState
    token_ids: list[list[int]]
    completions: list[str]
    counts: np.ndarray


class RolloutSampler:
    """Drives the races of each step and returns completions with their advantages to TRL."""

    def __init__(self, rendering: Rendering, sampler: ScenarioSampler, settings: GrpoSettings, seed: int,
                 max_new_tokens: int, batch: int, process_slice: slice = slice(None)) -> None:
        """
        Args:
            rendering: Rendering of the policy's tokenizer.
            sampler: Makes the races.
            settings: GRPO settings, with the `states` of this process.
            seed: Seed of races and states.
            max_new_tokens: Longer completions are truncated.
            batch: Number of prompts in a batch of generation.
            process_slice: The part of a step's races that this process drives.
        """
        self._rendering, self._sampler, self._settings, self._seed = rendering, sampler, settings, seed
        self._max_new_tokens, self._batch, self._process_slice = max_new_tokens, batch, process_slice
        self._pool = grpo_races()
        self.metrics: dict[str, float] = {}  # of the last step

    def __call__(self, prompts: Sequence[str], trainer: Any) -> dict[str, Any]:
        """TRL's `rollout_func`: `states` x `num_generations` completions with their advantages.

        Takes groups in the order they were sampled until the next one does not fit. The rest of the batch repeats the
        last completion with an advantage of 0.
        """
        started = time.process_time()
        settings = self._settings
        engineer = Engineer(trainer.accelerator.unwrap_model(trainer.model), self._rendering, self._max_new_tokens,
                            self._batch)
        sampled, zero_std = self.sample_groups(engineer, trainer.state.global_step,
                                               settings.states * settings.oversampling)
        groups, room = _fitting_groups(sampled, settings.states * settings.num_generations)
        outcomes, simulator_s = self.outcomes(engineer, groups)
        rewards = [self.rewards(group, infos) for group, infos in zip(groups, outcomes, strict=True)]
        advantages = np.concatenate([group.counts * self.advantages(group, group_rewards)
                                     for group, group_rewards in zip(groups, rewards, strict=True)]).tolist()
        self.metrics = {**self._metrics_of(groups, outcomes), "frac_reward_zero_std": zero_std,
                        "rollout_s": time.process_time() - started, "simulator_s": simulator_s}
        prompt_ids = [self._rendering.prompt_ids(group.state.observation.text)
                      for group in groups for _ in group.completions]
        completion_ids = [ids for group in groups for ids in group.token_ids]
        return {"prompt_ids": prompt_ids + [prompt_ids[-1]] * room, "logprobs": None,
                "completion_ids": completion_ids + [completion_ids[-1]] * room,
                "advantage": advantages + [0.0] * room}

    def sample_groups(self, engineer: Engineer, step: int, count: int) -> tuple[list[SampledGroup], float]:
        """Sample completions at states of the step's races.

        Args:
            engineer: The policy.
            step: Step of the training.
            count: Number of states.

        Returns:
            The groups with more than one distinct completion, or the first group if there are none; and the share of
            states with only one completion.
        """
        settings, rng = self._settings, np.random.default_rng(stable_hash("practice", self._seed, step))
        keys = [self._pool[k] for k in rng.choice(len(self._pool), settings.races, replace=False)][self._process_slice]
        scenarios = [self._sampler.scenario(*key) for key in keys]
        states = [state for race in decision_states(scenarios, engineer.commands) for state in race]
        states = [states[k] for k in rng.permutation(len(states))[:count]]
        samples = engineer.sample_ids([state.observation.text for state in states], settings.num_generations,
                                      settings.temperature)
        groups = [self._group(state, ids) for state, ids in zip(states, samples, strict=True)]
        differing = [group for group in groups if len(group.completions) > 1]
        return differing or groups[:1], 1.0 - len(differing) / len(groups)

    def outcomes(self, engineer: Engineer, groups: Sequence[SampledGroup]) -> tuple[list[list[dict[str, Any]]], float]:
        """Return the race's `info` after each completion, driven on by the policy, and the simulator's CPU time [s]."""
        policy, started = _TimedPolicy(engineer), time.process_time()
        infos = counterfactual_returns([group.state for group in groups], [group.completions for group in groups],
                                       policy)
        return infos, time.process_time() - started - policy.seconds

    def rewards(self, group: SampledGroup, outcomes: Sequence[Mapping[str, Any]]) -> np.ndarray:
        """Return the (completions,) rewards: the score of each completion's race, in [0, 1]."""
        return np.array([info["score"] for info in outcomes])

    def advantages(self, group: SampledGroup, rewards: np.ndarray) -> np.ndarray:
        """Return the (completions,) advantages: each reward less the mean over the state's samples."""
        advantages: np.ndarray = rewards - group.counts @ rewards / group.counts.sum()
        return advantages

    def _metrics_of(self, groups: Sequence[SampledGroup],
                    outcomes: Sequence[Sequence[Mapping[str, Any]]]) -> dict[str, float]:
        scores = [np.array([info["score"] for info in infos]) for infos in outcomes]
        counts = np.concatenate([group.counts for group in groups])
        unparsed = [not _parses(text) for group in groups for text in group.completions]
        truncated = [len(ids) >= self._max_new_tokens for group in groups for ids in group.token_ids]
        return {
            "score": float(np.mean([group.counts @ group_scores / group.counts.sum()
                                    for group, group_scores in zip(groups, scores, strict=True)])),
            "states": len(groups),
            "reward_range": float(np.mean([np.ptp(group_scores) for group_scores in scores])),
            "parse_failures": float(np.average(unparsed, weights=counts)),
            "clipped": float(np.average(truncated, weights=counts))}

    def _group(self, state: DecisionState, samples: Sequence[Sequence[int]]) -> SampledGroup:
        counts = sorted(Counter(map(tuple, samples)).items())
        return SampledGroup(state, [list(ids) for ids, _ in counts],
                            [self._rendering.command(ids) for ids, _ in counts],
                            np.array([count for _, count in counts]))


def _fitting_groups(groups: Sequence[SampledGroup], room: int) -> tuple[list[SampledGroup], int]:
    """Return the first groups with at most `room` completions together, and the remaining room."""
    fitting = []
    for group in groups:
        if len(group.completions) > room:
            break
        fitting.append(group)
        room -= len(group.completions)
    return fitting, room


def _parses(text: str) -> bool:
    try:
        parse(text)
    except BadCommand:
        return False
    return True


class _TimedPolicy:
    """An engineer as a batch policy that measures its CPU time [s]."""

    def __init__(self, engineer: Engineer) -> None:
        self._engineer, self.seconds = engineer, 0.0

    def __call__(self, observations: Sequence[str]) -> list[str]:
        started = time.process_time()
        outputs = self._engineer.commands(observations)
        self.seconds += time.process_time() - started
        return outputs
