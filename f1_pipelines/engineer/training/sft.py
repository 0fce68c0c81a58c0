"""Imitation: the model learns what the expert called, with trl's trainer, loss on the completion alone."""
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
from f1_pipelines.engineer.training.callbacks import MetricsCallback
from f1_pipelines.engineer.training.distributed import on_one_device
from f1_pipelines.engineer.training.optimizers import MuonAndAdamW
from f1_pipelines.engineer.training.resuming import (
    KEPT_CHECKPOINTS,
    last_checkpoint,
    remove_torn_checkpoints,
    restore_finished,
    save_finished,
)

if TYPE_CHECKING:
    from transformers import PreTrainedModel

SAVED_EVERY = 200  # steps between checkpoints to resume from
LOGGED_EVERY = 5  # steps that a point of the curve is the mean of
MIN_LOSS_DROP = 0.2  # share of the first loss that has to go, or nothing was learnt


@dataclass(frozen=True)
class Example:
    """What was seen and what to call."""

    prompt: str
    completion: str


def train_sft(model: PreTrainedModel, rendering: Rendering, examples: Sequence[Example], profile: Profile, seed: int,
              folder: Path, device: str = "cpu", reporter: Reporter = SILENT, taught: bool = False) -> MetricHistory:
    """Train the model in place.

    Args:
        model: A causal model; with `profile.lora`, already wrapped in its adapter.
        rendering: Of its tokenizer.
        examples: Turns.
        profile: Its `sft` settings.
        seed: Of order and dropout.
        folder: Of this training. Resumes from the newest checkpoint here, and takes over a training that is over.
        device: cpu, cuda or cuda:1, of this process: with others, each takes its batches and all make the same step.
        reporter: Takes progress.
        taught: It has learnt before, so that its loss need not fall far.

    Returns:
        Loss and other numbers by step.

    Raises:
        TrainingFailed: Numbers were not finite, or the loss did not fall.
    """
    from datasets import Dataset
    from transformers import PrinterCallback
    from trl import SFTConfig

    from f1_pipelines.engineer.training.completions import CompletionTrainer, left_padded

    over = restore_finished(model, folder)
    if over is not None:
        return over
    settings = profile.sft
    chosen = np.random.default_rng(seed).permutation(len(examples))[:settings.taken(len(examples))]
    examples = [examples[k] for k in sorted(chosen)]
    rows = [rendering.example(example.prompt, example.completion) for example in examples]
    curve = MetricHistory()
    config = SFTConfig(
        output_dir=str(folder), num_train_epochs=settings.epochs, per_device_train_batch_size=settings.batch,
        gradient_accumulation_steps=settings.accumulate, learning_rate=settings.lr, warmup_steps=settings.warmup_steps,
        lr_scheduler_type="cosine_with_min_lr", lr_scheduler_kwargs={"min_lr_rate": settings.lr_floor},
        adam_beta1=0.9, adam_beta2=0.98, weight_decay=settings.weight_decay, max_grad_norm=1.0, max_length=None,
        use_cpu=device == "cpu", bf16=profile.bf16, seed=seed, data_seed=seed,
        logging_steps=math.gcd(LOGGED_EVERY, SAVED_EVERY),  # no mean spans a checkpoint: a resumed run has the same
        save_strategy="steps", save_steps=SAVED_EVERY, report_to="none",
        save_total_limit=KEPT_CHECKPOINTS,
        disable_tqdm=True, dataloader_pin_memory=False, include_num_input_tokens_seen="non_padding",
        ddp_find_unused_parameters=False, **activation_checkpointing(device != "cpu"))
    on_one_device(config, device)
    if config.process_index == 0:
        remove_torn_checkpoints(folder, config.world_size)
    optimizer = MuonAndAdamW(model, settings.muon_lr, settings.lr, settings.weight_decay) if settings.muon_lr else None
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=FutureWarning)
        trainer = CompletionTrainer(
            model=model, args=config, train_dataset=Dataset.from_list(rows), processing_class=rendering.tokenizer,
            data_collator=partial(left_padded, rendering.tokenizer.pad_token_id),
            callbacks=[MetricsCallback(curve, reporter)], optimizers=(optimizer, None))
        trainer.remove_callback(PrinterCallback)
        trainer.train(resume_from_checkpoint=last_checkpoint(folder, config.world_size))
    losses = curve.of("loss")
    if not taught and len(losses) >= 8 and np.mean(losses[-4:]) > (1.0 - MIN_LOSS_DROP) * np.mean(losses[:2]):
        raise TrainingFailed(f"the loss went from {np.mean(losses[:2]):.3f} to {np.mean(losses[-4:]):.3f} only, so "
                             "nothing was learnt; check the turns and the learning rate")
    if config.process_index == 0:
        save_finished(model, folder, curve)
    return curve


def activation_checkpointing(on: bool) -> dict[str, Any]:
    """The option that trades time for memory, under the name that the installed version has."""
    from dataclasses import fields

    from trl import SFTConfig

    names = {field.name for field in fields(SFTConfig)}
    return {"activation_checkpointing" if "activation_checkpointing" in names else "gradient_checkpointing": on}
