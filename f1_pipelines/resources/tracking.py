"""Tracking of runs in MLflow."""
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg
from pydantic import Field, PrivateAttr

if TYPE_CHECKING:
    from f1_pipelines.tracking.runs import Status, TrackedRun
    from f1_pipelines.tracking.store import TrackingStore


def linked(run: "TrackedRun") -> dg.MetadataValue:
    """The page of a run as Dagster metadata."""
    return dg.MetadataValue.url(run.page) if run.page.startswith("http") else dg.MetadataValue.text(run.page)


class Tracking(dg.ConfigurableResource[None]):
    """An MLflow store. mlflow is imported on first use; an unreachable store is a warning, not a failure.

    dagster-mlflow finds or starts the MLflow run of the Dagster run (`tracking.dagster_runs`). Metrics and status are
    written by run id, not through the process-wide active run of dagster-mlflow.
    """

    mlflow_tracking_uri: str | None = Field(None, description="sqlite:////path/to/mlflow.db or the URL of a server; "
                                            "empty: nothing is tracked.")
    folder: str = Field("", description="Folder of a SQLite store's artifacts, in mlflow-artifacts.")
    _parent: "TrackedRun | None" = PrivateAttr(None)

    @property
    def store(self) -> "TrackingStore | None":
        from f1_pipelines.tracking.store import TrackingStore

        return TrackingStore(self.mlflow_tracking_uri, Path(self.folder)) if self.mlflow_tracking_uri else None

    @contextmanager
    def run(self, context: dg.AssetExecutionContext, name: str, params: Mapping[str, object] | None = None,
            tags: Mapping[str, object] | None = None) -> Iterator["TrackedRun"]:
        """Start the MLflow run of an asset as a child of the Dagster run's; it ends FAILED if the body raises.

        Args:
            context: Context of the asset.
            name: Name of the run.
            params: Settings to log.
            tags: Tags of the run.
        """
        if self._parent is None:
            self._parent = self._begin(context)
        with self._parent.child(name, params, tags) as run:
            yield run

    def teardown_after_execution(self, context: dg.InitResourceContext) -> None:
        """End the MLflow run of the Dagster run: FAILED if any step failed, even an untracked one."""
        if self._parent is not None and context.instance is not None and context.run is not None:
            failures = context.instance.get_records_for_run(
                context.run.run_id, of_type=dg.DagsterEventType.STEP_FAILURE, limit=1).records
            self._parent.end("FAILED" if failures else "FINISHED")

    def _begin(self, context: dg.AssetExecutionContext) -> "TrackedRun":
        from f1_pipelines.tracking.dagster_runs import run_of
        from f1_pipelines.tracking.runs import TrackedRun, end_orphans
        from f1_pipelines.tracking.store import StoreConnection

        def final_status(run_id: str) -> "Status | None":
            run = context.instance.get_run_by_id(run_id)
            return ("FINISHED" if run.is_success else "FAILED") if run and run.is_finished else None

        def open_store(store: "TrackingStore") -> str:
            with store.open() as opened:
                connection.opened = opened
                end_orphans(opened, final_status)
                return run_of(context.run, store, context.instance)

        connection, store = StoreConnection(context.log.warning), self.store
        parent = TrackedRun(store, connection, connection.attempt(lambda: open_store(store)) if store else None)
        if parent.id:
            context.instance.add_run_tags(context.run.run_id, {"mlflow_run_id": parent.id})
        return parent
