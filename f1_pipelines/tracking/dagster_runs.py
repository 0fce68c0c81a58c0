"""Find the MLflow run of a Dagster run by its tag, or start it; dagster-mlflow names and tags it.

dagster-mlflow's resource `mlflow_tracking` changes process-wide state of mlflow. Here it leaves none of that behind:
- It runs in a separate thread, since an active run belongs to a thread. So no second Dagster run of the process logs
  into the first one's run, and the exit of the process finds no run to mark as FINISHED after a failure.
- The tracking URI and experiment are restored afterwards.
- The store's lock is held, so of two concurrent steps one starts the run and the other finds it. The experiment exists
  already, so its files don't land in the working directory.
Its hook that ends the run is not used: command-line runs have no hooks, and the first of several steps would end it.
"""
from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import dagster as dg

from f1_pipelines.tracking.runs import code_version
from f1_pipelines.tracking.store import EXPERIMENT, TrackingStore

_VARIABLES = ("MLFLOW_TRACKING_URI", "MLFLOW_EXPERIMENT_ID")


def run_of(run: dg.DagsterRun, store: TrackingStore, instance: dg.DagsterInstance) -> str:
    """Find or start the MLflow run of a Dagster run. Return its id.

    Args:
        run: The Dagster run.
        store: The tracking store, which is open.
        instance: The Dagster instance of the run.
    """
    config = {"experiment_name": EXPERIMENT, "mlflow_tracking_uri": store.uri, "extra_tags": code_version()}

    def begin() -> str:
        from dagster_mlflow import mlflow_tracking

        with dg.build_resources({"mlflow": mlflow_tracking}, instance=instance, dagster_run=run,
                                resource_config={"mlflow": {"config": config}}) as resources:
            return str(resources.mlflow.active_run().info.run_id)

    with warnings.catch_warnings(), _restored_address(), ThreadPoolExecutor(1) as thread:
        # 2026-11: dagster-mlflow 0.29 is beta, and reads a name that Dagster 1.13 deprecates.
        warnings.simplefilter("ignore")
        try:
            return thread.submit(begin).result()
        except dg.DagsterResourceFunctionError as error:
            raise error.user_exception from None  # mlflow's own error


@contextmanager
def _restored_address() -> Iterator[None]:
    """Restore mlflow's tracking URI and experiment after the body."""
    import mlflow

    before = {name: os.environ.get(name) for name in _VARIABLES}
    try:
        yield
    finally:
        mlflow.set_tracking_uri(None)  # type: ignore[arg-type]  # falls back to the environment
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
