"""What each asset that trains does with its checkpoints: store them and keep their rows. It promotes nothing."""
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
    """A checkpoint that was made now: its row of `ranking.checkpoints`, the rows it saw, and what each weekend was
    seen for (`tables.lineage.ROLES`)."""

    row: Mapping[str, Any]
    seen: pd.DataFrame
    roles: str | pd.Series


def store(connection: duckdb.DuckDBPyConnection, made: Sequence[TrainedCheckpoint]) -> None:
    """Store checkpoints with the rows behind them, all in the caller's transaction.

    Args:
        connection: Of `Warehouse.write`.
        made: What was trained.
    """
    from f1_pipelines.promotion import store_checkpoints

    if made:
        store_checkpoints(connection, pd.DataFrame([one.row for one in made]))
    for one in made:
        remember(connection, one.seen, one.row["checkpoint"], one.roles, one.row["dagster_run"])


def run_ids(context: dg.AssetExecutionContext, run: "TrackedRun") -> dict[str, str | None]:
    """Columns of `ranking.checkpoints` that lead to both runs."""
    return {"dagster_run": context.run.run_id, "mlflow_run": run.id}
