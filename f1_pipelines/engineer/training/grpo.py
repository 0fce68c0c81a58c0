"""GRPO with TRL's trainer: the model calls races in the simulator and learns from their scores (`rollout_sampler`).

Prompts are those of `Rendering`, so SFT, GRPO, evaluation and serving use the same tokens. Several processes share the
races and states of a step; each state's group stays on one process.
"""
from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from transformers import TrainerCallback

from f1_pipelines.engineer.inference.engineer import Engineer
from f1_pipelines.engineer.profiles import GrpoSettings, Profile
from f1_pipelines.engineer.progress import SILENT, MetricHistory, Reporter, TrainingFailed
from f1_pipelines.engineer.scenario_sampler import ScenarioSampler
from f1_pipelines.engineer.training import resuming
from f1_pipelines.engineer.training.callbacks import MetricsCallback
from f1_pipelines.engineer.training.distributed import WorldSizeError, accelerator_on, on_one_device
from f1_pipelines.engineer.training.kl_probes import KlProbes
from f1_pipelines.engineer.training.rollout_sampler import RolloutSampler
from f1_pipelines.engineer.training.sft import activation_checkpointing

if TYPE_CHECKING:
    from transformers import PreTrainedModel, TrainerControl, TrainerState, TrainingArguments
    from trl import GRPOConfig

    from f1_pipelines.engineer.prompting.rendering import Rendering

SAVED_EVERY = 10  # steps between checkpoints, each with an evaluation
WARN_ABOVE = {"parse_failures": 0.05, "clipped": 0.01, "frac_reward_zero_std": 0.9, "kl_to_sft": 1.0}
WARN_BELOW = {"entropy": 0.005}
MAX_ZERO_STD = 0.95  # share of states with equal completions above which a training fails

Evaluate = Callable[[int, Engineer], float]


def train_grpo(model: PreTrainedModel, rendering: Rendering, sampler: ScenarioSampler, profile: Profile, seed: int,
               folder: Path, device: str = "cpu", reporter: Reporter = SILENT,
               evaluate: Evaluate | None = None) -> MetricHistory:
    """Train the model in place, starting from the SFT policy that it holds.

    Args:
        model: The policy; with `profile.lora`, wrapped in a fresh adapter.
        rendering: Rendering of its tokenizer.
        sampler: Makes the races.
        profile: The profile, for its `grpo` settings.
        seed: Seed of races, samples and order.
        folder: Folder of this training. Resumes from the latest checkpoint here, or returns a finished training.
        device: cpu, cuda or cuda:1 of this process.
        reporter: Receives progress.
        evaluate: Called every `SAVED_EVERY` steps, in the main process, with the step and the current engineer;
            returns its score on the selection races.

    Returns:
        All metrics by step.

    Raises:
        TrainingFailed: A metric was not finite, or the completions at most states were equal.
        WorldSizeError: This number of processes can't share a step.
    """
    finished = resuming.restore_finished(model, folder)
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
        resuming.remove_incomplete_checkpoints(folder, config.world_size)
        # No checkpoint is loaded yet: the model is the SFT policy here, in a resumed run too.
        probes.set_reference(model)
        history.add(0, {"kl_to_sft": probes.kl(model)})

    def measure(step: int) -> dict[str, float]:
        score = {} if evaluate is None else {"selection_score": evaluate(step, Engineer(
            model, rendering, profile.max_new_tokens, profile.generation_batch))}
        return {"kl_to_sft": probes.kl(model), **score}

    step_metrics = StepMetrics(rollouts, measure if accelerator.is_main_process else None, reporter)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=FutureWarning)
        warnings.filterwarnings("ignore", message=".*rollout_func.*")
        trainer = _trainer(model, rendering, config, rollouts,
                           [step_metrics, MetricsCallback(history, reporter, every=5)])
        trainer.train(resume_from_checkpoint=resuming.last_checkpoint(folder, config.world_size))
    zero_std = history.values("frac_reward_zero_std")
    if zero_std and np.mean(zero_std) > MAX_ZERO_STD:
        raise TrainingFailed(f"at {np.mean(zero_std):.0%} of the states all completions were equal, so there was "
                             "nothing to learn from; raise the temperature or use an earlier SFT checkpoint")
    if accelerator.is_main_process:
        resuming.save_finished(model, folder, history)
    return history


@dataclass
class StepMetrics(TrainerCallback):
    """Adds our metrics of each step to the trainer's log, which its checkpoints hold, and warns about bad ones.

    TRL logs a `frac_reward_zero_std` of its own, over the whole batch as one group; ours replaces it.

    Attributes:
        rollouts: The sampler, whose metrics are averaged over processes.
        measure: In the main process, called every `SAVED_EVERY` steps with the step; returns more metrics.
        reporter: Receives warnings.
    """

    rollouts: RolloutSampler
    measure: Callable[[int], dict[str, float]] | None
    reporter: Reporter
    _metrics: dict[str, float | None] = field(default_factory=dict)  # of the current step

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Average the metrics of the step over processes."""
        import torch
        from accelerate.utils import reduce

        local = self.rollouts.metrics
        means = reduce(torch.tensor(list(local.values()), dtype=torch.float64, device=args.device), "mean").tolist()
        metrics = dict(zip(local, means, strict=True))
        if state.global_step % SAVED_EVERY == 0 and self.measure is not None:
            metrics |= self.measure(state.global_step)
        self._metrics = {name: None if math.isnan(value) else value for name, value in metrics.items()}

    def on_log(self, args: TrainingArguments, state: TrainerState, control: TrainerControl,
               logs: dict[str, Any] | None = None, **_: Any) -> None:
        """Add the step's metrics to the trainer's log."""
        logs = logs if logs is not None else {}
        logs.update(self._metrics)
        state.log_history[-1] |= self._metrics  # type: ignore[arg-type]  # the trainer itself logs None for NaN
        self._metrics = {}
        for limits, sign, side in ((WARN_ABOVE, 1, "above"), (WARN_BELOW, -1, "below")):
            for name, limit in limits.items():
                if logs.get(name) is not None and sign * (logs[name] - limit) > 0:
                    self.reporter.warn(f"step {state.global_step}: {name} {logs[name]:.3g}, {side} {limit}")


def _advantage(completions: Sequence[Any], advantage: Sequence[float], **_: Any) -> list[float | None]:
    """TRL's reward function: the advantages of `RolloutSampler`, because to TRL a step is one group.

    TRL logs their mean and deviation under this function's name (`rewards/_advantage/mean`), which is stored.
    """
    return list(advantage)


def _trainer(model: PreTrainedModel, rendering: Rendering, config: GRPOConfig, rollouts: RolloutSampler,
             callbacks: list[TrainerCallback]) -> Any:
    from datasets import Dataset
    from transformers import PrinterCallback
    from trl import GRPOTrainer

    steps = Dataset.from_list([{"prompt": f"step {k}"} for k in range(config.max_steps)])
    trainer = GRPOTrainer(model=model, reward_funcs=[_advantage], args=config, processing_class=rendering.tokenizer,
                          train_dataset=steps, rollout_func=rollouts, callbacks=callbacks)
    trainer.remove_callback(PrinterCallback)
    return trainer


def _config(profile: Profile, settings: GrpoSettings, seed: int, folder: Path, device: str,
            processes: int) -> GRPOConfig:
    """TRL's settings, from `settings` of one process. To TRL a step is one group, already centred state by state."""
    from trl import GRPOConfig

    completions = settings.states * settings.num_generations
    return GRPOConfig(
        output_dir=str(folder), max_steps=settings.steps, num_generations=completions * processes,
        learning_rate=settings.learning_rate, per_device_train_batch_size=min(settings.batch_size, completions),
        gradient_accumulation_steps=max(completions // settings.batch_size, 1),
        lr_scheduler_type="constant_with_warmup", warmup_steps=5, temperature=settings.temperature,
        beta=settings.beta, loss_type="dr_grpo", scale_rewards="none", entropy_coef=settings.entropy_coef,
        max_completion_length=profile.max_new_tokens, max_grad_norm=1.0, adam_beta2=0.98,
        use_cpu=device == "cpu", bf16=profile.bf16, seed=seed, data_seed=seed, logging_steps=1,
        save_strategy="steps", save_steps=SAVED_EVERY, save_total_limit=resuming.KEPT_CHECKPOINTS,
        report_to="none", disable_tqdm=True,
        dataloader_pin_memory=False, top_k=0, top_p=1.0, ddp_find_unused_parameters=False,
        **activation_checkpointing(device != "cpu"))


def _settings_of_process(settings: GrpoSettings, processes: int) -> GrpoSettings:
    """Return the settings of each of `processes` processes that share a step."""
    if settings.states % processes or settings.races < processes:
        raise WorldSizeError(
            f"{settings.states} states and {settings.races} races a step can't be shared by {processes} processes; "
            f"set states to a multiple of {processes} and races to {processes} or more, or start fewer")
    return replace(settings, states=settings.states // processes)
