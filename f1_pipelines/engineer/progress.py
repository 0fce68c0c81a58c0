"""What a training run reports while it runs, and the metrics it leaves. No torch, no transformers."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any


class TrainingFailed(RuntimeError):
    """Training broke or learnt nothing. One sentence: what happened, what to do."""


class OutOfMemory(TrainingFailed):
    """A model or its batches did not fit. One sentence: what ran out, what to do."""


_OUT_OF_MEMORY = ("out of memory", "DefaultCPUAllocator", "CUBLAS_STATUS_ALLOC_FAILED")


@contextmanager
def explain_out_of_memory(task: str, device: str, remedy: str) -> Iterator[None]:
    """Turn every library's out-of-memory error in the body into one sentence.

    Args:
        task: What needed the memory.
        device: Where it ran.
        remedy: What to make smaller.

    Raises:
        OutOfMemory: Memory ran out in the body.
    """
    try:
        yield
    except (MemoryError, RuntimeError) as problem:  # torch raises RuntimeError on the CPU, a subclass of it on CUDA
        message = str(problem)
        if not isinstance(problem, MemoryError) and not any(words in message for words in _OUT_OF_MEMORY):
            raise
        reason = message.splitlines()[0][:160] if message else type(problem).__name__
        raise OutOfMemory(f"{task} ran out of memory on {device} ({reason}); {remedy}, stop what else runs there, or "
                          "take a smaller profile (F1_PROFILE=tiny)") from problem


@dataclass
class MetricHistory:
    """All metrics of a training: `points` holds (step, metric, value)."""

    points: list[tuple[int, str, float]] = field(default_factory=list)

    def add(self, step: int, metrics: dict[str, Any]) -> None:
        """Add the metrics of one step; values that are no numbers are left out."""
        self.points += [(step, name, float(value)) for name, value in metrics.items()
                        if isinstance(value, int | float) and not isinstance(value, bool)]

    @property
    def last_step(self) -> int:
        """The last step with a metric, 0 without any."""
        return max((step for step, _, _ in self.points), default=0)

    def extend(self, later: MetricHistory) -> None:
        """Append a later training; its steps are counted on from the last one here."""
        last = self.last_step
        self.points += [(last + step, name, value) for step, name, value in later.points]

    def values(self, metric: str) -> list[float]:
        """The values of one metric, step by step."""
        return [value for _, name, value in self.points if name == metric]


def _ignore(*_: Any) -> None:
    pass


@dataclass(frozen=True)
class Reporter:
    """Callbacks for progress: `info` takes a line of text, `metrics` a step and its values, `warn` a warning."""

    info: Callable[[str], None] = _ignore
    metrics: Callable[[int, dict[str, Any]], None] = _ignore
    warn: Callable[[str], None] = _ignore


SILENT = Reporter()
