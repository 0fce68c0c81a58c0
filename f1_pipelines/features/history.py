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

    @property
    def data_version(self) -> str:
        """Sources and digest of the classifications, whatever order they were stored in: what a model learns from."""
        hashes = self.results[["weekend", "content_hash"]].drop_duplicates().sort_values("weekend")
        digest = hashlib.sha256("".join(hashes["weekend"] + hashes["content_hash"]).encode()).hexdigest()[:12]
        return "-".join([*sorted(self.results["source"].unique()), digest])

    def until(self, weekend: str) -> RaceHistory:
        """The same without the races after `weekend`."""
        starts = self.calendar.set_index("weekend")["race_start"]
        kept = set(starts.index[starts <= starts[weekend]])
        return RaceHistory(*(frame[frame["weekend"].isin(kept)] for frame in (
            self.calendar, self.results, self.qualifying, self.practice, self.grid)))


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
