"""What a training run tells while it runs, and when it must stop."""
from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from transformers import TrainerCallback

if TYPE_CHECKING:
    from transformers import TrainerControl, TrainerState, TrainingArguments

LOGGED_EVERY = 25  # steps between two lines of progress


class TrainingFailed(RuntimeError):
    """Training went wrong or learnt nothing. One sentence: what was seen, what to do."""


@dataclass
class Curve:
    """All that was measured, by step."""

    points: list[tuple[int, str, float]] = field(default_factory=list)

    def add(self, step: int, values: dict[str, Any]) -> None:
        """Take in the numbers of one step."""
        self.points += [(step, name, float(value)) for name, value in values.items()
                        if isinstance(value, int | float) and not isinstance(value, bool)]

    def of(self, metric: str) -> list[float]:
        """One metric, step by step."""
        return [value for _, name, value in self.points if name == metric]


class Watch(TrainerCallback):
    """Keeps the curve, tells progress, and stops a run whose numbers are not finite."""

    def __init__(self, curve: Curve, tell: Callable[[str], None], every: int = LOGGED_EVERY) -> None:
        """
        Args:
            curve: Filled with everything that the trainer logs.
            tell: Takes a line of progress.
            every: Steps between two lines.
        """
        self._curve, self._tell, self._every = curve, tell, every

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Start the clock."""
        self._started, self._first = time.monotonic(), state.global_step

    def on_log(self, args: TrainingArguments, state: TrainerState, control: TrainerControl,
               logs: dict[str, Any] | None = None, **_: Any) -> None:
        """Take in a step's numbers."""
        numbers = {name: value for name, value in (logs or {}).items() if name not in ("epoch", "total_flos")}
        self._curve.add(state.global_step, numbers)
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
            self._tell(f"step {state.global_step}/{state.max_steps}: {shown}{rate}, {left:.0f} s left")
