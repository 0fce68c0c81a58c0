"""Materialize assets in a separate process and show its progress."""
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
_ATTEMPTS = 4  # at reading the event log, before showing Dagster's own lines instead
_UNREADABLE: Final = "unreadable"
Sizes = dict[str, dict[str, Any]]


def materialize(selection: str, partitions: str | None = None, sizes: Sizes | None = None, patient: bool = False,
                progress: Progress | None = None) -> None:
    """Run `dagster asset materialize` and show each asset when it is done.

    Args:
        selection: Names of assets, separated by commas.
        partitions: Range of weekends, `first...last`; None for unpartitioned assets.
        sizes: Config by asset name.
        patient: Run at low CPU priority.
        progress: Progress display; by default a new one for these assets.

    Raises:
        click.ClickException: The run failed. Prints each failed step with its error, each failed check with its rows,
            and the path of the whole log.
    """
    assets = selection.split(",")
    command = [*(["nice", "-n", "10"] if patient else []), sys.executable, "-m", "dagster", "asset", "materialize",
               "-m", DEFINITIONS, "--select", selection,
               *(["--partition-range", partitions] if partitions else [])]
    if ops := {name: {"config": sizes[name]} for name in assets if sizes and name in sizes}:
        command += ["--config-json", json.dumps({"ops": ops})]
    progress = progress or Progress(assets)
    with _dagster_home() as home, tempfile.NamedTemporaryFile(
            "w", prefix="f1-demo-", suffix=".log", delete=False, encoding="utf-8") as log:
        environment = {**os.environ, "PYTHONWARNINGS": "ignore::FutureWarning", "DAGSTER_HOME": str(home)}
        with subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment) as process:
            _follow(process, Path(log.name), home, assets, progress)
        if not process.returncode:
            os.unlink(log.name)
            return
        failures = reasons(Path(log.name).read_text(encoding="utf-8", errors="replace").splitlines(keepends=True),
                           process.returncode, home)
    # Print now: the exception may only show minutes later, after parallel runs.
    progress.say("\n".join(["", *(f"FAILED: {failure}" for failure in failures), f"The whole log: {log.name}", ""]),
                 error=True)
    raise click.ClickException(f"failed: {', '.join(failure.what for failure in failures)}; see the reason above and "
                               f"the whole log in {log.name}; `f1 doctor` checks the installation")


def _follow(process: subprocess.Popen[bytes], log: Path, home: Path, assets: list[str], progress: Progress) -> None:
    """Show what the process does until it ends."""
    progress.begin(process, len(assets))
    with ExitStack() as opened:
        opened.callback(progress.end, process)
        view = _View(process, opened.enter_context(log.open("rb")), home, assets, progress, opened)
        while process.poll() is None:
            view.update()
            time.sleep(POLL_S)
        view.update(last=True)


class _View:
    """Shows the output and events of one process."""

    def __init__(self, process: subprocess.Popen[bytes], output: BinaryIO, home: Path, assets: list[str],
                 progress: Progress, opened: ExitStack) -> None:
        self._process, self._output, self._home, self._assets = process, output, home, assets
        self._progress, self._opened = progress, opened
        self._rest, self._run_id = b"", ""
        self._events: RunEvents | Literal["unreadable"] | None = None
        self._show_output, self._attempts = progress.verbose, 0

    def update(self, last: bool = False) -> None:
        """Show new output and events; `last` if the process has ended."""
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
        except Exception as problem:  # the run continues even if its log can't be read
            self._attempts += 1
            if self._attempts == _ATTEMPTS or last:  # a database may be locked for a moment
                self._events, self._show_output = _UNREADABLE, True
                self._progress.say(f"Can't read the event log in {self._home} ({problem}); showing Dagster's own lines "
                                   "instead")
        for update in updates:
            self._progress.take(self._process, update)


@contextmanager
def _dagster_home() -> Iterator[Path]:
    """DAGSTER_HOME if set, else a temporary folder, for the event log of the run."""
    if home := os.environ.get("DAGSTER_HOME"):
        yield Path(home)
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
