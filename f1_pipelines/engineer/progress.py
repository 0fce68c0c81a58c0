"""Progress reports and metrics of a training. Imports neither torch nor transformers."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any


class TrainingFailed(RuntimeError):
    """Training broke or learnt nothing. The message says what happened and what to do."""


class OutOfMemory(TrainingFailed):
    """A model or its batches did not fit into memory. The message says where and what to do."""


_OUT_OF_MEMORY = ("out of memory", "DefaultCPUAllocator", "CUBLAS_STATUS_ALLOC_FAILED")


@contextmanager
def explain_out_of_memory(task: str, device: str, remedy: str) -> Iterator[None]:
    """Turn any library's out-of-memory error in the body into an `OutOfMemory` with a remedy.

    Args:
        task: Name of the task that needs the memory.
        device: Its device.
        remedy: What to make smaller.

    Raises:
        OutOfMemory: Memory ran out in the body.
    """
    try:
        yield
    except (MemoryError, RuntimeError) as error:  # torch raises RuntimeError on the CPU, a subclass of it on CUDA
        message = str(error)
        if not isinstance(error, MemoryError) and not any(phrase in message for phrase in _OUT_OF_MEMORY):
            raise
        reason = message.splitlines()[0][:160] if message else type(error).__name__
        raise OutOfMemory(f"{task} ran out of memory on {device} ({reason}); {remedy}, stop other processes there, "
                          "or use a smaller profile (F1_PROFILE=tiny)") from error


@dataclass
class MetricHistory:
    """All metrics of a training: `points` holds (step, metric, value)."""

    points: list[tuple[int, str, float]] = field(default_factory=list)

    def add(self, step: int, metrics: dict[str, Any]) -> None:
        """Add the numeric metrics of one step; ignore other values."""
        self.points += [(step, name, float(value)) for name, value in metrics.items()
                        if isinstance(value, int | float) and not isinstance(value, bool)]

    @property
    def last_step(self) -> int:
        """The last step with a metric; 0 without any."""
        return max((step for step, _, _ in self.points), default=0)

    def extend(self, later: MetricHistory) -> None:
        """Append a later training, with its steps counted from the last one here."""
        last = self.last_step
        self.points += [(last + step, name, value) for step, name, value in later.points]

    def values(self, metric: str) -> list[float]:
        """Return the values of one metric, by step."""
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
