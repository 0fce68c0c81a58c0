"""Read the race history for features and evaluation from the warehouse."""
from __future__ import annotations

import hashlib
from dataclasses import dataclass

import duckdb
import pandas as pd

from f1_pipelines.tables.race_faults import BROKEN_ORDER, IMPOSSIBLE_GRID, UNLEARNABLE, UNSOUND_QUALIFYING


@dataclass(frozen=True)
class RaceHistory:
    """The frames that features are computed from: official classifications only, in their current version.

    Values from faulty sources are missing here, and so in features, form and outcomes: the outcome of a race whose
    classification has a place twice, the times of a qualifying that lacks cars, the slots of an impossible grid. The
    rows of their drivers stay.
    """

    calendar: pd.DataFrame
    results: pd.DataFrame
    qualifying: pd.DataFrame
    practice: pd.DataFrame
    grid: pd.DataFrame


def data_version(rows: pd.DataFrame) -> str:
    """Identify a training or evaluation set: sources and digest of its rows (features and outcome) in any order.

    Only these rows count, so a new race does not change the version of an old training set.
    """
    content = rows.sort_values(["weekend", "driver"], ignore_index=True).drop(columns=["feature_version"],
                                                                              errors="ignore")
    plain = content.astype({name: "string" for name in content.columns})
    digest = hashlib.sha256(pd.util.hash_pandas_object(plain, index=False).to_numpy().tobytes()).hexdigest()[:12]
    return "-".join([*sorted(rows["source"].dropna().unique()), digest])


def read_history(connection: duckdb.DuckDBPyConnection) -> RaceHistory:
    """Read all data that features may use. Provisional classifications are excluded."""
    results = _frame(connection, "SELECT * FROM race.current_results WHERE result_status <> 'provisional' "
                                 "ORDER BY weekend, driver")
    qualifying = _frame(connection, "SELECT * FROM race.qualifying ORDER BY weekend, session, driver")
    grid = _frame(connection, "SELECT * FROM race.grid ORDER BY weekend, session, driver")
    no_order, no_grid, no_qualifying = (_weekends(connection, sql) for sql in (
        BROKEN_ORDER, IMPOSSIBLE_GRID, UNSOUND_QUALIFYING))
    _blank(results, results["weekend"].isin(no_order), _OUTCOME)
    _blank(results, results["weekend"].isin(no_grid), ("grid_position",))
    _blank(grid, grid["weekend"].isin(no_grid) & (grid["session"] == "race"), ("grid_position",))
    _blank(qualifying, qualifying["weekend"].isin(no_qualifying) & (qualifying["session"] == "qualifying"), _TIMES)
    return RaceHistory(
        calendar=_frame(connection, "SELECT * FROM race.calendar ORDER BY race_start"), results=results,
        qualifying=qualifying, grid=grid,
        practice=_frame(connection, "SELECT * FROM race.practice ORDER BY weekend, session, driver"))


def unlearnable_weekends(connection: duckdb.DuckDBPyConnection) -> pd.DataFrame:
    """Rows of `race.unlearnable_weekends`: weekend, fault, detail. Runs the SQL, because old files lack the view."""
    return connection.sql(UNLEARNABLE).df()


_OUTCOME = ("official_order", "finish_position", "points", "laps", "race_time_s", "gap_s", "gap_laps", "fastest_lap_s")
_TIMES = ("position", "q1_s", "q2_s", "q3_s")


def _weekends(connection: duckdb.DuckDBPyConnection, rule: str) -> list[str]:
    return [weekend for (weekend,) in connection.sql(f"SELECT DISTINCT weekend FROM ({rule})").fetchall()]


def _blank(frame: pd.DataFrame, rows: pd.Series, columns: tuple[str, ...]) -> None:
    """Set these values to missing, in place."""
    if rows.any():
        frame.loc[rows, list(columns)] = pd.NA


def _frame(connection: duckdb.DuckDBPyConnection, sql: str) -> pd.DataFrame:
    return connection.sql(sql).df().convert_dtypes()
