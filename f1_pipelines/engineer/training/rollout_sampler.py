"""GRPO rollouts: states of races, completions sampled at each, and the reward and advantage of every completion.

Where to change what: `RolloutSampler.rewards` is the reward, `RolloutSampler.advantages` the advantage.

Notable choices:
- A step drives some races with the current policy and samples completions at some of their states. States at which all
  samples are equal teach nothing and are passed over; their share is logged as `frac_reward_zero_std`.
- A completion that was sampled several times is raced and learnt from once, weighted by its count: the same gradient at
  a third of the cost, so a step has room for more states.
- The reward of a completion is the final score of its race, the advantage is the reward less the mean over the state's
  samples. There is no reward model and no value model.
- The races of a step follow from (seed, step) alone, so a resumed run repeats what a killed one would have done.
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
        counts: (completions,) how often each was sampled.
    """

    state: DecisionState
    token_ids: list[list[int]]
    completions: list[str]
    counts: np.ndarray


class RolloutSampler:
    """Drives the races of each step and hands completions with their advantages to TRL."""

    def __init__(self, rendering: Rendering, sampler: ScenarioSampler, settings: GrpoSettings, seed: int,
                 max_new_tokens: int, batch: int, process_slice: slice = slice(None)) -> None:
        """
        Args:
            rendering: Rendering of the policy's tokenizer.
            sampler: Makes the races.
            settings: GRPO settings; `states` is the number for this process.
            seed: Seed of races and states.
            max_new_tokens: Longer completions are cut.
            batch: Prompts generated for at a time.
            process_slice: Which of a step's races this process drives.
        """
        self._rendering, self._sampler, self._settings, self._seed = rendering, sampler, settings, seed
        self._max_new_tokens, self._batch, self._process_slice = max_new_tokens, batch, process_slice
        self._pool = grpo_races()
        self.metrics: dict[str, float] = {}  # of the last step

    def __call__(self, prompts: Sequence[str], trainer: Any) -> dict[str, Any]:
        """TRL's `rollout_func`: `states` x `num_generations` completions with their advantages.

        Groups are taken in the order they were sampled until the next one does not fit. The rest of the batch repeats
        the last completion with an advantage of 0.
        """
        started = time.process_time()
        settings = self._settings
        engineer = Engineer(trainer.accelerator.unwrap_model(trainer.model), self._rendering, self._max_new_tokens,
                            self._batch)
        sampled, zero_std = self.sample_groups(engineer, trainer.state.global_step,
                                               settings.states * settings.oversampling)
        groups, room = _fitting(sampled, settings.states * settings.num_generations)
        outcomes, simulator_s = self.outcomes(engineer, groups)
        rewards = [self.rewards(group, infos) for group, infos in zip(groups, outcomes, strict=True)]
        weighted = np.concatenate([group.counts * self.advantages(group, own)
                                   for group, own in zip(groups, rewards, strict=True)]).tolist()
        self.metrics = {**self._metrics_of(groups, outcomes), "frac_reward_zero_std": zero_std,
                        "rollout_s": time.process_time() - started, "simulator_s": simulator_s}
        prompt_ids = [self._rendering.prompt_ids(group.state.observation.text)
                      for group in groups for _ in group.completions]
        completion_ids = [ids for group in groups for ids in group.token_ids]
        return {"prompt_ids": prompt_ids + [prompt_ids[-1]] * room, "logprobs": None,
                "completion_ids": completion_ids + [completion_ids[-1]] * room, "advantage": weighted + [0.0] * room}

    def sample_groups(self, engineer: Engineer, step: int, count: int) -> tuple[list[SampledGroup], float]:
        """Sample completions at states of the step's races.

        Args:
            engineer: The policy.
            step: Step of the training.
            count: Number of states.

        Returns:
            The groups with more than one distinct completion, or the first group if there are none; and the share of
            states with only one.
        """
        settings, rng = self._settings, np.random.default_rng(stable_hash("practice", self._seed, step))
        keys = [self._pool[k] for k in rng.choice(len(self._pool), settings.races, replace=False)][self._process_slice]
        scenarios = [self._sampler.scenario(*key) for key in keys]
        states = [state for race in decision_states(scenarios, engineer.commands) for state in race]
        chosen = [states[k] for k in rng.permutation(len(states))[:count]]
        samples = engineer.sample_ids([state.observation.text for state in chosen], settings.num_generations,
                                      settings.temperature)
        groups = [self._group(state, ids) for state, ids in zip(chosen, samples, strict=True)]
        differing = [group for group in groups if len(group.completions) > 1]
        return differing or groups[:1], 1.0 - len(differing) / len(groups)

    def outcomes(self, engineer: Engineer, groups: Sequence[SampledGroup]) -> tuple[list[list[dict[str, Any]]], float]:
        """How the race ends (`info`) after each completion if the policy goes on, and the simulator's seconds."""
        policy, started = _TimedPolicy(engineer), time.process_time()
        infos = counterfactual_returns([group.state for group in groups], [group.completions for group in groups],
                                       policy)
        return infos, time.process_time() - started - policy.seconds

    def rewards(self, group: SampledGroup, outcomes: Sequence[Mapping[str, Any]]) -> np.ndarray:
        """(completions,) reward of each completion: the score of its race, in [0, 1]."""
        return np.array([info["score"] for info in outcomes])

    def advantages(self, group: SampledGroup, rewards: np.ndarray) -> np.ndarray:
        """(completions,) reward of each completion less the mean over the state's samples."""
        advantages: np.ndarray = rewards - group.counts @ rewards / group.counts.sum()
        return advantages

    def _metrics_of(self, groups: Sequence[SampledGroup],
                    outcomes: Sequence[Sequence[Mapping[str, Any]]]) -> dict[str, float]:
        scores = [np.array([info["score"] for info in infos]) for infos in outcomes]
        counts = np.concatenate([group.counts for group in groups])
        unparsed = [not _parses(text) for group in groups for text in group.completions]
        cut = [len(ids) >= self._max_new_tokens for group in groups for ids in group.token_ids]
        return {
            "score": float(np.mean([group.counts @ own / group.counts.sum()
                                    for group, own in zip(groups, scores, strict=True)])),
            "states": len(groups), "reward_range": float(np.mean([np.ptp(own) for own in scores])),
            "parse_failures": float(np.average(unparsed, weights=counts)),
            "clipped": float(np.average(cut, weights=counts))}

    def _group(self, state: DecisionState, samples: Sequence[Sequence[int]]) -> SampledGroup:
        counted = sorted(Counter(map(tuple, samples)).items())
        return SampledGroup(state, [list(ids) for ids, _ in counted],
                            [self._rendering.command(ids) for ids, _ in counted],
                            np.array([count for _, count in counted]))


def _fitting(groups: Sequence[SampledGroup], room: int) -> tuple[list[SampledGroup], int]:
    """The first groups with at most `room` completions together, and the room that is left."""
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
    """An engineer as a batch policy, with the CPU seconds that it took."""

    def __init__(self, engineer: Engineer) -> None:
        self._engineer, self.seconds = engineer, 0.0

    def __call__(self, observations: Sequence[str]) -> list[str]:
        started = time.process_time()
        outputs = self._engineer.commands(observations)
        self.seconds += time.process_time() - started
        return outputs
