"""The rows that models saw: written once for each version of a weekend, read back as they were."""
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
    """What is asked for was not remembered. The message says what to do."""


def prediction_id(weekend: str, stage: str, checkpoint: str, predictor: str | None = None) -> str:
    """What a prediction is called in `ranking.lineage`: a slice of `ranking.predictions`, or of
    `ranking.simulated_predictions` where the predictor is `simulated`."""
    return "/".join([weekend, stage, checkpoint, *([predictor] if predictor else [])])


def remember(connection: duckdb.DuckDBPyConnection, rows: pd.DataFrame, checkpoint: str, roles: str | pd.Series,
             dagster_run: str | None = None) -> None:
    """Keep the rows that a checkpoint saw. What is kept already is not kept twice.

    Args:
        connection: Of `WarehouseFile.write`.
        rows: Rows of `features.ranking` with the outcome (`evaluation.targets`).
        checkpoint: Its id.
        roles: What for, one of `tables.lineage.ROLES`; a series by weekend where it differs.
        dagster_run: In which run.
    """
    if rows.empty:
        return
    versions = {weekend: data_version(seen) for weekend, seen in rows.groupby("weekend")}
    sheets = dict(connection.execute("SELECT DISTINCT weekend, version FROM race.current_results").fetchall())
    _store_versions(connection, rows, versions, pd.DataFrame([{
        "seen_by": checkpoint, "kind": "checkpoint", "role": roles if isinstance(roles, str) else roles[weekend],
        "weekend": weekend, "data_version": version, "result_version": sheets.get(weekend), "dagster_run": dagster_run,
    } for weekend, version in versions.items()]))


def remember_predictions(connection: duckdb.DuckDBPyConnection, rows: pd.DataFrame, predictions: pd.DataFrame,
                         dagster_run: str | None = None, predictor: str | None = None) -> None:
    """Keep the rows that predictions were made from.

    Args:
        connection: Of `WarehouseFile.write`.
        rows: Rows of `features.ranking` as the ranker got them.
        predictions: Rows of `ranking.predictions` made from them: `predictions.rank`.
        dagster_run: In which run.
        predictor: As for `prediction_id`.
    """
    slices = predictions[["weekend", "stage", "checkpoint"]].drop_duplicates()
    if slices.empty:
        return
    ids = [prediction_id(row.weekend, row.stage, row.checkpoint, predictor) for row in slices.itertuples()]
    seen = rows[rows["weekend"].isin(slices["weekend"])]
    versions = {weekend: data_version(known) for weekend, known in seen.groupby("weekend")}
    _store_versions(connection, seen, versions, slices.assign(
        data_version=slices["weekend"].map(versions), seen_by=ids, kind="prediction", role="predict",
        result_version=None, dagster_run=dagster_run,
    ).drop(columns=["stage", "checkpoint"]))


def rows_seen_by(connection: duckdb.DuckDBPyConnection, seen_by: str, role: str | None = None) -> pd.DataFrame:
    """The rows that a checkpoint or a prediction saw, in the order and the types it saw them in.

    Args:
        connection: To the warehouse.
        seen_by: Id of the checkpoint, or `prediction_id`.
        role: Only those it saw for this.

    Raises:
        Untraceable: Nothing was remembered of it.
    """
    slices = connection.execute(
        "SELECT r.* FROM ranking.rows_seen r JOIN ranking.lineage l USING (data_version) "
        "WHERE l.seen_by = ? AND coalesce(l.role = ?, true) ORDER BY r.race_start, r.driver", [seen_by, role]).df()
    if slices.empty:
        raise Untraceable(f"no rows of {seen_by} were kept{f' as {role}' if role else ''}: it is unknown, or older "
                          "than this record; make it again, and the rows are kept")
    rows = ROWS_SEEN.conform(slices).drop(columns="data_version")
    if rows["started"].isna().all():
        return rows[RANKING.column_names]
    return rows.astype({"started": bool, "classified": bool})


def _store_versions(connection: duckdb.DuckDBPyConnection, rows: pd.DataFrame, versions: Mapping[str, str],
                    seen: pd.DataFrame) -> None:
    """Rows by the version of their weekend, where they are not there yet, and who saw them."""
    stored_versions = {version for (version,) in connection.execute(
        "SELECT DISTINCT data_version FROM ranking.rows_seen WHERE data_version IN (SELECT unnest(?::VARCHAR[]))",
        [list(versions.values())]).fetchall()}
    rows = rows.assign(data_version=rows["weekend"].map(versions))
    fresh = rows[~rows["data_version"].isin(stored_versions)]
    unknown = [name for name in TARGETS if name not in rows]
    replace_slices(connection, ROWS_SEEN, fresh.assign(**dict.fromkeys(unknown))[ROWS_SEEN.column_names])
    counts = rows["weekend"].value_counts()
    replace_slices(connection, LINEAGE, seen.assign(n_rows=seen["weekend"].map(counts)), accept_fewer_rows=True)
