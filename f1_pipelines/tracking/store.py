"""Where runs are tracked: an MLflow server, or a SQLite file of our own beside the warehouse.

Notable choices:
- One client with its address, never `mlflow.log_metric` and its like: these write to the active run and the address
  that the process has just then, and mark a run as FINISHED when it ends, after a failure too. dagster-mlflow is built
  on them; `dagster_runs` lets it begin a run and keeps that apart.
- A store is opened under a file lock: two processes that make the same new SQLite file break each other's migrations.
- A server that is away costs seconds, not the minutes of MLflow's own patience, and a warning, never the model.
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
# What is set already stays. No usage data is sent to anybody.
_ENVIRONMENT = {"MLFLOW_HTTP_REQUEST_TIMEOUT": "10", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
                "MLFLOW_DISABLE_TELEMETRY": "true"}


@dataclass(frozen=True)
class Opened:
    """A store that answers: the client, and the id of our experiment in it."""

    client: MlflowClient
    experiment: str


@dataclass(frozen=True)
class TrackingStore:
    """An MLflow store.

    Attributes:
        uri: Its address as MLflow writes it.
        folder: Where the lock lies and, of a SQLite file, the artifacts in `mlflow-artifacts`.
    """

    uri: str
    folder: Path

    @property
    def file(self) -> Path | None:
        """The SQLite file, None for a server."""
        return Path(self.uri.removeprefix(_SQLITE)).absolute() if self.uri.startswith(_SQLITE) else None

    @contextmanager
    def open(self, wait_s: float = 120.0) -> Iterator[Opened]:
        """A client, and nobody else of this machine opens the store until the body ends. Makes what is missing.

        A new SQLite file takes about 8 s once; one that is there under a second for each process.

        Raises:
            WarehouseBusy: Another process held the store for longer than `wait_s`.
            Exception: Whatever MLflow raises where the store is no store or does not answer.
        """
        for name, value in _ENVIRONMENT.items():
            os.environ.setdefault(name, value)
        from mlflow import MlflowClient

        locked = self.file or self.folder.absolute() / "mlflow"
        locked.parent.mkdir(parents=True, exist_ok=True)
        with writer_lock(locked, "tracking", wait_s):
            client = MlflowClient(tracking_uri=self.uri, registry_uri=self.uri)
            experiment = client.get_experiment_by_name(EXPERIMENT)
            # Without a place of its own, a local experiment drops its files into the working directory.
            local = (self.folder.absolute() / "mlflow-artifacts").as_uri() if self.file else None
            yield Opened(client, experiment.experiment_id if experiment
                         else client.create_experiment(EXPERIMENT, local))

    def page(self, experiment: str, run: str) -> str:
        """Where people look at a run: its page on the server, or what to type for a SQLite file."""
        if self.file is None:
            return f"{self.uri.rstrip('/')}/#/experiments/{experiment}/runs/{run}"
        return f"run {run}: mlflow ui --backend-store-uri {self.uri}"

    def describe(self) -> str:
        """Whether the store answers, without making anything. One sentence; raises where it does not."""
        if self.file is not None:
            if not self.file.exists():
                return f"{self.uri}, made by the first run that is tracked"
            with closing(sqlite3.connect(f"{self.file.as_uri()}?mode=ro", uri=True)) as connection:
                [(runs,)] = connection.execute("SELECT count(*) FROM runs").fetchall()
            return f"{runs} runs in {self.uri}"
        if self.uri.startswith(("http://", "https://")):
            requests.get(f"{self.uri.rstrip('/')}/health", timeout=5).raise_for_status()
            return f"{self.uri} answers"
        raise RuntimeError(f"MLFLOW_TRACKING_URI={self.uri} is not known here; wanted off, "
                           "sqlite:////path/to/mlflow.db, or the address of a server, http://...")


class Line:
    """The connection to a store. The first failure is logged; nothing is tried after it.

    Attributes:
        opened: The store; None where there is none, or no longer.
        why_not: Why there is none, for people.
    """

    def __init__(self, warn: Callable[[str], None], why_not: str = "tracking is off") -> None:
        self.opened: Opened | None = None
        self.why_not, self._warn = why_not, warn

    def say(self, what: Callable[[Opened], Any]) -> Any:
        """Do something with the store: what it gave, None where it could not be done."""
        opened = self.opened
        return self.attempt(lambda: what(opened)) if opened else None

    def attempt(self, what: Callable[[], Any]) -> Any:
        """Do something that may find the store away."""
        try:
            return what()
        except Exception as problem:  # noqa: BLE001  a trained model is not lost because a server is down
            self.opened = None
            self.why_not = (f"not tracked: {type(problem).__name__}: {' '.join(str(problem).split())[:300]}; the work "
                            "itself is stored; `f1 doctor` looks at the tracking store")
            self._warn(self.why_not)
            return None
