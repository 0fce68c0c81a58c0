"""What a training run tells while it runs, and what it leaves. No torch, no transformers."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any


class TrainingFailed(RuntimeError):
    """Training went wrong or learnt nothing. One sentence: what was seen, what to do."""


class OutOfMemory(TrainingFailed):
    """A model or its batches did not fit. One sentence: what ran out, what to do."""


@contextmanager
def memory_for(what: str, device: str, remedy: str) -> Iterator[None]:
    """Turns every library's way of saying that memory ran out into one sentence.

    Args:
        what: Who wanted it.
        device: Where.
        remedy: What to make smaller.

    Raises:
        OutOfMemory: Memory ran out in the body.
    """
    try:
        yield
    except (MemoryError, RuntimeError) as problem:  # torch's own error is a RuntimeError; of the CPU it has none
        message = str(problem)
        if not isinstance(problem, MemoryError) and not any(words in message for words in _OUT_OF_MEMORY):
            raise
        wanted = message.splitlines()[0][:160] if message else type(problem).__name__
        raise OutOfMemory(f"{what} ran out of memory on {device} ({wanted}); {remedy}, stop what else runs there, or "
                          "take a smaller profile (F1_PROFILE=tiny)") from problem


_OUT_OF_MEMORY = ("out of memory", "DefaultCPUAllocator", "CUBLAS_STATUS_ALLOC_FAILED")


@dataclass
class MetricHistory:
    """All that was measured, by step."""

    points: list[tuple[int, str, float]] = field(default_factory=list)

    def add(self, step: int, values: dict[str, Any]) -> None:
        """Take in the numbers of one step."""
        self.points += [(step, name, float(value)) for name, value in values.items()
                        if isinstance(value, int | float) and not isinstance(value, bool)]

    @property
    def last_step(self) -> int:
        """The last one measured, 0 before any."""
        return max((step for step, _, _ in self.points), default=0)

    def append(self, later: MetricHistory) -> None:
        """Put a later training behind this one: its steps count on."""
        last = self.last_step
        self.points += [(last + step, name, value) for step, name, value in later.points]

    def of(self, metric: str) -> list[float]:
        """One metric, step by step."""
        return [value for _, name, value in self.points if name == metric]


def _ignore(*_: Any) -> None:
    pass


@dataclass(frozen=True)
class Reporter:
    """Who is told while a training runs: `line` in words, `numbers` with the step and what was measured in it, `warn`
    of what looks wrong."""

    line: Callable[[str], None] = _ignore
    numbers: Callable[[int, dict[str, Any]], None] = _ignore
    warn: Callable[[str], None] = _ignore


SILENT = Reporter()
