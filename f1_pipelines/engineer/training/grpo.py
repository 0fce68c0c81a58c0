"""GRPO with TRL's trainer: commands sampled in simulated races (`rollout_sampler`), rewarded by the race's score.

SFT, GRPO, evaluation and serving all read the prompts of `Rendering`, so they see the same tokens. With several
processes, each drives its share of a step's races and samples its share of the groups; a group is never divided.
"""
from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from f1_pipelines.engineer.inference.engineer import Engineer
from f1_pipelines.engineer.profiles import GrpoSettings, Profile
from f1_pipelines.engineer.progress import SILENT, MetricHistory, Reporter, TrainingFailed
from f1_pipelines.engineer.scenario_sampler import ScenarioSampler
from f1_pipelines.engineer.training.callbacks import MetricsCallback
from f1_pipelines.engineer.training.distributed import WorldSizeError, accelerator_on, on_one_device
from f1_pipelines.engineer.training.kl_probes import KlProbes
from f1_pipelines.engineer.training.rejection import rejection_round
from f1_pipelines.engineer.training.resuming import (
    KEPT_CHECKPOINTS,
    last_checkpoint,
    remove_torn_checkpoints,
    restore_finished,
    save_finished,
)
from f1_pipelines.engineer.training.rollout_sampler import RolloutSampler
from f1_pipelines.engineer.training.sft import activation_checkpointing

if TYPE_CHECKING:
    from transformers import PreTrainedModel
    from trl import GRPOConfig, GRPOTrainer

    from f1_pipelines.engineer.prompting.rendering import Rendering

SAVED_EVERY = 10
WARN_ABOVE = {"parse_failures": 0.05, "clipped": 0.01, "frac_reward_zero_std": 0.9, "kl_to_sft": 1.0}
WARN_BELOW = {"entropy": 0.005}
MAX_ZERO_STD = 0.95  # mean share of groups without a difference; above it there was nothing to learn from


def train_grpo(model: PreTrainedModel, rendering: Rendering, sampler: ScenarioSampler, profile: Profile, seed: int,
               folder: Path, device: str = "cpu", reporter: Reporter = SILENT,
               evaluate: Callable[[int, Engineer], float] | None = None) -> MetricHistory:
    """Train an SFT policy in place.

    Args:
        model: The SFT policy; with `profile.lora`, wrapped in a fresh adapter.
        rendering: Prompts and completions of its tokenizer.
        sampler: Makes the races.
        profile: Its `grpo` settings.
        seed: Seed of races, samples and order.
        folder: Folder of this training. Resumes from the latest checkpoint here, if any; a finished training is loaded.
        device: Device of this process: cpu, cuda or cuda:1. With other processes, each does its share of every step.
        reporter: Receives progress, metrics and warnings.
        evaluate: Called in the main process every `SAVED_EVERY` steps with the step and the current engineer; returns
            its score on validation races.

    Returns:
        All metrics by step.

    Raises:
        TrainingFailed: A metric was not finite, or there was nothing to learn from.
        WorldSizeError: So many processes can't share a step.
    """
    finished = restore_finished(model, folder)
    if finished is not None:
        return finished
    accelerator, history = accelerator_on(device), MetricHistory()
    settings = _settings_of_process(profile.grpo, accelerator.num_processes)
    rollouts = RolloutSampler(rendering, sampler, settings, seed, profile.max_new_tokens, profile.generation_batch,
                              slice(accelerator.process_index, None, accelerator.num_processes))
    probes = KlProbes(rendering, sampler)
    config = _config(profile, settings, seed, folder, device, accelerator.num_processes)
    on_one_device(config, device)
    if accelerator.is_main_process:
        remove_torn_checkpoints(folder, config.world_size)
        # No checkpoint is loaded yet, so a resumed run holds the SFT policy here, too.
        probes.remember(model)
        history.add(0, {"kl_to_sft": probes.kl_to_sft(model)})
    rounds = settings.rejection_rounds if last_checkpoint(folder) is None else 0  # a resumed run has had them
    for number in range(1, rounds + 1):
        rejection_round(model, rendering, sampler, profile, seed, number, folder / f"rejection-{number}", device,
                        reporter)

    def own_metrics(step: int) -> dict[str, float]:
        """Metrics of the main process that are computed every `SAVED_EVERY` steps."""
        if step % SAVED_EVERY or not accelerator.is_main_process:
            return {}
        metrics = {"kl_to_sft": probes.kl_to_sft(model)}
        if evaluate is not None:
            metrics["selection_score"] = evaluate(step, Engineer(model, rendering, profile.max_new_tokens,
                                                                 profile.generation_batch))
        return metrics

    _train(model, rendering, config, rollouts, own_metrics, history, reporter)
    zero_std = history.of("frac_reward_zero_std")
    if zero_std and np.mean(zero_std) > MAX_ZERO_STD:
        raise TrainingFailed(f"in {np.mean(zero_std):.0%} of the groups all commands were equal, so there was nothing "
                             "to learn from; raise the temperature or start from an earlier SFT checkpoint")
    if accelerator.is_main_process:
        save_finished(model, folder, history)
    return history


def _train(model: PreTrainedModel, rendering: Rendering, config: GRPOConfig, rollouts: RolloutSampler,
           own_metrics: Callable[[int], dict[str, float]], history: MetricHistory, reporter: Reporter) -> None:
    """Run TRL's trainer from the latest checkpoint, if any."""
    import torch
    from datasets import Dataset
    from transformers import PrinterCallback, TrainerCallback
    from trl import GRPOTrainer

    class RolloutMetrics(TrainerCallback):
        """Adds our metrics to TRL's log; they survive a resume. Warns of values outside their limits."""

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            means = trainer.accelerator.reduce(torch.tensor(
                list(rollouts.metrics.values()), dtype=torch.float64, device=args.device), "mean").tolist()
            _log(trainer, {**dict(zip(rollouts.metrics, means, strict=True)), **own_metrics(state.global_step)})

        def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
            for limits, sign, side in ((WARN_ABOVE, 1, "above"), (WARN_BELOW, -1, "below")):
                for name, limit in limits.items():
                    if logs and logs.get(name) is not None and sign * (logs[name] - limit) > 0:
                        reporter.warn(f"step {state.global_step}: {name} {logs[name]:.3g}, {side} {limit}")

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=FutureWarning)
        warnings.filterwarnings("ignore", message=".*rollout_func.*")
        trainer = GRPOTrainer(
            model=model, reward_funcs=[cast("Any", _advantage)], args=config, processing_class=rendering.tokenizer,
            train_dataset=Dataset.from_list([{"prompt": f"step {k}"} for k in range(config.max_steps)]),
            rollout_func=rollouts, callbacks=[MetricsCallback(history, reporter, every=5), RolloutMetrics()])
        trainer.remove_callback(PrinterCallback)
        trainer.train(resume_from_checkpoint=last_checkpoint(Path(str(config.output_dir)), config.world_size))


def _log(trainer: GRPOTrainer, metrics: dict[str, float]) -> None:
    """Add metrics to the trainer's next log entry. TRL has no public way to do so (2026-12, TRL 1.16)."""
    for name, value in metrics.items():
        trainer._metrics["train"][name].append(value)


def _config(profile: Profile, settings: GrpoSettings, seed: int, folder: Path, device: str,
            processes: int) -> GRPOConfig:
    """TRL's configuration. `settings` are those of one process; a step is one group, centred state by state."""
    from trl import GRPOConfig

    here = settings.states * settings.samples
    return GRPOConfig(
        output_dir=str(folder), max_steps=settings.steps, num_generations=here * processes,
        learning_rate=settings.lr, per_device_train_batch_size=min(settings.batch, here),
        gradient_accumulation_steps=max(here // settings.batch, 1), lr_scheduler_type="constant_with_warmup",
        warmup_steps=5, temperature=settings.temperature, beta=settings.beta, loss_type="dr_grpo", scale_rewards="none",
        entropy_coef=settings.entropy, max_completion_length=profile.max_new_tokens, max_grad_norm=1.0, adam_beta2=0.98,
        use_cpu=device == "cpu", bf16=profile.bf16, seed=seed, data_seed=seed, logging_steps=1,
        save_strategy="steps", save_steps=SAVED_EVERY, save_total_limit=KEPT_CHECKPOINTS,
        report_to="none", disable_tqdm=True,
        dataloader_pin_memory=False, top_k=0, top_p=1.0, ddp_find_unused_parameters=False,
        **activation_checkpointing(device != "cpu"))


def _settings_of_process(settings: GrpoSettings, processes: int) -> GrpoSettings:
    """The settings of one of several processes, each of which does its share of a step."""
    if settings.rejection_rounds and processes > 1:
        raise WorldSizeError(f"rejection rounds need a single process, got {processes}; set rejection_rounds to 0 "
                             "or start one process")
    if settings.states % processes or settings.races < processes:
        raise WorldSizeError(
            f"{settings.states} states and {settings.races} races a step can't be shared by {processes} processes; set "
            f"states to a multiple of {processes} and races to {processes} or more, or start fewer")
    return replace(settings, states=settings.states // processes)


def _advantage(completions: Sequence[Any], advantage: Sequence[float], **_: Any) -> list[float]:
    """TRL's reward function: the advantages that `RolloutSampler` computed."""
    return list(advantage)
