"""Runs in MLflow, and how they end.

A Dagster run is one MLflow run (`dagster_runs`), with the tag `dagster_run_id`; what each asset does is a child of it.
"""
from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from f1_pipelines.settings import PROJECT_ROOT
from f1_pipelines.tracking.registry import register
from f1_pipelines.tracking.store import Line, Opened, TrackingStore

DAGSTER_RUN, PARENT = "dagster_run_id", "mlflow.parentRunId"
Status = Literal["FINISHED", "FAILED"]
# What MLflow takes of a parameter's value, and of points of a curve at a time.
_LONGEST_VALUE, _MOST_POINTS = 6000, 1000


class TrackedRun:
    """What is written of a piece of work. Without a store, or once that fails, nothing is: the work goes on.

    Attributes:
        id: MLflow's id of the run, None where it is not tracked.
    """

    def __init__(self, store: TrackingStore | None, line: Line, run_id: str | None) -> None:
        self.id, self._store, self._line = run_id, store, line

    @property
    def page(self) -> str:
        """Where to look at it; where it is not tracked, why."""
        if self.id is None or self._line.opened is None or self._store is None:
            return self._line.why_not
        return self._store.page(self._line.opened.experiment, self.id)

    def params(self, values: Mapping[str, object]) -> None:
        """Settings of the work, by name; 100 at most."""
        def write(to: Opened) -> None:
            from mlflow.entities import Param

            to.client.log_batch(str(self.id), params=[Param(name, str(value)[:_LONGEST_VALUE])
                                                 for name, value in values.items()])

        self.say(write)

    def metrics(self, values: Mapping[str, float], step: int = 0) -> None:
        """Numbers, at a step of their curves."""
        self._points([(name, value, step) for name, value in values.items()])

    def curve(self, name: str, values: Sequence[float]) -> None:
        """A number by epoch, from 1."""
        self._points([(name, value, epoch) for epoch, value in enumerate(values, start=1)])

    def checkpoint(self, checkpoint: str, folder: Path) -> None:
        """What came of it, as a version of the registered model."""
        self.say(lambda to: register(to, checkpoint, folder, self.id))

    @contextmanager
    def child(self, name: str, params: Mapping[str, object] | None = None,
              tags: Mapping[str, object] | None = None) -> Iterator[TrackedRun]:
        """A run below this one: FINISHED when the body ends well, else FAILED."""
        tags_of_run = {PARENT: self.id, **{tag: str(value) for tag, value in (tags or {}).items()}}
        made = self.say(lambda to: to.client.create_run(to.experiment, run_name=name, tags=tags_of_run))
        run = TrackedRun(self._store, self._line, made.info.run_id if made else None)
        run.params(params or {})
        try:
            yield run
        except BaseException:
            run.end("FAILED")
            raise
        run.end("FINISHED")

    def end(self, status: Status) -> None:
        """Say how the work went."""
        self.say(lambda to: to.client.set_terminated(str(self.id), status))

    def _points(self, points: Sequence[tuple[str, float, int]]) -> None:
        """Name, value and step of each; in batches, since each call to a SQLite file is a commit."""
        def write(to: Opened) -> None:
            from mlflow.entities import Metric

            now_ms = int(time.time() * 1000)
            points_of_curve = [Metric(name, float(value), now_ms, step) for name, value, step in points]
            for first in range(0, len(points_of_curve), _MOST_POINTS):
                to.client.log_batch(str(self.id), metrics=points_of_curve[first:first + _MOST_POINTS])

        self.say(write)

    def say(self, what: Callable[[Opened], Any]) -> Any:
        """Do something with the store that this run is tracked in."""
        return self._line.say(what) if self.id else None


def end_orphans(opened: Opened, status_of: Callable[[str], Status | None]) -> None:
    """End what a killed process left running, as Dagster says of its run.

    Args:
        opened: The store, its lock held.
        status_of: How a Dagster run ended; None while it runs, or if it is none of ours.
    """
    running = opened.client.search_runs([opened.experiment], "attributes.status = 'RUNNING'")
    ended = {run.info.run_id: status for run in running
             if DAGSTER_RUN in run.data.tags and (status := status_of(run.data.tags[DAGSTER_RUN]))}
    for run in running:
        parent = run.data.tags.get(PARENT)
        if run.info.run_id in ended:
            opened.client.set_terminated(run.info.run_id, ended[run.info.run_id])
        elif parent in ended:  # whatever it did, it did not get to its end
            opened.client.set_terminated(run.info.run_id, "FAILED")


def code_version() -> dict[str, str]:
    """Version of this package and, where git and the repository are there, the commit (`-dirty` with changes)."""
    versions = {"code_version": version("f1-pipelines")}
    try:
        git = subprocess.run(["git", "-C", str(PROJECT_ROOT), "describe", "--always", "--dirty", "--abbrev=40",
                              "--exclude=*"], capture_output=True, text=True, check=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return versions
    return versions | {"git_commit": git.stdout.strip()}
