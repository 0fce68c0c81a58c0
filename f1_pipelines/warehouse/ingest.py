"""Store the rows that a source returned for some weekends, all or none."""
from __future__ import annotations

import duckdb
import pandas as pd

from f1_pipelines.sources.base import Fetched
from f1_pipelines.tables.catalog import BY_NAME
from f1_pipelines.tables.race import RACE_TABLES, RESULTS, SPRINT_RESULTS
from f1_pipelines.warehouse.replace import add_versions, replace_slices


class MixedSources(ValueError):
    """Sample rows and real rows would be mixed in one warehouse."""


_VERSIONED = {RESULTS.qualified, SPRINT_RESULTS.qualified}
_LABELLED = [table for table in RACE_TABLES if "source" in table.column_names]


def store(connection: duckdb.DuckDBPyConnection, fetched: Fetched, accept_fewer_rows: bool = False) -> dict[str, int]:
    """Write every table of `fetched` inside the caller's transaction. Return the rows written by table.

    A classification equal to the stored one adds no version and counts 0 rows. Results set a weekend's state to `done`.

    Raises:
        MixedSources: Sample rows and real rows would be mixed.
        InvalidRows: A frame does not fit its table.
        ShrunkSlice: A slice would lose many rows and `accept_fewer_rows` is not set.
    """
    for frame in fetched.tables.values():
        refuse_mixture(connection, frame)
    written = {}
    for name, frame in fetched.tables.items():
        if name in _VERSIONED:
            verdicts = add_versions(connection, BY_NAME[name], frame)
            fresh = set(verdicts.loc[verdicts["is_new"], "weekend"])
            written[name] = int(frame["weekend"].isin(fresh).sum())
        else:
            written[name] = replace_slices(connection, BY_NAME[name], frame, accept_fewer_rows)
    if RESULTS.qualified in fetched.tables:
        connection.execute("UPDATE race.calendar SET state = 'done' "
                           "WHERE weekend IN (SELECT weekend FROM race.results)")
    return written


def refuse_mixture(connection: duckdb.DuckDBPyConnection, frame: pd.DataFrame) -> None:
    """Check that a frame doesn't mix sample weekends with stored real ones, or real with sample ones.

    Raises:
        MixedSources: It does.
    """
    new = set(frame["source"]) - {"embedded"}
    if not new:
        return
    stored = {source for table in _LABELLED for (source,) in connection.execute(
        f"SELECT DISTINCT source FROM {table.qualified} WHERE source <> 'embedded'").fetchall()}
    others = {source for source in stored if (source == "sample") != ("sample" in new)}
    if others:
        raise MixedSources(f"this warehouse holds weekends of the source {', '.join(sorted(others))}, rows of "
                           f"{', '.join(sorted(new))} don't go into it: name another file in F1_WAREHOUSE, or "
                           "delete this one and its published copy to start anew")


def stored_weekends(connection: duckdb.DuckDBPyConnection, table: str) -> set[str]:
    """The weekends with rows in `table` (qualified name)."""
    return set(connection.execute(f"SELECT DISTINCT weekend FROM {table}").df()["weekend"])


def weekends_of(fetched: Fetched) -> list[str]:
    """The weekends with rows in `fetched`, sorted."""
    frames = [frame["weekend"] for frame in fetched.tables.values()]
    return sorted(pd.concat(frames).unique()) if frames else []
