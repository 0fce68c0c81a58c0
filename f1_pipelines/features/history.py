"""What the feature builder and the evaluation read from the warehouse."""
from __future__ import annotations

import hashlib
from dataclasses import dataclass

import duckdb
import pandas as pd


@dataclass(frozen=True)
class RaceHistory:
    """The frames that features are computed from: official classifications only, in their current version."""

    calendar: pd.DataFrame
    results: pd.DataFrame
    qualifying: pd.DataFrame
    practice: pd.DataFrame
    grid: pd.DataFrame


def data_version(rows: pd.DataFrame) -> str:
    """Sources and digest of feature rows with their outcome, whatever order they are in: what is learnt or judged from.

    Races outside the rows don't count, so that a new race gives no new version of an old training set.
    """
    said = rows.sort_values(["weekend", "driver"], ignore_index=True).drop(columns=["feature_version"], errors="ignore")
    plain = said.astype({name: "string" for name in said.columns})
    digest = hashlib.sha256(pd.util.hash_pandas_object(plain, index=False).to_numpy().tobytes()).hexdigest()[:12]
    return "-".join([*sorted(rows["source"].dropna().unique()), digest])


def read_history(connection: duckdb.DuckDBPyConnection) -> RaceHistory:
    """Everything that features may look at. Provisional classifications stay out: only official ones train."""
    return RaceHistory(
        calendar=_frame(connection, "SELECT * FROM race.calendar ORDER BY race_start"),
        results=_frame(connection, "SELECT * FROM race.current_results WHERE result_status <> 'provisional' "
                                   "ORDER BY weekend, driver"),
        qualifying=_frame(connection, "SELECT * FROM race.qualifying ORDER BY weekend, session, driver"),
        practice=_frame(connection, "SELECT * FROM race.practice ORDER BY weekend, session, driver"),
        grid=_frame(connection, "SELECT * FROM race.grid ORDER BY weekend, session, driver"),
    )


def _frame(connection: duckdb.DuckDBPyConnection, sql: str) -> pd.DataFrame:
    return connection.sql(sql).df().convert_dtypes()
