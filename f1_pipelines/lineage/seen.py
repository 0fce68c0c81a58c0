"""Store the rows that models saw, once per version of a weekend, and read them back unchanged."""
from __future__ import annotations

from collections.abc import Mapping

import duckdb
import pandas as pd

from f1_pipelines.evaluation.targets import TARGETS
from f1_pipelines.features.history import data_version
from f1_pipelines.tables.features import RANKING
from f1_pipelines.tables.lineage import LINEAGE, ROWS_SEEN
from f1_pipelines.warehouse.replace import replace_slices


class Untraceable(ValueError):
    """The lineage of an object is not stored, or does not reproduce it. The message says what to do."""


def prediction_id(weekend: str, stage: str, checkpoint: str, predictor: str | None = None) -> str:
    """The id in `ranking.lineage` of a slice of `ranking.predictions`, or of `ranking.simulated_predictions` if the
    predictor is `simulated`."""
    return "/".join([weekend, stage, checkpoint, *([predictor] if predictor else [])])


def remember(connection: duckdb.DuckDBPyConnection, rows: pd.DataFrame, checkpoint: str, roles: str | pd.Series,
             dagster_run: str | None = None) -> None:
    """Store the rows that a checkpoint saw, unless they are stored already.

    Args:
        connection: Of `WarehouseFile.write`.
        rows: Rows of `features.ranking` with the outcome (`evaluation.targets`).
        checkpoint: Id of the checkpoint.
        roles: Use of the rows, one of `tables.lineage.ROLES`; a series by weekend if it differs.
        dagster_run: Id of the Dagster run.
    """
    if rows.empty:
        return
    versions = {weekend: data_version(weekend_rows) for weekend, weekend_rows in rows.groupby("weekend")}
    result_versions = dict(connection.execute("SELECT DISTINCT weekend, version FROM race.current_results").fetchall())
    _store_versions(connection, rows, versions, pd.DataFrame([{
        "seen_by": checkpoint, "kind": "checkpoint", "role": roles if isinstance(roles, str) else roles[weekend],
        "weekend": weekend, "data_version": version, "result_version": result_versions.get(weekend),
        "dagster_run": dagster_run,
    } for weekend, version in versions.items()]))


def remember_predictions(connection: duckdb.DuckDBPyConnection, rows: pd.DataFrame, predictions: pd.DataFrame,
                         dagster_run: str | None = None, predictor: str | None = None) -> None:
    """Store the rows that predictions were made from.

    Args:
        connection: Of `WarehouseFile.write`.
        rows: Rows of `features.ranking`, as the ranker got them.
        predictions: Rows of `ranking.predictions` that `predictions.rank` made from them.
        dagster_run: Id of the Dagster run.
        predictor: As for `prediction_id`.
    """
    slices = predictions[["weekend", "stage", "checkpoint"]].drop_duplicates()
    if slices.empty:
        return
    ids = [prediction_id(row.weekend, row.stage, row.checkpoint, predictor) for row in slices.itertuples()]
    seen = rows[rows["weekend"].isin(slices["weekend"])]
    versions = {weekend: data_version(weekend_rows) for weekend, weekend_rows in seen.groupby("weekend")}
    _store_versions(connection, seen, versions, slices.assign(
        data_version=slices["weekend"].map(versions), seen_by=ids, kind="prediction", role="predict",
        result_version=None, dagster_run=dagster_run,
    ).drop(columns=["stage", "checkpoint"]))


def rows_seen_by(connection: duckdb.DuckDBPyConnection, seen_by: str, role: str | None = None) -> pd.DataFrame:
    """Read the rows that a checkpoint or a prediction saw, in the same order and types.

    Args:
        connection: To the warehouse.
        seen_by: Id of the checkpoint, or `prediction_id`.
        role: Only rows with this role; None for all.

    Raises:
        Untraceable: No rows are stored for it.
    """
    slices = connection.execute(
        "SELECT r.* FROM ranking.rows_seen r JOIN ranking.lineage l USING (data_version) "
        "WHERE l.seen_by = ? AND coalesce(l.role = ?, true) ORDER BY r.race_start, r.driver", [seen_by, role]).df()
    if slices.empty:
        raise Untraceable(f"no rows of {seen_by} are stored{f' with role {role}' if role else ''}: it is unknown, or "
                          "older than this record; make it again to store its rows")
    rows = ROWS_SEEN.conform(slices).drop(columns="data_version")
    if rows["started"].isna().all():
        return rows[RANKING.column_names]
    return rows.astype({"started": bool, "classified": bool})


def _store_versions(connection: duckdb.DuckDBPyConnection, rows: pd.DataFrame, versions: Mapping[str, str],
                    seen: pd.DataFrame) -> None:
    """Store the rows of each weekend's version unless they are stored, and the lineage in `seen`."""
    stored_versions = {version for (version,) in connection.execute(
        "SELECT DISTINCT data_version FROM ranking.rows_seen WHERE data_version IN (SELECT unnest(?::VARCHAR[]))",
        [list(versions.values())]).fetchall()}
    rows = rows.assign(data_version=rows["weekend"].map(versions))
    new_rows = rows[~rows["data_version"].isin(stored_versions)]
    unknown = [name for name in TARGETS if name not in rows]
    replace_slices(connection, ROWS_SEEN, new_rows.assign(**dict.fromkeys(unknown))[ROWS_SEEN.column_names])
    counts = rows["weekend"].value_counts()
    replace_slices(connection, LINEAGE, seen.assign(n_rows=seen["weekend"].map(counts)), accept_fewer_rows=True)
