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

MINIMUM_GAIN = 0.02  # of score: a call that gains less is luck
RACES = 60  # of a round


def rejection_round(model: PreTrainedModel, rendering: Rendering, scenes: ScenarioSampler, profile: Profile, seed: int,
                    number: int, folder: Path, device: str, listener: Reporter) -> None:
    """Train the model in place.

    Args:
        model: The policy.
        rendering: Of its tokenizer.
        scenes: What the races are made of.
        profile: Its `grpo` settings give draws, temperature and learning rate.
        seed: Of races and order.
        number: Of the round.
        folder: For the trainer's files. A round that is over is taken from here.
        device: cpu, cuda or cuda:1.
        listener: Told how many calls were bettered.
    """
    import torch

    if restore_finished(model, folder) is not None:
        return
    torch.manual_seed(seed + number)  # of the draws, which are the same again when a killed round is repeated
    engineer = Engineer(model, rendering, profile.max_new_tokens, profile.generation_batch)
    practice = RolloutSampler(rendering, scenes, replace(profile.grpo, races=RACES), seed, profile.max_new_tokens,
                              profile.generation_batch)
    tried, _ = practice.tried(engineer, REJECTION_FIRST_STEP + number)
    ends, _ = practice.raced(engineer, tried)
    best = [_best(one, np.array([end["score"] for end in outcomes])) for one, outcomes in zip(tried, ends, strict=True)]
    bettered = sum(call != one.moment.called for one, call in zip(tried, best, strict=True))
    listener.line(f"rejection round {number}: {bettered} of {len(tried)} calls in {RACES} races bettered")
    settings = replace(profile.sft, epochs=1.0, muon_lr=None, lr=profile.grpo.lr, warmup_steps=5, max_turns=None)
    train_sft(model, rendering, [Example(one.moment.seen.text, call) for one, call in zip(tried, best, strict=True)],
              replace(profile, sft=settings), seed + number, folder, device, listener, taught=True)


def _best(one: SampledGroup, scores: np.ndarray) -> str:
    own = one.moment.end["score"]
    return one.calls[int(scores.argmax())] if scores.max() > own + MINIMUM_GAIN else one.moment.called
