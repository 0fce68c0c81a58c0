"""Materialize assets in a process of its own, and follow what it does."""
from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal

import click

from f1_pipelines.cli.demo.progress import Progress
from f1_pipelines.runs.events import RunEvents, Update
from f1_pipelines.runs.failure import reasons, run_of
from f1_pipelines.settings import PROJECT_ROOT

DEFINITIONS = "f1_pipelines.definitions"
POLL_S = 0.5
_ATTEMPTS = 4  # to read the event log, before Dagster's own lines are shown instead
_UNREADABLE: Final = "unreadable"
Sizes = dict[str, dict[str, Any]]


def materialize(selection: str, partitions: str | None = None, sizes: Sizes | None = None, patient: bool = False,
                progress: Progress | None = None) -> None:
    """Run `dagster asset materialize`, and show each asset when it is done.

    Args:
        selection: Names of assets, separated by commas.
        partitions: Range of weekends, `first...last`; None for assets that have no weekend.
        sizes: Configuration of the assets that it names.
        patient: Let other processes go first.
        progress: Where it is shown; lines for these assets alone by default.

    Raises:
        click.ClickException: It failed. Why is printed: each failed step with its error, each failed check with its
            rows, and where the whole output lies.
    """
    assets = selection.split(",")
    command = [*(["nice", "-n", "10"] if patient else []), sys.executable, "-m", "dagster", "asset", "materialize",
               "-m", DEFINITIONS, "--select", selection,
               *(["--partition-range", partitions] if partitions else [])]
    if configured := {name: {"config": sizes[name]} for name in assets if sizes and name in sizes}:
        command += ["--config-json", json.dumps({"ops": configured})]
    shown = progress or Progress(assets)
    with _dagster_home() as home, tempfile.NamedTemporaryFile(
            "w", prefix="f1-demo-", suffix=".log", delete=False, encoding="utf-8") as log:
        environment = {**os.environ, "PYTHONWARNINGS": "ignore::FutureWarning", "DAGSTER_HOME": str(home)}
        with subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment) as process:
            _follow(process, Path(log.name), home, assets, shown)
        if not process.returncode:
            os.unlink(log.name)
            return
        failed = reasons(Path(log.name).read_text(encoding="utf-8", errors="replace").splitlines(keepends=True),
                         process.returncode, home)
    # At once, and not only with the exception: what runs beside may go on for minutes before that is seen.
    shown.say("\n".join(["", *(f"FAILED: {reason}" for reason in failed), f"The whole log: {log.name}", ""]),
              error=True)
    raise click.ClickException(f"failed: {', '.join(reason.what for reason in failed)}; the reason stands above, the "
                               f"whole log in {log.name}; `f1 doctor` checks the installation")


def _follow(process: subprocess.Popen[bytes], log: Path, home: Path, assets: list[str], progress: Progress) -> None:
    """Show what the process does until it ends."""
    progress.begin(process, len(assets))
    with ExitStack() as opened:
        opened.callback(progress.end, process)
        view = _View(process, opened.enter_context(log.open("rb")), home, assets, progress, opened)
        while process.poll() is None:
            view.update()
            time.sleep(POLL_S)
        view.update(last=True)  # what came since the last look


class _View:
    """What one process printed and logged so far, as shown."""

    def __init__(self, process: subprocess.Popen[bytes], output: BinaryIO, home: Path, assets: list[str],
                 progress: Progress, opened: ExitStack) -> None:
        self._process, self._output, self._home, self._assets = process, output, home, assets
        self._progress, self._opened = progress, opened
        self._rest, self._run_id = b"", ""
        self._events: RunEvents | Literal["unreadable"] | None = None
        self._show_output, self._attempts = progress.verbose, 0

    def update(self, last: bool = False) -> None:
        """Show what is new; `last` when nothing more will come."""
        *lines, self._rest = (self._rest + self._output.read()).split(b"\n")
        for line in (line.decode(errors="replace") for line in lines):
            self._run_id = self._run_id or run_of(line) or ""
            if self._show_output and _worth_showing(line):
                self._progress.say(f"  {_shortened(line)}")
        if not self._run_id or self._events == _UNREADABLE:
            return
        updates: list[Update] = []
        try:
            if self._events is None:
                self._events = self._opened.enter_context(RunEvents(self._home, self._run_id, self._assets))
            if isinstance(self._events, RunEvents):
                updates.extend(self._events.new())
            self._attempts = 0
        except Exception as problem:  # whatever keeps the log from being read, the run goes on
            self._attempts += 1
            if self._attempts == _ATTEMPTS or last:  # a database may be locked for a moment
                self._events, self._show_output = _UNREADABLE, True
                self._progress.say(f"The event log in {self._home} can't be read ({problem}): Dagster's own lines "
                                   "instead")
        for update in updates:
            self._progress.take(self._process, update)


@contextmanager
def _dagster_home() -> Iterator[Path]:
    """The caller's own, else one that goes when the run is over: its event log says why a run failed."""
    if given := os.environ.get("DAGSTER_HOME"):
        yield Path(given)
        return
    with tempfile.TemporaryDirectory(prefix="f1-demo-home-") as folder:
        Path(folder, "dagster.yaml").write_bytes((PROJECT_ROOT / "dagster.yaml").read_bytes())
        yield Path(folder)


def _worth_showing(line: str) -> bool:
    return any(mark in line for mark in ("STEP_SUCCESS", "STEP_FAILURE", "RUN_FAILURE", " - WARNING - ", " - INFO - ",
                                         " - ERROR - "))


def _shortened(line: str) -> str:
    parts = line.rstrip().split(" - ")
    return " - ".join([parts[0][11:19], *parts[5:]]) if len(parts) > 5 else line.rstrip()
