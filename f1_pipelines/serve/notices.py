"""Warnings about stored data (sample, provisional, stale) as sentences, the same in API replies and on pages."""
from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import duckdb

from f1_pipelines.serve.finishing_orders import FinishingOrder
from f1_pipelines.tables.features import STAGES

SAMPLE_NOTICE = "SAMPLE: the results come from this project's simulator. None of them is real."


@dataclass(frozen=True)
class DataNotices:
    """Warnings about a weekend or the whole warehouse; None where there is nothing to warn about."""

    sample: str | None = None
    provisional: str | None = None
    stale: str | None = None
    hindsight: str | None = None

    def sentences(self) -> list[str]:
        """The warnings, the most serious first."""
        return [text for text in (self.sample, self.stale, self.provisional, self.hindsight) if text]


def data_notices(connection: duckdb.DuckDBPyConnection, order: FinishingOrder | None = None,
                 weekend: str | None = None) -> DataNotices:
    """Collect the warnings about the warehouse, and about one finishing order or weekend if given."""
    key = order.weekend if order else weekend
    return DataNotices(
        sample=SAMPLE_NOTICE if _is_sample(connection) else None,
        provisional=_provisional(connection, key) if key else None,
        stale=(_stale_prediction(connection, order) if order else None) or _missing_results(connection),
        hindsight=_hindsight(connection, order) if order else None)


def newest_result(connection: duckdb.DuckDBPyConnection) -> tuple[str, datetime] | None:
    """The last weekend with a result and when that result was fetched; None without results."""
    return connection.execute(
        "SELECT r.weekend, max(r.fetched_at) FROM race.current_results r JOIN race.calendar c USING (weekend) "
        "GROUP BY r.weekend, c.race_start ORDER BY c.race_start DESC LIMIT 1").fetchone()


def _is_sample(connection: duckdb.DuckDBPyConnection) -> bool:
    [(rows,)] = connection.execute("SELECT (SELECT count(*) FROM race.results WHERE source = 'sample') + "
                                   "(SELECT count(*) FROM race.qualifying WHERE source = 'sample')").fetchall()
    return rows > 0


def _provisional(connection: duckdb.DuckDBPyConnection, weekend: str) -> str | None:
    statuses = connection.execute("SELECT DISTINCT result_status FROM race.current_results WHERE weekend = ?",
                                  [weekend]).fetchone()
    return f"PROVISIONAL: the result of {weekend} is not official yet and can change." \
        if statuses and statuses[0] == "provisional" else None


def _missing_results(connection: duckdb.DuckDBPyConnection) -> str | None:
    """Warn about races that are over but not stored, after the last stored one."""
    missing = [key for (key,) in connection.execute("""
        SELECT weekend FROM race.sessions WHERE session = 'race' AND state = 'overdue' AND starts_at > (
            SELECT max(starts_at) FROM race.sessions WHERE session = 'race' AND state = 'done')
        ORDER BY starts_at""").fetchall()]
    if not missing:
        return None
    if len(missing) == 1:
        return f"STALE: the race of {missing[0]} is over but not stored."
    return f"STALE: {len(missing)} races are over but not stored, the first is {missing[0]}."


def _stale_prediction(connection: duckdb.DuckDBPyConnection, order: FinishingOrder) -> str | None:
    """Warn if a newer forecast of an upcoming race is possible: from later data, or by the promoted model."""
    if order.made_at is None or not order.stored or order.rows["actual_position"].notna().any():
        return None
    [(reached,)] = connection.execute("SELECT any_value(stage) FROM features.ranking WHERE weekend = ?",
                                      [order.weekend]).fetchall()
    if reached and STAGES.index(reached) > STAGES.index(order.stage):
        return f"STALE: the forecast uses data up to {order.stage}; {reached} is available: run the job pre_race."
    if not order.promoted:
        return f"STALE: the forecast is by {order.name}, which is no longer the promoted model: run the job pre_race."
    return None


def _hindsight(connection: duckdb.DuckDBPyConnection, order: FinishingOrder) -> str | None:
    """Warn if an order is no forecast: its model was trained on the race, or it was computed afterwards."""
    if order.in_sample:
        return f"IN-SAMPLE: not a forecast; the model {order.name} was trained on this race."
    [(start,)] = connection.execute("SELECT race_start FROM race.calendar WHERE weekend = ?",
                                    [order.weekend]).fetchall()
    if order.made_at and order.made_at > start:
        return f"Computed after the race, by a model trained on races up to {order.trained_through}."
    return None
