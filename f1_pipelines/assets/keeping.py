"""What each asset that trains does with its checkpoints: store them, keep their rows, decide on the newest, tell."""
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dagster as dg
import duckdb
import pandas as pd

from f1_pipelines.lineage.seen import remember
from f1_pipelines.resources.tracking import linked

if TYPE_CHECKING:
    from f1_pipelines.promotion import Decision
    from f1_pipelines.tracking.runs import TrackedRun


@dataclass(frozen=True)
class Trained:
    """A checkpoint that was made now: its row of `ranking.checkpoints`, the rows it saw, and what each weekend was
    seen for (`tables.lineage.ROLES`)."""

    row: Mapping[str, Any]
    seen: pd.DataFrame
    roles: str | pd.Series


def keep(connection: duckdb.DuckDBPyConnection, made: Sequence[Trained], candidate: str | None, rows: pd.DataFrame,
         folder: Path, now: datetime) -> "Decision | None":
    """Store checkpoints with the rows behind them and let the rule decide, all in the caller's transaction.

    Args:
        connection: Of `Warehouse.write`.
        made: What was trained.
        candidate: The checkpoint that may become champion, None for none.
        rows: Starters of run races with features and outcome, by which it is judged.
        folder: Where checkpoints lie.
        now: The present instant.

    Returns:
        The decision; None where there was nothing to decide.
    """
    from f1_pipelines.promotion import decide, record, store_checkpoints

    if made:
        store_checkpoints(connection, pd.DataFrame([one.row for one in made]))
    for one in made:
        remember(connection, one.seen, one.row["checkpoint"], one.roles, one.row["dagster_run"])
    decision = decide(connection, candidate, rows, folder) if candidate else None
    if decision:
        record(connection, decision, now)
    return decision


def told(decision: "Decision | None", run: "TrackedRun") -> dict[str, object]:
    """Metadata on the decision and where the run is tracked."""
    if decision is None:
        return {"promotion": "nothing to decide: the champion is this one, or has learnt on from it",
                "mlflow": linked(run)}
    numbers = {name: getattr(decision, f"{name}_spearman") for name in ("candidate", "champion", "grid")
               if getattr(decision, f"{name}_spearman") is not None}
    return {"promotion": f"{decision.decision}: {decision.reason}", "mlflow": linked(run),
            **{f"{name}_spearman_over_window": value for name, value in numbers.items()}}


def run_ids(context: dg.AssetExecutionContext, run: "TrackedRun") -> dict[str, str | None]:
    """Columns of `ranking.checkpoints` that lead to both runs."""
    return {"dagster_run": context.run.run_id, "mlflow_run": run.id}


def show_champion(run: "TrackedRun", connection: duckdb.DuckDBPyConnection, folder: Path) -> None:
    """Let the model registry's aliases follow what the warehouse says."""
    from f1_pipelines.promotion import standing
    from f1_pipelines.tracking.registry import follow

    now = standing(connection)
    run.say(lambda to: follow(to, now, folder))
