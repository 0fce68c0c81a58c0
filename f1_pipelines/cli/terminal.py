"""What a terminal can show: whether a line may be written over, short times, and a line for work that takes seconds."""
from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO


def interactive(stream: TextIO) -> bool:
    """Whether lines on `stream` may be written over and colored.

    True on a terminal, except where the environment asks for plain text: TERM=dumb, NO_COLOR or CI.
    """
    plain = (os.environ.get("TERM", "") in ("", "dumb", "unknown") or bool(os.environ.get("NO_COLOR"))
             or os.environ.get("CI", "").lower() not in ("", "0", "false"))
    return stream.isatty() and not plain


def clock(seconds: float) -> str:
    """A duration as minutes and seconds, `3:07`, or with hours, `1:03:07`."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def duration(seconds: float) -> str:
    """A duration with its unit: `3.1 s` below a minute, then `3:07`."""
    return f"{seconds:.1f} s" if seconds < 59.95 else clock(round(seconds))


@contextmanager
def counting(what: str, unit: str) -> Iterator[Callable[[int, int], None]]:
    """Show on stderr how far a piece of work is, on one line that disappears at the end.

    Prints nothing where stderr is no terminal, so that logs and pipes stay clean.

    Args:
        what: What goes on.
        unit: What is counted, in the plural.

    Yields:
        To be called with what is done and how much there is in all.
    """
    if not interactive(sys.stderr):
        yield lambda done, total: None
        return
    from rich.console import Console

    start = time.monotonic()
    with Console(stderr=True, highlight=False).status(what) as status:
        def update(done: int, total: int) -> None:
            spent = time.monotonic() - start
            left = f", {clock(spent / done * (total - done))} left" if done and spent > 5 else ""
            status.update(f"{what}: {done:,} of {total:,} {unit}{left}")

        yield update
