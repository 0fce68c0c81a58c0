"""Runs in MLflow.

A Dagster run is one MLflow run (`dagster_runs`) with the tag `dagster_run_id`; each asset has a child run.
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
from f1_pipelines.tracking.store import OpenStore, StoreConnection, TrackingStore

DAGSTER_RUN, PARENT = "dagster_run_id", "mlflow.parentRunId"
Status = Literal["FINISHED", "FAILED"]
# MLflow's limits: characters of a parameter's value, and points per batch.
_MAX_CHARACTERS, _MAX_POINTS = 6000, 1000


class TrackedRun:
    """A run to log to. Without a store, or after it failed, its methods do nothing, so the work itself goes on.

    Attributes:
        id: MLflow's id of the run; None if it is not tracked.
    """

    def __init__(self, store: TrackingStore | None, connection: StoreConnection, run_id: str | None) -> None:
        self.id, self._store, self._connection = run_id, store, connection

    @property
    def page(self) -> str:
        """Where to view the run; if it is not tracked, the reason."""
        if self.id is None or self._connection.opened is None or self._store is None:
            return self._connection.why_not
        return self._store.page(self._connection.opened.experiment, self.id)

    def params(self, values: Mapping[str, object]) -> None:
        """Log at most 100 settings by name."""
        def log(store: OpenStore) -> None:
            from mlflow.entities import Param

            store.client.log_batch(str(self.id), params=[Param(name, str(value)[:_MAX_CHARACTERS])
                                                         for name, value in values.items()])

        self.call(log)

    def metrics(self, values: Mapping[str, float], step: int = 0) -> None:
        """Log metrics by name at a step."""
        self._log_points([(name, value, step) for name, value in values.items()])

    def curve(self, name: str, values: Sequence[float]) -> None:
        """Log a metric by epoch, counted from 1."""
        self._log_points([(name, value, epoch) for epoch, value in enumerate(values, start=1)])

    def checkpoint(self, checkpoint: str, folder: Path) -> None:
        """Register the trained checkpoint as a version of the registered model."""
        self.call(lambda store: register(store, checkpoint, folder, self.id))

    @contextmanager
    def child(self, name: str, params: Mapping[str, object] | None = None,
              tags: Mapping[str, object] | None = None) -> Iterator[TrackedRun]:
        """Start a child run for the body; it ends FAILED if the body raises, else FINISHED."""
        all_tags = {PARENT: self.id, **{tag: str(value) for tag, value in (tags or {}).items()}}
        created = self.call(lambda store: store.client.create_run(store.experiment, run_name=name, tags=all_tags))
        run = TrackedRun(self._store, self._connection, created.info.run_id if created else None)
        run.params(params or {})
        try:
            yield run
        except BaseException:
            run.end("FAILED")
            raise
        run.end("FINISHED")

    def end(self, status: Status) -> None:
        """End the run."""
        self.call(lambda store: store.client.set_terminated(str(self.id), status))

    def _log_points(self, points: Sequence[tuple[str, float, int]]) -> None:
        """Log (name, value, step) points in batches, since each call to a SQLite file is a commit."""
        def log(store: OpenStore) -> None:
            from mlflow.entities import Metric

            now_ms = int(time.time() * 1000)
            metrics = [Metric(name, float(value), now_ms, step) for name, value, step in points]
            for first in range(0, len(metrics), _MAX_POINTS):
                store.client.log_batch(str(self.id), metrics=metrics[first:first + _MAX_POINTS])

        self.call(log)

    def call(self, action: Callable[[OpenStore], Any]) -> Any:
        """Call `action` with the store, if this run is tracked. Return its result, or None."""
        return self._connection.call(action) if self.id else None


def end_orphans(store: OpenStore, status_of: Callable[[str], Status | None]) -> None:
    """End the MLflow runs that killed processes left running, with the status of their Dagster runs.

    Args:
        store: The store, whose lock is held.
        status_of: Final status of a Dagster run by id; None if it is running or unknown.
    """
    running = store.client.search_runs([store.experiment], "attributes.status = 'RUNNING'")
    ended = {run.info.run_id: status for run in running
             if DAGSTER_RUN in run.data.tags and (status := status_of(run.data.tags[DAGSTER_RUN]))}
    for run in running:
        parent = run.data.tags.get(PARENT)
        if run.info.run_id in ended:
            store.client.set_terminated(run.info.run_id, ended[run.info.run_id])
        elif parent in ended:  # a child run that never ended has failed
            store.client.set_terminated(run.info.run_id, "FAILED")


def code_version() -> dict[str, str]:
    """The version of this package and, in a git repository, the commit (`-dirty` if there are changes)."""
    versions = {"code_version": version("f1-pipelines")}
    try:
        git = subprocess.run(["git", "-C", str(PROJECT_ROOT), "describe", "--always", "--dirty", "--abbrev=40",
                              "--exclude=*"], capture_output=True, text=True, check=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return versions
    return versions | {"git_commit": git.stdout.strip()}
