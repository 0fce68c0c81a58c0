"""Progress of the demo: one line per asset, and on a terminal live lines for running steps."""
from __future__ import annotations

import sys
import threading
import time
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from f1_pipelines.cli.demo.figures import figure
from f1_pipelines.cli.terminal import clock, duration, interactive
from f1_pipelines.runs.events import CheckPassed, Failed, Finished, Message, Started, Update, Warned

if TYPE_CHECKING:
    from rich.live import Live
    from rich.spinner import Spinner
    from rich.table import Table

MESSAGE_EVERY_S = 30.0  # between two messages of running assets without a terminal [s]
_STARTING = "starting Dagster"


@dataclass(frozen=True)
class _Running:
    """One live line."""

    name: str
    since: float
    message: str = ""


class Progress:
    """Prints the progress of runs. Thread-safe.

    Args:
        assets: Names of all assets to be materialized.
        verbose: Also print Dagster's own lines, and show no live lines.
    """

    def __init__(self, assets: Sequence[str], verbose: bool = False) -> None:
        self._assets, self.verbose = frozenset(assets), verbose
        self._width = max(map(len, assets), default=0)
        self._lock, self._start = threading.RLock(), time.monotonic()
        self._next_message = self._start + MESSAGE_EVERY_S
        # Replaced, never mutated: the drawing thread reads it without this lock, because it holds rich's.
        self._running: dict[tuple[Hashable, str], _Running] = {}
        self._live: Live | None = None
        self._spinner: Spinner | None = None
        self.done, self.checks_passed, self.warnings = 0, 0, 0

    def __enter__(self) -> Progress:
        if not self.verbose and interactive(sys.stdout):
            from rich.console import Console
            from rich.live import Live
            from rich.spinner import Spinner

            self._spinner = Spinner("dots")
            self._live = Live(get_renderable=self._drawn, console=Console(highlight=False), transient=True,
                              refresh_per_second=5, redirect_stderr=interactive(sys.stderr))
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._live.stop()
            self._live = None

    @property
    def elapsed_s(self) -> float:
        """Time since the start [s]."""
        return time.monotonic() - self._start

    def say(self, text: str, error: bool = False) -> None:
        """Print text above the live lines; on stderr if `error`."""
        with self._lock:
            # If one terminal shows both streams, write through rich, or the live lines break.
            if self._live and not (error and not interactive(sys.stderr)):
                self._live.console.print(text, markup=False, soft_wrap=True)
            else:
                click.echo(text, err=error)

    def begin(self, run: Hashable, n_assets: int) -> None:
        """Show that a process starts; its first step takes seconds."""
        with self._lock:
            self._set(run, "", _Running(_STARTING, time.monotonic(),
                                        f"{n_assets} assets" if n_assets > 1 else "1 asset"))

    def end(self, run: Hashable) -> None:
        """Remove the live lines of a process that ended."""
        with self._lock:
            self._running = {key: line for key, line in self._running.items() if key[0] != run}

    def take(self, run: Hashable, update: Update) -> None:
        """Show one update of a run."""
        with self._lock:
            match update:
                case Started(step):
                    self._unset(run, "")
                    asset = step in self._assets
                    self._set(run, step, _Running(step if asset else "check", time.monotonic(), "" if asset else step))
                case Finished(step, seconds, metadata):
                    self._unset(run, step)
                    if step in self._assets:
                        self.done += 1
                        self.say(self._line(step, duration(seconds), figure(step, metadata), self._count()))
                case Failed(step):
                    self._unset(run, step)
                    if step in self._assets:
                        self.say(self._line(step, "", "FAILED: the reason follows when this run ends"))
                case Message(step, text):
                    self._message(run, step, text)
                case Warned(what, text):
                    self.warnings += 1
                    self.say(self._line(what, "", f"WARNING: {text}"))
                case CheckPassed():
                    self.checks_passed += 1

    def _message(self, run: Hashable, step: str, text: str) -> None:
        now = time.monotonic()
        if line := self._running.get((run, step)):
            self._set(run, step, _Running(line.name, line.since, text))
        if not self._live and not self.verbose and now >= self._next_message:
            self._next_message = now + MESSAGE_EVERY_S
            self.say(self._line(step, "...", text))

    def _line(self, name: str, time_taken: str, text: str, count: str | None = None) -> str:
        count = " " * len(self._count()) if count is None else count
        name = f"{name:<{self._width}}  {time_taken:>6}" if time_taken else name
        return f"{count} {clock(self.elapsed_s):>5}  {name}   {text}".rstrip()

    def _count(self) -> str:
        total = len(self._assets)
        return f"[{self.done:>{len(str(total))}}/{total}]"

    def _set(self, run: Hashable, step: str, line: _Running) -> None:
        self._running = {**self._running, (run, step): line}

    def _unset(self, run: Hashable, step: str) -> None:
        self._running = {key: line for key, line in self._running.items() if key != (run, step)}

    def _drawn(self) -> Table:
        from rich.progress_bar import ProgressBar
        from rich.table import Table

        now, total = time.monotonic(), len(self._assets)
        rows = Table.grid(padding=(0, 1), expand=True)
        rows.add_column(width=len(self._count()), justify="right", no_wrap=True)
        rows.add_column(width=5, justify="right", no_wrap=True)
        rows.add_column(width=max(self._width, len(_STARTING)) + 1, no_wrap=True)
        rows.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
        for line in self._running.values():
            rows.add_row(self._spinner, clock(now - line.since), f" {line.name}", line.message)
        bar = ProgressBar(total=total, completed=self.done, width=40)
        rows.add_row(self._count(), clock(now - self._start), "", bar)
        return rows
