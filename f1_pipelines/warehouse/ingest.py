"""Storing what a source gave for some weekends, all of it or nothing."""
from __future__ import annotations

import duckdb
import pandas as pd

from f1_pipelines.sources.base import Fetched
from f1_pipelines.tables.catalog import BY_NAME
from f1_pipelines.tables.race import RACE_TABLES, RESULTS, SPRINT_RESULTS
from f1_pipelines.warehouse.replace import add_versions, replace_slices


class MixedSources(ValueError):
    """Sample rows and real rows would lie in one warehouse."""


_VERSIONED = {RESULTS.qualified, SPRINT_RESULTS.qualified}
_LABELLED = [table for table in RACE_TABLES if "source" in table.column_names]


def store(connection: duckdb.DuckDBPyConnection, fetched: Fetched, accept_fewer_rows: bool = False) -> dict[str, int]:
    """Write every table of `fetched` inside the caller's transaction; rows written by table.

    A classification that says what the stored one says adds no version, and counts 0. Results make a weekend `done`.

    Raises:
        MixedSources: Sample rows and real rows would meet.
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
    """Keep made-up and real weekends in different files: nobody may take the one for the other.

    Raises:
        MixedSources: The frame is of the sample and the file holds real weekends, or the other way round.
    """
    arriving = set(frame["source"]) - {"embedded"}
    if not arriving:
        return
    stored = {source for table in _LABELLED for (source,) in connection.execute(
        f"SELECT DISTINCT source FROM {table.qualified} WHERE source <> 'embedded'").fetchall()}
    others = {source for source in stored if (source == "sample") != ("sample" in arriving)}
    if others:
        raise MixedSources(f"this warehouse holds weekends of the source {', '.join(sorted(others))}, rows of "
                           f"{', '.join(sorted(arriving))} don't go into it: name another file in F1_WAREHOUSE, or "
                           "delete this one and its published copy to start anew")


def stored_weekends(connection: duckdb.DuckDBPyConnection, table: str) -> set[str]:
    """Weekends that have rows in `table` (qualified name)."""
    return set(connection.execute(f"SELECT DISTINCT weekend FROM {table}").df()["weekend"])


def weekends_of(fetched: Fetched) -> list[str]:
    """Weekends for which `fetched` holds rows, sorted."""
    frames = [frame["weekend"] for frame in fetched.tables.values()]
    return sorted(pd.concat(frames).unique()) if frames else []
