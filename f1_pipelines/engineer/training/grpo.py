"""GRPO with TRL's trainer: commands sampled in simulated races (`rollout_sampler`), rewarded by the race's score.

Prompts are those of `Rendering`, so SFT, practice, examination and service read the same tokens. Of several processes
each plays its share of a step's races and tries its share of the moments, each moment whole.
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
from f1_pipelines.engineer.seed_ranges import KL_PROBES_START, TRAINED_FAMILIES, race_keys
from f1_pipelines.engineer.training.callbacks import MetricsCallback
from f1_pipelines.engineer.training.counterfactual_returns import decision_states
from f1_pipelines.engineer.training.distributed import WorldSizeError, accelerator_on, on_one_device
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
    from trl import GRPOConfig

    from f1_pipelines.engineer.prompting.rendering import Rendering

SAVED_EVERY = 10
WARN_ABOVE = {"parse_failures": 0.05, "clipped": 0.01, "frac_reward_zero_std": 0.9, "kl_to_sft": 1.0}
WARN_BELOW = {"entropy": 0.005}
MAX_ZERO_STD = 0.95  # of moments without a difference: nothing can be learnt


def train_grpo(model: PreTrainedModel, rendering: Rendering, sampler: ScenarioSampler, profile: Profile, seed: int,
               folder: Path, device: str = "cpu", reporter: Reporter = SILENT,
               examine: Callable[[int, Engineer], float] | None = None) -> MetricHistory:
    """Train the model in place, from the SFT policy that it is.

    Args:
        model: With `profile.lora`, wrapped in a fresh adapter.
        rendering: Of its tokenizer.
        sampler: What the races are made of.
        profile: Its `grpo` settings.
        seed: Of races, draws and order.
        folder: Of this training. Resumes from the newest checkpoint here, and takes over a training that is over.
        device: cpu, cuda or cuda:1, of this process; with others, each does its share of every step.
        reporter: Takes progress.
        examine: Called every `SAVED_EVERY` steps with the step and the engineer as it is; says its score. Of several
            processes, in the main one.

    Raises:
        TrainingFailed: Numbers were not finite, or there was nothing to learn from.
        WrongCrew: So many processes can't share a step.
    """
    import torch
    from datasets import Dataset
    from transformers import PrinterCallback, TrainerCallback
    from trl import GRPOTrainer

    over = restore_finished(model, folder)
    if over is not None:
        return over
    accelerator, curve = accelerator_on(device), MetricHistory()
    settings = _settings_of_process(profile.grpo, accelerator.num_processes)
    rollouts = RolloutSampler(rendering, sampler, settings, seed, profile.max_new_tokens, profile.generation_batch,
                              slice(accelerator.process_index, None, accelerator.num_processes))
    probes = _Probes(rendering, sampler, seed)

    class Examine(TrainerCallback):
        """Puts numbers of ours into trl's log, which a run that is gone on with keeps: those of the practice, drift
        from the SFT policy, and the examination."""

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            means = trainer.accelerator.reduce(torch.tensor(
                list(rollouts.metrics.values()), dtype=torch.float64, device=args.device), "mean").tolist()
            numbers = dict(zip(rollouts.metrics, means, strict=True))
            if state.global_step % SAVED_EVERY == 0 and accelerator.is_main_process:
                numbers["kl_to_sft"] = probes.drift(model)
                if examine is not None:
                    numbers["selection_score"] = examine(state.global_step, Engineer(
                        model, rendering, profile.max_new_tokens, profile.generation_batch))
            for name, value in numbers.items():
                trainer._metrics["train"][name].append(value)

        def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
            for limits, sign, where in ((WARN_ABOVE, 1, "above"), (WARN_BELOW, -1, "below")):
                for name, limit in limits.items():
                    if logs and logs.get(name) is not None and sign * (logs[name] - limit) > 0:
                        reporter.warn(f"step {state.global_step}: {name} {logs[name]:.3g}, {where} {limit}")

    config = _config(profile, settings, seed, folder, device, accelerator.num_processes)
    on_one_device(config, device)
    if accelerator.is_main_process:
        remove_torn_checkpoints(folder, config.world_size)
        # Nothing of a checkpoint is loaded yet: here a resumed run, too, holds the SFT policy.
        probes.remember(model)
        curve.add(0, {"kl_to_sft": probes.drift(model)})
    rounds = settings.rejection_rounds if last_checkpoint(folder) is None else 0  # a resumed run has had them
    for number in range(1, rounds + 1):
        rejection_round(model, rendering, sampler, profile, seed, number, folder / f"rejection-{number}", device,
                        reporter)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=FutureWarning)
        warnings.filterwarnings("ignore", message=".*rollout_func.*")
        trainer = GRPOTrainer(
            model=model, reward_funcs=[cast("Any", _advantage)], args=config, processing_class=rendering.tokenizer,
            train_dataset=Dataset.from_list([{"prompt": f"step {k}"} for k in range(settings.steps)]),
            rollout_func=rollouts, callbacks=[MetricsCallback(curve, reporter, every=5), Examine()])
        trainer.remove_callback(PrinterCallback)
        trainer.train(resume_from_checkpoint=last_checkpoint(folder, config.world_size))
    dead = curve.of("frac_reward_zero_std")
    if dead and np.mean(dead) > MAX_ZERO_STD:
        raise TrainingFailed(f"in {np.mean(dead):.0%} of the moments all calls were alike, so there was nothing to "
                             "learn from; raise the temperature or take an earlier SFT checkpoint")
    if accelerator.is_main_process:
        save_finished(model, folder, curve)
    return curve


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
    """What each of the processes does in a step."""
    if settings.rejection_rounds and processes > 1:
        raise WorldSizeError(f"rejection rounds need a single process, got {processes}; set rejection_rounds to 0 "
                             "or start one process")
    if settings.states % processes or settings.races < processes:
        raise WorldSizeError(
            f"{settings.states} states and {settings.races} races a step can't be shared by {processes} processes; set "
            f"states to a multiple of {processes} and races to {processes} or more, or start fewer")
    return replace(settings, states=settings.states // processes)


def _advantage(completions: Sequence[Any], advantage: Sequence[float], **_: Any) -> list[float]:
    """trl's reward function: what `RolloutSampler` found."""
    return list(advantage)


class _Probes:
    """Prompts on which the policy is compared with what it was before."""

    COUNT = 48

    def __init__(self, rendering: Rendering, sampler: ScenarioSampler, seed: int) -> None:
        self._rendering, self._sampler, self._seed = rendering, sampler, seed

    def remember(self, model: PreTrainedModel) -> None:
        """What is compared with: the policy as it is, without its adapter if it has one."""
        from contextlib import nullcontext

        keys = race_keys("train", -(-self.COUNT // len(TRAINED_FAMILIES)), start=KL_PROBES_START)[:self.COUNT]
        engineer = Engineer(model, self._rendering, 40)
        moments = decision_states([self._sampler.scenario(*key) for key in keys], engineer.commands)
        self._prompts = [race[len(race) // 2].seen.text for race in moments]
        with cast("Any", model).disable_adapter() if hasattr(model, "disable_adapter") else nullcontext():
            self._before = self._log_probabilities(model)

    def drift(self, model: PreTrainedModel) -> float:
        """Mean KL of the first token of a call to that of the policy that is remembered [nats]."""
        import torch

        now = self._log_probabilities(model)
        return float((now.exp() * (now - self._before)).sum(dim=1).mean().clamp(min=0.0)) if torch.isfinite(
            now).all() else float("nan")

    def _log_probabilities(self, model: PreTrainedModel) -> Any:
        import torch

        training, rows = model.training, []
        model.eval()
        with torch.inference_mode():
            for text in self._prompts:
                ids = torch.tensor([self._rendering.prompt_ids(text)], device=model.device)
                rows.append(model(input_ids=ids).logits[0, -1].float().log_softmax(dim=0).cpu())
        model.train(training)
        return torch.stack(rows)
