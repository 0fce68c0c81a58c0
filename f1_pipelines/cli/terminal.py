"""Terminal output: detection of interactive terminals, formatting of durations, a progress line."""
from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO


def interactive(stream: TextIO) -> bool:
    """Whether lines on `stream` may be overwritten and colored.

    True on a terminal, unless the environment asks for plain text: TERM=dumb, NO_COLOR or CI.
    """
    plain = (os.environ.get("TERM", "") in ("", "dumb", "unknown") or bool(os.environ.get("NO_COLOR"))
             or os.environ.get("CI", "").lower() not in ("", "0", "false"))
    return stream.isatty() and not plain


def clock(seconds: float) -> str:
    """Format a duration as minutes and seconds, `3:07`, or with hours, `1:03:07`."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def duration(seconds: float) -> str:
    """Format a duration with its unit: `3.1 s` below a minute, then `3:07`."""
    return f"{seconds:.1f} s" if seconds < 59.95 else clock(round(seconds))


@contextmanager
def counting(task: str, unit: str) -> Iterator[Callable[[int, int], None]]:
    """Show progress on stderr, on one line that disappears at the end.

    Prints nothing if stderr is not a terminal, to keep logs and pipes clean.

    Args:
        task: Description of the work.
        unit: Counted items, in the plural.

    Yields:
        Function to call with the number of items done and the total.
    """
    if not interactive(sys.stderr):
        yield lambda done, total: None
        return
    from rich.console import Console

    start = time.monotonic()
    with Console(stderr=True, highlight=False).status(task) as status:
        def update(done: int, total: int) -> None:
            elapsed = time.monotonic() - start
            left = f", {clock(elapsed / done * (total - done))} left" if done and elapsed > 5 else ""
            status.update(f"{task}: {done:,} of {total:,} {unit}{left}")

        yield update
