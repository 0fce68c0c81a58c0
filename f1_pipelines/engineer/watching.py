"""Watches a trainer of transformers: keeps its curve, tells progress, stops what is broken."""
from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

from transformers import TrainerCallback

from f1_pipelines.engineer.progress import Curve, Listener, TrainingFailed

if TYPE_CHECKING:
    from transformers import TrainerControl, TrainerState, TrainingArguments

_NO_METRICS = ("epoch", "total_flos", "step")
LOGGED_EVERY = 25  # steps between two lines of progress


class Watch(TrainerCallback):
    """Keeps the curve, tells progress, and stops a run whose numbers are not finite."""

    def __init__(self, curve: Curve, listener: Listener, every: int = LOGGED_EVERY) -> None:
        """
        Args:
            curve: Filled with everything that the trainer logs.
            listener: Told as it goes.
            every: Steps between two lines.
        """
        self._curve, self._listener, self._every = curve, listener, every

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Start the clock; of a run that is gone on with, take in what it logged before."""
        self._started, self._first, self._read = time.monotonic(), state.global_step, state.num_input_tokens_seen
        for logs in state.log_history:
            self._curve.add(logs["step"], {name: value for name, value in logs.items() if name not in _NO_METRICS})

    def on_log(self, args: TrainingArguments, state: TrainerState, control: TrainerControl,
               logs: dict[str, Any] | None = None, **_: Any) -> None:
        """Take in a step's numbers."""
        numbers = {name: value for name, value in (logs or {}).items() if name not in _NO_METRICS}
        spent, read = time.monotonic() - self._started, state.num_input_tokens_seen - self._read
        if read:
            numbers["tokens_per_s"] = read / spent
        self._curve.add(state.global_step, numbers)
        self._listener.numbers(state.global_step, numbers)
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
            self._listener.line(f"step {state.global_step}/{state.max_steps}: {shown}{rate}, {left:.0f} s left")
