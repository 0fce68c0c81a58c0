"""The MLflow run of a Dagster run: found by its tag, else begun, named and tagged by dagster-mlflow.

Its resource `mlflow_tracking` works through state that mlflow keeps for its process. So it works here, and nothing of
that state stays:
- in a thread of its own, since an active run belongs to a thread: no second Dagster run of the process logs into the
  first one's, and the end of the process finds no run to mark FINISHED, after a failure too;
- at an address of the store that is taken back afterwards;
- under the lock of the store, where of two steps at once one begins the run and the other finds it, and which has made
  the experiment already, so that its files do not drop into the working directory.
Its hook for the end is not used: a run from the command line has no hooks, and one of several steps ends for all.
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

_ADDRESS = ("MLFLOW_TRACKING_URI", "MLFLOW_EXPERIMENT_ID")


def run_of(run: dg.DagsterRun, store: TrackingStore, instance: dg.DagsterInstance) -> str:
    """Id of the MLflow run that this Dagster run is, running.

    Args:
        run: The Dagster run.
        store: Its store, which is open.
        instance: Where the Dagster run is known.
    """
    config = {"experiment_name": EXPERIMENT, "mlflow_tracking_uri": store.uri, "extra_tags": code_version()}

    def begin() -> str:
        from dagster_mlflow import mlflow_tracking

        with dg.build_resources({"mlflow": mlflow_tracking}, instance=instance, dagster_run=run,
                                resource_config={"mlflow": {"config": config}}) as lent:
            return str(lent.mlflow.active_run().info.run_id)

    with warnings.catch_warnings(), _address_kept(), ThreadPoolExecutor(1) as alone:
        # 2026-11: 0.29 is beta as a whole and reads a name that Dagster 1.13 calls deprecated. Not ours to mend.
        warnings.simplefilter("ignore")
        try:
            return alone.submit(begin).result()
        except dg.DagsterResourceFunctionError as failed:
            raise failed.user_exception from None  # what mlflow said, not that a resource could not be made


@contextmanager
def _address_kept() -> Iterator[None]:
    """mlflow's own address and experiment afterwards are what they were."""
    import mlflow

    before = {name: os.environ.get(name) for name in _ADDRESS}
    try:
        yield
    finally:
        mlflow.set_tracking_uri(None)  # type: ignore[arg-type]  # leaves it to the environment
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
