"""Replacing slices of a table, and adding a version of a classification."""
from __future__ import annotations

import duckdb
import pandas as pd
import pyarrow as pa

from f1_pipelines.tables.schema import Table

# A correction may drop a few lap rows; a source that suddenly knows much less is ill, not right.
SMALLEST_SHARE_KEPT = 0.9


class ShrunkSlice(ValueError):
    """A source now gives far fewer rows than are stored. They stay; the message says which."""


def replace_slices(connection: duckdb.DuckDBPyConnection, table: Table, frame: pd.DataFrame,
                   accept_fewer_rows: bool = False) -> int:
    """Put the frame's slices in the place of the stored ones, by column name, inside the caller's transaction.

    Args:
        connection: Of `WarehouseFile.write`.
        table: Declares columns, key and what a slice is.
        frame: Any number of slices, whole. Slices it does not name are left alone.
        accept_fewer_rows: Let a slice lose more than a tenth of its rows.

    Returns:
        Rows written.

    Raises:
        InvalidRows: The frame does not fit the table.
        ShrunkSlice: A slice would lose more than a tenth of its rows.
    """
    rows = table.conform(frame)
    if rows.empty:
        return 0
    _register(connection, rows)
    same_slice = " AND ".join(f'stored."{name}" IS NOT DISTINCT FROM new."{name}"' for name in table.slice_by)
    names = ", ".join(f'"{name}"' for name in table.slice_by)
    if not accept_fewer_rows:
        _refuse_shrunk(connection, table, names)
    connection.execute(
        f"DELETE FROM {table.qualified} AS stored USING (SELECT DISTINCT {names} FROM _new_rows) AS new "
        f"WHERE {same_slice}")
    connection.execute(f"INSERT INTO {table.qualified} BY NAME SELECT * FROM _new_rows")
    connection.unregister("_new_rows")
    return len(rows)


def add_versions(connection: duckdb.DuckDBPyConnection, table: Table, frame: pd.DataFrame) -> pd.DataFrame:
    """Store each weekend's classification as a new version, unless the latest of its kind says the same.

    Args:
        connection: Of `WarehouseFile.write`.
        table: `race.results` or `race.sprint_results`.
        frame: Whole classifications; `version` is set here, whatever the source put in.

    Returns:
        One row per weekend of the frame: `weekend`, `version`, `is_new`. A classification that was official and comes
        back with another content is stored as `amended`.
    """
    rows = table.conform(frame.assign(version=1))
    stored = connection.execute(
        f"SELECT weekend, version, content_hash, any_value(result_status) AS result_status FROM {table.qualified} "
        "WHERE weekend IN (SELECT unnest(?::VARCHAR[])) GROUP BY ALL ORDER BY weekend, version",
        [list(rows["weekend"].unique())]).df()
    verdicts, fresh = [], []
    for weekend, sheet in rows.groupby("weekend", sort=False):
        versions = stored[stored["weekend"] == weekend]
        provisional = sheet["result_status"].iloc[0] == "provisional"
        # Like with like: a provisional sheet that comes late says nothing new about the official one.
        alike = versions[(versions["result_status"] == "provisional") == provisional]
        if len(alike) and alike["content_hash"].iloc[-1] == sheet["content_hash"].iloc[0]:
            verdicts.append((weekend, int(alike["version"].iloc[-1]), False))
            continue
        version = int(versions["version"].max()) + 1 if len(versions) else 1
        status = sheet["result_status"] if provisional or alike.empty else "amended"
        fresh.append(sheet.assign(version=version, result_status=status))
        verdicts.append((weekend, version, True))
    if fresh:
        _register(connection, table.conform(pd.concat(fresh)))
        connection.execute(f"INSERT INTO {table.qualified} BY NAME SELECT * FROM _new_rows")
        connection.unregister("_new_rows")
    return pd.DataFrame(verdicts, columns=["weekend", "version", "is_new"])


def _register(connection: duckdb.DuckDBPyConnection, rows: pd.DataFrame) -> None:
    # Through Arrow, so that every missing value arrives as NULL and never as NaN.
    connection.register("_new_rows", pa.Table.from_pandas(rows, preserve_index=False))


def _refuse_shrunk(connection: duckdb.DuckDBPyConnection, table: Table, names: str) -> None:
    shrunk = connection.execute(f"""
        WITH new AS (SELECT {names}, count(*) AS n_new FROM _new_rows GROUP BY ALL),
             stored AS (SELECT {names}, count(*) AS n_stored FROM {table.qualified} GROUP BY ALL)
        SELECT * FROM new JOIN stored USING ({names}) WHERE n_new < n_stored * ? LIMIT 3
    """, [SMALLEST_SHARE_KEPT]).fetchall()
    if shrunk:
        *which, new, stored = shrunk[0]
        raise ShrunkSlice(f"{table.qualified} {' '.join(map(str, which))}: the source gives {new} rows, {stored} are "
                          "stored and stay; if fewer is right, run again with accept_fewer_rows")
