"""Watches a trainer of transformers: keeps its curve, tells progress, stops what is broken."""
from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

from transformers import TrainerCallback

from f1_pipelines.engineer.progress import MetricHistory, Reporter, TrainingFailed

if TYPE_CHECKING:
    from transformers import TrainerControl, TrainerState, TrainingArguments

_NO_METRICS = ("epoch", "total_flos", "step")
LOGGED_EVERY = 25  # steps between two lines of progress


class MetricsCallback(TrainerCallback):
    """Keeps the curve, tells progress, and stops a run whose numbers are not finite."""

    def __init__(self, curve: MetricHistory, reporter: Reporter, every: int = LOGGED_EVERY) -> None:
        """
        Args:
            curve: Filled with everything that the trainer logs.
            reporter: Receives progress and metrics.
            every: Steps between two lines.
        """
        self._curve, self._reporter, self._every = curve, reporter, every

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Start the clock, and take over what a resumed run logged before its checkpoint."""
        self._started, self._first, self._read = time.monotonic(), state.global_step, state.num_input_tokens_seen
        for logs in state.log_history:
            numbers = _metrics_of(logs)
            self._curve.add(int(logs["step"]), numbers)
            self._reporter.numbers(int(logs["step"]), numbers)

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Leave out the checkpoint of the last step: what is over is kept otherwise (`resuming`)."""
        if state.global_step >= state.max_steps:
            control.should_save = False

    def on_log(self, args: TrainingArguments, state: TrainerState, control: TrainerControl,
               logs: dict[str, Any] | None = None, **_: Any) -> None:
        """Take in a step's numbers, and add ours to the trainer's log, which its checkpoints hold."""
        numbers = _metrics_of(logs or {})
        spent, read = time.monotonic() - self._started, state.num_input_tokens_seen - self._read
        if read:
            numbers["tokens_per_s"] = read / spent
        if "train_loss" in numbers:  # the trainer's own is of the steps since it resumed
            numbers["train_loss"] = _mean_loss(state.log_history) or numbers["train_loss"]
        if state.log_history:
            state.log_history[-1].update(numbers)
        self._curve.add(state.global_step, numbers)
        self._reporter.numbers(state.global_step, numbers)
        for name in ("loss", "grad_norm", "reward"):
            value = numbers.get(name, 0.0)
            if value is None or not math.isfinite(value):  # trl says None where nothing was a number
                raise TrainingFailed(f"step {state.global_step}: {name} is {value}; lower the learning rate, "
                                     "then resume or start again")
        done = state.global_step - self._first
        if done and (state.global_step % self._every == 0 or state.global_step == state.max_steps):
            left = spent / done * (state.max_steps - state.global_step)
            shown = ", ".join(f"{name} {numbers[name]:.3g}" for name in ("loss", "score", "entropy", "kl")
                              if name in numbers)
            rate = f", {read / spent:.0f} tokens/s" if read else ""
            self._reporter.line(f"step {state.global_step}/{state.max_steps}: {shown}{rate}, {left:.0f} s left")


def _metrics_of(logs: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in logs.items() if name not in _NO_METRICS}


def _mean_loss(history: list[dict[str, Any]]) -> float | None:
    """Mean over all steps that were logged, None before any; each entry is the mean since the one before."""
    entries = [(entry["step"], entry["loss"]) for entry in history if "loss" in entry]
    if not entries:
        return None
    steps = [step for step, _ in entries]
    weights = [step - before for step, before in zip(steps, [0, *steps], strict=False)]
    return sum(weight * loss for weight, (_, loss) in zip(weights, entries, strict=True)) / steps[-1]
