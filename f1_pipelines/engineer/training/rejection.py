"""A round of rejection sampling: of the calls drawn at each moment the best one is imitated.

Best is the call whose race ends with the highest score, the policy going on; where none beats the policy's own call by
`MINIMUM_GAIN`, that one stays the example, so that what is good already is not unlearnt.
"""
from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from f1_pipelines.engineer.inference.engineer import Engineer
from f1_pipelines.engineer.profiles import Profile
from f1_pipelines.engineer.progress import Reporter
from f1_pipelines.engineer.prompting.rendering import Rendering
from f1_pipelines.engineer.scenario_sampler import ScenarioSampler
from f1_pipelines.engineer.seed_ranges import REJECTION_FIRST_STEP
from f1_pipelines.engineer.training.resuming import restore_finished
from f1_pipelines.engineer.training.rollout_sampler import RolloutSampler, SampledGroup
from f1_pipelines.engineer.training.sft import Example, train_sft

if TYPE_CHECKING:
    from transformers import PreTrainedModel

MINIMUM_GAIN = 0.02  # of the score: a command that gains less is luck
RACES = 60  # in a round


def rejection_round(model: PreTrainedModel, rendering: Rendering, sampler: ScenarioSampler, profile: Profile, seed: int,
                    number: int, folder: Path, device: str, reporter: Reporter) -> None:
    """Train the model in place on the best command of each group.

    Args:
        model: The policy.
        rendering: Prompts and completions of its tokenizer.
        sampler: Makes the races.
        profile: Its `grpo` settings give number of samples, temperature and learning rate.
        seed: Seed of races and of their order.
        number: Number of the round, from 1.
        folder: Files of the trainer. A finished round is loaded from here.
        device: cpu, cuda or cuda:1.
        reporter: Receives the number of improved commands.
    """
    import torch

    if restore_finished(model, folder) is not None:
        return
    torch.manual_seed(seed + number)  # a round that is repeated after a kill samples the same commands
    engineer = Engineer(model, rendering, profile.max_new_tokens, profile.generation_batch)
    rollouts = RolloutSampler(rendering, sampler, replace(profile.grpo, races=RACES), seed, profile.max_new_tokens,
                              profile.generation_batch)
    groups, _ = rollouts.sample_groups(engineer, REJECTION_FIRST_STEP + number)
    outcomes, _ = rollouts.rollouts(engineer, groups)
    best = [_best(group, np.array([end["score"] for end in ends]))
            for group, ends in zip(groups, outcomes, strict=True)]
    improved = sum(command != group.state.called for group, command in zip(groups, best, strict=True))
    reporter.line(f"rejection round {number}: {improved} of {len(groups)} commands in {RACES} races improved")
    settings = replace(profile.sft, epochs=1.0, muon_lr=None, lr=profile.grpo.lr, warmup_steps=5, max_turns=None)
    train_sft(model, rendering, [Example(group.state.seen.text, command) for group,
                                 command in zip(groups, best, strict=True)],
              replace(profile, sft=settings), seed + number, folder, device, reporter, taught=True)


def _best(group: SampledGroup, scores: np.ndarray) -> str:
    own = group.state.end["score"]
    return group.commands[int(scores.argmax())] if scores.max() > own + MINIMUM_GAIN else group.state.called
