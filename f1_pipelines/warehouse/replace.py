"""Replace slices of a table, and add versions of classifications."""
from __future__ import annotations

import duckdb
import pandas as pd
import pyarrow as pa

from f1_pipelines.tables.schema import Table

# A correction may drop a few lap rows; a source that loses more is broken.
SMALLEST_SHARE_KEPT = 0.9


class ShrunkSlice(ValueError):
    """A source returned far fewer rows than are stored, which stay. The message names the slice."""


def replace_slices(connection: duckdb.DuckDBPyConnection, table: Table, frame: pd.DataFrame,
                   accept_fewer_rows: bool = False) -> int:
    """Replace the stored slices by those of a frame, by column name, inside the caller's transaction.

    Args:
        connection: Of `WarehouseFile.write`.
        table: Declares the columns, the key and the slices.
        frame: Any number of complete slices. Other slices stay unchanged.
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
    """Store each weekend's classification as a new version, unless it equals the latest one of its kind.

    A changed classification is stored as `amended` if an official one is stored already.

    Args:
        connection: Of `WarehouseFile.write`.
        table: `race.results` or `race.sprint_results`.
        frame: Complete classifications; `version` is set here.

    Returns:
        One row per weekend of the frame: `weekend`, `version`, `is_new`.
    """
    rows = table.conform(frame.assign(version=1))
    stored = connection.execute(
        f"SELECT weekend, version, content_hash, any_value(result_status) AS result_status FROM {table.qualified} "
        "WHERE weekend IN (SELECT unnest(?::VARCHAR[])) GROUP BY ALL ORDER BY weekend, version",
        [list(rows["weekend"].unique())]).df()
    verdicts, new_sheets = [], []
    for weekend, sheet in rows.groupby("weekend", sort=False):
        versions = stored[stored["weekend"] == weekend]
        provisional = sheet["result_status"].iloc[0] == "provisional"
        # Compare provisional with provisional sheets, final with final: a late provisional sheet doesn't amend.
        comparable = versions[(versions["result_status"] == "provisional") == provisional]
        if len(comparable) and comparable["content_hash"].iloc[-1] == sheet["content_hash"].iloc[0]:
            verdicts.append((weekend, int(comparable["version"].iloc[-1]), False))
            continue
        version = int(versions["version"].max()) + 1 if len(versions) else 1
        status = sheet["result_status"] if provisional or comparable.empty else "amended"
        new_sheets.append(sheet.assign(version=version, result_status=status))
        verdicts.append((weekend, version, True))
    if new_sheets:
        _register(connection, table.conform(pd.concat(new_sheets)))
        connection.execute(f"INSERT INTO {table.qualified} BY NAME SELECT * FROM _new_rows")
        connection.unregister("_new_rows")
    return pd.DataFrame(verdicts, columns=["weekend", "version", "is_new"])


def _register(connection: duckdb.DuckDBPyConnection, rows: pd.DataFrame) -> None:
    # Arrow turns every missing value into NULL, never NaN.
    connection.register("_new_rows", pa.Table.from_pandas(rows, preserve_index=False))


def _refuse_shrunk(connection: duckdb.DuckDBPyConnection, table: Table, names: str) -> None:
    shrunk = connection.execute(f"""
        WITH new AS (SELECT {names}, count(*) AS n_new FROM _new_rows GROUP BY ALL),
             stored AS (SELECT {names}, count(*) AS n_stored FROM {table.qualified} GROUP BY ALL)
        SELECT * FROM new JOIN stored USING ({names}) WHERE n_new < n_stored * ? LIMIT 3
    """, [SMALLEST_SHARE_KEPT]).fetchall()
    if shrunk:
        *key, new, stored = shrunk[0]
        raise ShrunkSlice(f"{table.qualified} {' '.join(map(str, key))}: the source gives {new} rows, {stored} are "
                          "stored and stay; if fewer is right, run again with accept_fewer_rows")
