"""Watches a trainer of transformers: keeps its curve, tells progress, stops what is broken."""
from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

from transformers import TrainerCallback

from f1_pipelines.engineer.progress import Curve, Listener, TrainingFailed

if TYPE_CHECKING:
    from transformers import TrainerControl, TrainerState, TrainingArguments

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
        """Start the clock."""
        self._started, self._first = time.monotonic(), state.global_step

    def on_log(self, args: TrainingArguments, state: TrainerState, control: TrainerControl,
               logs: dict[str, Any] | None = None, **_: Any) -> None:
        """Take in a step's numbers."""
        numbers = {name: value for name, value in (logs or {}).items() if name not in ("epoch", "total_flos")}
        self._curve.add(state.global_step, numbers)
        self._listener.numbers(state.global_step, numbers)
        for name in ("loss", "grad_norm", "reward"):
            if not math.isfinite(float(numbers.get(name, 0.0))):
                raise TrainingFailed(f"step {state.global_step}: {name} is {numbers[name]}; lower the learning rate, "
                                     "then resume or start again")
        done = state.global_step - self._first
        if done and (state.global_step % self._every == 0 or state.global_step == state.max_steps):
            spent = time.monotonic() - self._started
            left = spent / done * (state.max_steps - state.global_step)
            shown = ", ".join(f"{name} {numbers[name]:.3g}" for name in ("loss", "reward", "entropy", "kl")
                              if name in numbers)
            speed = state.num_input_tokens_seen / spent if getattr(state, "num_input_tokens_seen", 0) else 0
            rate = f", {speed:.0f} tokens/s" if speed else ""
            self._listener.line(f"step {state.global_step}/{state.max_steps}: {shown}{rate}, {left:.0f} s left")
