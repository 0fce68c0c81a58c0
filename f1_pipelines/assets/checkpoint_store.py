"""Store trained checkpoints and the rows they were trained on. Promotes nothing."""
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import dagster as dg
import duckdb
import pandas as pd

from f1_pipelines.lineage.seen import remember

if TYPE_CHECKING:
    from f1_pipelines.tracking.runs import TrackedRun


@dataclass(frozen=True)
class TrainedCheckpoint:
    """A new checkpoint: its row of `ranking.checkpoints`, its training rows, and the role of each weekend
    (`tables.lineage.ROLES`)."""

    row: Mapping[str, Any]
    training_rows: pd.DataFrame
    roles: str | pd.Series


def store(connection: duckdb.DuckDBPyConnection, checkpoints: Sequence[TrainedCheckpoint]) -> None:
    """Store checkpoints and their training rows in the caller's transaction (`Warehouse.write`)."""
    from f1_pipelines.promotion import store_checkpoints

    if checkpoints:
        store_checkpoints(connection, pd.DataFrame([checkpoint.row for checkpoint in checkpoints]))
    for checkpoint in checkpoints:
        remember(connection, checkpoint.training_rows, checkpoint.row["checkpoint"], checkpoint.roles,
                 checkpoint.row["dagster_run"])


def run_ids(context: dg.AssetExecutionContext, run: "TrackedRun") -> dict[str, str | None]:
    """Columns of `ranking.checkpoints` with the ids of the Dagster and MLflow runs."""
    return {"dagster_run": context.run.run_id, "mlflow_run": run.id}
