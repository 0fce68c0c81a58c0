"""The tracking store: an MLflow server, or a SQLite file beside the warehouse.

Notable choices:
- Use a client with a fixed URI, never functions such as `mlflow.log_metric`: these log to the active run and URI of the
  process, which marks the run as FINISHED at exit, even after a failure. dagster-mlflow uses them; `dagster_runs`
  isolates it.
- Open a store under a file lock: two processes that create the same SQLite file break each other's migrations.
- An unreachable server costs seconds, not the minutes of MLflow's default retries, and a warning, never the model.
"""
from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import requests

from f1_pipelines.warehouse.lock import writer_lock

if TYPE_CHECKING:
    from mlflow import MlflowClient

EXPERIMENT = "f1-ranker"

_SQLITE = "sqlite:///"
# Defaults for variables that are not set. No usage data is sent.
_ENVIRONMENT = {"MLFLOW_HTTP_REQUEST_TIMEOUT": "10", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
                "MLFLOW_DISABLE_TELEMETRY": "true"}


@dataclass(frozen=True)
class OpenStore:
    """The client of a reachable store, and the id of our experiment in it."""

    client: MlflowClient
    experiment: str


@dataclass(frozen=True)
class TrackingStore:
    """An MLflow store.

    Attributes:
        uri: Its MLflow tracking URI.
        folder: Folder of the lock and, for a SQLite file, of the artifacts in `mlflow-artifacts`.
    """

    uri: str
    folder: Path

    @property
    def file(self) -> Path | None:
        """The SQLite file; None for a server."""
        return Path(self.uri.removeprefix(_SQLITE)).absolute() if self.uri.startswith(_SQLITE) else None

    @contextmanager
    def open(self, wait_s: float = 120.0) -> Iterator[OpenStore]:
        """Open the store, creating it if missing. No other process on this machine opens it until the body ends.

        Creating a SQLite file takes about 8 s; opening one takes less than a second per process.

        Raises:
            WarehouseBusy: Another process held the store for longer than `wait_s`.
            Exception: MLflow's error for an invalid or unreachable store.
        """
        for name, value in _ENVIRONMENT.items():
            os.environ.setdefault(name, value)
        from mlflow import MlflowClient

        lock_path = self.file or self.folder.absolute() / "mlflow"
        lock_path.parent.mkdir(parents=True, exist_ok=True)
        with writer_lock(lock_path, "tracking", wait_s):
            client = MlflowClient(tracking_uri=self.uri, registry_uri=self.uri)
            experiment = client.get_experiment_by_name(EXPERIMENT)
            # By default a local experiment stores its files in the working directory.
            artifacts = (self.folder.absolute() / "mlflow-artifacts").as_uri() if self.file else None
            yield OpenStore(client, experiment.experiment_id if experiment
                            else client.create_experiment(EXPERIMENT, artifacts))

    def page(self, experiment: str, run: str) -> str:
        """The URL of a run on the server, or the command that shows it for a SQLite file."""
        if self.file is None:
            return f"{self.uri.rstrip('/')}/#/experiments/{experiment}/runs/{run}"
        return f"run {run}: mlflow ui --backend-store-uri {self.uri}"

    def describe(self) -> str:
        """Describe the store in one sentence; raise if it is unreachable. Creates nothing."""
        if self.file is not None:
            if not self.file.exists():
                return f"{self.uri}, created by the first tracked run"
            with closing(sqlite3.connect(f"{self.file.as_uri()}?mode=ro", uri=True)) as connection:
                [(runs,)] = connection.execute("SELECT count(*) FROM runs").fetchall()
            return f"{runs} runs in {self.uri}"
        if self.uri.startswith(("http://", "https://")):
            requests.get(f"{self.uri.rstrip('/')}/health", timeout=5).raise_for_status()
            return f"{self.uri} answers"
        raise RuntimeError(f"MLFLOW_TRACKING_URI={self.uri} is not supported; wanted off, "
                           "sqlite:////path/to/mlflow.db, or the URL of a server, http://...")


class StoreConnection:
    """A connection to a store. The first failure is logged; later calls do nothing.

    Attributes:
        opened: The open store; None if there is none, or after a failure.
        why_not: Why there is none, as a message.
    """

    def __init__(self, warn: Callable[[str], None], why_not: str = "tracking is off") -> None:
        self.opened: OpenStore | None = None
        self.why_not, self._warn = why_not, warn

    def call(self, action: Callable[[OpenStore], Any]) -> Any:
        """Call `action` with the store. Return its result; None if there is no store or it failed."""
        store = self.opened
        return self.attempt(lambda: action(store)) if store else None

    def attempt(self, action: Callable[[], Any]) -> Any:
        """Call `action`, which may fail to reach the store. Return its result; None if it failed."""
        try:
            return action()
        except Exception as problem:  # noqa: BLE001  a trained model must not be lost because a server is down
            self.opened = None
            self.why_not = (f"not tracked: {type(problem).__name__}: {' '.join(str(problem).split())[:300]}; the work "
                            "itself is stored; `f1 doctor` checks the tracking store")
            self._warn(self.why_not)
            return None
