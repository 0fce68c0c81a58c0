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
    """Where to look at a run, as metadata."""
    return dg.MetadataValue.url(run.page) if run.page.startswith("http") else dg.MetadataValue.text(run.page)


class Tracking(dg.ConfigurableResource[None]):
    """An MLflow store. Nothing imports mlflow before a step asks; a store that is away is a warning, not a failure.

    dagster-mlflow finds or begins the MLflow run of the Dagster run (`tracking.dagster_runs`). What is written to it
    and how it ends goes by its id, not through the active run that dagster-mlflow keeps for its process.
    """

    mlflow_tracking_uri: str | None = Field(None, description="sqlite:////path/to/mlflow.db or the address of a "
                                            "server; empty: nothing is tracked.")
    folder: str = Field("", description="Where artifacts of a SQLite store lie, in mlflow-artifacts.")
    _whole: "TrackedRun | None" = PrivateAttr(None)

    @property
    def store(self) -> "TrackingStore | None":
        from f1_pipelines.tracking.store import TrackingStore

        return TrackingStore(self.mlflow_tracking_uri, Path(self.folder)) if self.mlflow_tracking_uri else None

    @contextmanager
    def run(self, context: dg.AssetExecutionContext, name: str, params: Mapping[str, object] | None = None,
            tags: Mapping[str, object] | None = None) -> Iterator["TrackedRun"]:
        """The MLflow run of this asset, below the one of the Dagster run: FAILED where the body raises.

        Args:
            context: Of the asset.
            name: What the work is called.
            params: Its settings.
            tags: What else it is found by.
        """
        if self._whole is None:
            self._whole = self._begin(context)
        with self._whole.child(name, params, tags) as run:
            yield run

    def teardown_after_execution(self, context: dg.InitResourceContext) -> None:
        """End the MLflow run of the Dagster run: FAILED if a step failed, one that is not tracked too."""
        if self._whole is not None and context.instance is not None and context.run is not None:
            failures = context.instance.get_records_for_run(
                context.run.run_id, of_type=dg.DagsterEventType.STEP_FAILURE, limit=1).records
            self._whole.end("FAILED" if failures else "FINISHED")

    def _begin(self, context: dg.AssetExecutionContext) -> "TrackedRun":
        from f1_pipelines.tracking.dagster_runs import run_of
        from f1_pipelines.tracking.runs import TrackedRun, end_orphans
        from f1_pipelines.tracking.store import Line

        def ended(run_id: str) -> "Status | None":
            known = context.instance.get_run_by_id(run_id)
            return ("FINISHED" if known.is_success else "FAILED") if known and known.is_finished else None

        def open_store(store: "TrackingStore") -> str:
            with store.open() as opened:
                line.opened = opened
                end_orphans(opened, ended)
                return run_of(context.run, store, context.instance)

        line, store = Line(context.log.warning), self.store
        whole = TrackedRun(store, line, line.attempt(lambda: open_store(store)) if store else None)
        if whole.id:
            context.instance.add_run_tags(context.run.run_id, {"mlflow_run_id": whole.id})
        return whole
