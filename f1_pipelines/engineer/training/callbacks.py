"""Callback of transformers' trainer: collects metrics, reports progress, stops a broken training."""
from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

from transformers import TrainerCallback

from f1_pipelines.engineer.progress import MetricHistory, Reporter, TrainingFailed

if TYPE_CHECKING:
    from transformers import TrainerControl, TrainerState, TrainingArguments

_NOT_METRICS = ("epoch", "total_flos", "step")
LOGGED_EVERY = 25  # steps between progress lines


class MetricsCallback(TrainerCallback):
    """Fills a metric history, reports progress, and fails a training whose metrics are not finite."""

    def __init__(self, history: MetricHistory, reporter: Reporter, every: int = LOGGED_EVERY) -> None:
        """
        Args:
            history: Receives all metrics that the trainer logs.
            reporter: Receives the same metrics, and progress lines.
            every: Steps between progress lines.
        """
        self._history, self._reporter, self._every = history, reporter, every

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Start the clock, and report the metrics that a resumed training logged before its checkpoint."""
        self._started, self._first_step = time.monotonic(), state.global_step
        self._first_token = state.num_input_tokens_seen
        for logs in state.log_history:
            metrics, step = _metrics_of(logs), int(logs["step"])
            self._history.add(step, metrics)
            self._reporter.metrics(step, metrics)

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Skip the checkpoint of the last step: finished trainings are stored by `resuming`."""
        if state.global_step >= state.max_steps:
            control.should_save = False

    def on_log(self, args: TrainingArguments, state: TrainerState, control: TrainerControl,
               logs: dict[str, Any] | None = None, **_: Any) -> None:
        """Report a step's metrics, and add ours to the trainer's log, which its checkpoints hold."""
        metrics = _metrics_of(logs or {})
        elapsed_s, tokens = time.monotonic() - self._started, state.num_input_tokens_seen - self._first_token
        if tokens:
            metrics["tokens_per_s"] = tokens / elapsed_s
        if "train_loss" in metrics:  # the trainer's own covers only the steps since it resumed
            metrics["train_loss"] = _mean_loss(state.log_history) or metrics["train_loss"]
        if state.log_history:
            state.log_history[-1].update(metrics)
        self._history.add(state.global_step, metrics)
        self._reporter.metrics(state.global_step, metrics)
        for name in ("loss", "grad_norm", "reward"):
            value = metrics.get(name, 0.0)
            if value is None or not math.isfinite(value):  # trl logs None for NaN
                raise TrainingFailed(f"step {state.global_step}: {name} is {value}; lower the learning rate, "
                                     "then resume or start again")
        steps = state.global_step - self._first_step
        if steps and (state.global_step % self._every == 0 or state.global_step == state.max_steps):
            remaining_s = elapsed_s / steps * (state.max_steps - state.global_step)
            values = ", ".join(f"{name} {metrics[name]:.3g}" for name in ("loss", "score", "entropy", "kl")
                               if name in metrics)
            rate = f", {tokens / elapsed_s:.0f} tokens/s" if tokens else ""
            self._reporter.info(f"step {state.global_step}/{state.max_steps}: {values}{rate}, {remaining_s:.0f} s left")


def _metrics_of(logs: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in logs.items() if name not in _NOT_METRICS}


def _mean_loss(log_history: list[dict[str, Any]]) -> float | None:
    """Mean loss over all logged steps, None without any. A logged loss is the mean since the previous one."""
    entries = [(int(entry["step"]), float(entry["loss"])) for entry in log_history if "loss" in entry]
    if not entries:
        return None
    steps = [step for step, _ in entries]
    weights = [step - previous for step, previous in zip(steps, [0, *steps], strict=False)]
    return sum(weight * loss for weight, (_, loss) in zip(weights, entries, strict=True)) / steps[-1]
