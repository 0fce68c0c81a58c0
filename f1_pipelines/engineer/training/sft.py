"""SFT with TRL's trainer: the model learns the expert's commands, with the loss on completions only."""
from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from f1_pipelines.engineer.profiles import Profile
from f1_pipelines.engineer.progress import SILENT, MetricHistory, Reporter, TrainingFailed
from f1_pipelines.engineer.prompting.rendering import Rendering
from f1_pipelines.engineer.training import resuming
from f1_pipelines.engineer.training.callbacks import MetricsCallback
from f1_pipelines.engineer.training.distributed import on_one_device
from f1_pipelines.engineer.training.optimizers import MuonAndAdamW

if TYPE_CHECKING:
    from transformers import PreTrainedModel
    from trl import SFTConfig

SAVED_EVERY = 200  # steps between checkpoints
LOGGED_EVERY = 5  # steps over which a logged value is the mean
MIN_LOSS_DROP = 0.2  # share of the first loss; a smaller drop fails the training


@dataclass(frozen=True)
class Example:
    """An observation and the command to call."""

    prompt: str
    completion: str


def train_sft(model: PreTrainedModel, rendering: Rendering, examples: Sequence[Example], profile: Profile, seed: int,
              folder: Path, device: str = "cpu", reporter: Reporter = SILENT,
              continued: bool = False) -> MetricHistory:
    """Train the model in place.

    Args:
        model: A causal model; with `profile.lora`, wrapped in its adapter.
        rendering: Rendering of its tokenizer.
        examples: Turns to learn from.
        profile: The profile, for its `sft` settings.
        seed: Seed of order and dropout.
        folder: Folder of this training. Resumes from the latest checkpoint here, or returns a finished training.
        device: cpu, cuda or cuda:1 of this process; several processes share each step's batch.
        reporter: Receives progress.
        continued: The model was trained before, so its loss need not drop.

    Returns:
        All metrics by step.

    Raises:
        TrainingFailed: A metric was not finite, or the loss did not drop.
    """
    from datasets import Dataset
    from transformers import PrinterCallback

    from f1_pipelines.engineer.training.completions import CompletionTrainer, left_padded

    finished = resuming.restore_finished(model, folder)
    if finished is not None:
        return finished
    settings, history = profile.sft, MetricHistory()
    indices = np.random.default_rng(seed).permutation(len(examples))[:settings.turns_used(len(examples))]
    rows = [rendering.example(examples[k].prompt, examples[k].completion) for k in sorted(indices)]
    config = _config(profile, seed, folder, device)
    on_one_device(config, device)
    if config.process_index == 0:
        resuming.remove_incomplete_checkpoints(folder, config.world_size)
    optimizer = MuonAndAdamW(model, settings.muon_learning_rate, settings.learning_rate, settings.weight_decay) \
        if settings.muon_learning_rate else None
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=FutureWarning)
        trainer = CompletionTrainer(
            model=model, args=config, train_dataset=Dataset.from_list(rows), processing_class=rendering.tokenizer,
            data_collator=partial(left_padded, rendering.tokenizer.pad_token_id),
            callbacks=[MetricsCallback(history, reporter)], optimizers=(optimizer, None))
        trainer.remove_callback(PrinterCallback)
        trainer.train(resume_from_checkpoint=resuming.last_checkpoint(folder, config.world_size))
    losses = history.values("loss")
    if not continued and len(losses) >= 8 and np.mean(losses[-4:]) > (1.0 - MIN_LOSS_DROP) * np.mean(losses[:2]):
        raise TrainingFailed(f"the loss only went from {np.mean(losses[:2]):.3f} to {np.mean(losses[-4:]):.3f}, so "
                             "nothing was learnt; check the turns and the learning rate")
    if config.process_index == 0:
        resuming.save_finished(model, folder, history)
    return history


def activation_checkpointing(enabled: bool) -> dict[str, Any]:
    """Return the option that trades time for memory, under the name of the installed transformers version."""
    from dataclasses import fields

    from trl import SFTConfig

    names = {field.name for field in fields(SFTConfig)}
    return {"activation_checkpointing" if "activation_checkpointing" in names else "gradient_checkpointing": enabled}


def _config(profile: Profile, seed: int, folder: Path, device: str) -> SFTConfig:
    """TRL's settings."""
    from trl import SFTConfig

    settings = profile.sft
    return SFTConfig(
        output_dir=str(folder), num_train_epochs=settings.epochs, per_device_train_batch_size=settings.batch_size,
        gradient_accumulation_steps=settings.gradient_accumulation_steps, learning_rate=settings.learning_rate,
        warmup_steps=settings.warmup_steps, lr_scheduler_type="cosine_with_min_lr",
        lr_scheduler_kwargs={"min_lr_rate": settings.min_lr_rate}, adam_beta1=0.9, adam_beta2=0.98,
        weight_decay=settings.weight_decay, max_grad_norm=1.0, max_length=None,
        use_cpu=device == "cpu", bf16=profile.bf16, seed=seed, data_seed=seed,
        logging_steps=math.gcd(LOGGED_EVERY, SAVED_EVERY),  # no mean spans a checkpoint, so a resumed run logs the same
        save_strategy="steps", save_steps=SAVED_EVERY, report_to="none", save_total_limit=resuming.KEPT_CHECKPOINTS,
        disable_tqdm=True, dataloader_pin_memory=False, include_num_input_tokens_seen="non_padding",
        ddp_find_unused_parameters=False, **activation_checkpointing(device != "cpu"))
