"""How far data can be believed: made up, provisional, stale. Said in sentences, the same in replies and on pages."""
from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import duckdb

from f1_pipelines.serve.finishing_orders import FinishingOrder
from f1_pipelines.tables.features import STAGES

SAMPLE_NOTICE = "SAMPLE: a season driven by the simulator of this project. No result in it is real."


@dataclass(frozen=True)
class DataNotices:
    """What must be said beside data of a weekend, or of the whole warehouse. A text is None where all is well."""

    sample: str | None = None
    provisional: str | None = None
    stale: str | None = None
    look_back: str | None = None

    def sentences(self) -> list[str]:
        """All there is to say, the gravest first."""
        return [text for text in (self.sample, self.stale, self.provisional, self.look_back) if text]


def data_notices(connection: duckdb.DuckDBPyConnection, order: FinishingOrder | None = None,
                 weekend: str | None = None) -> DataNotices:
    """What to say of the warehouse, and of one weekend or order of it."""
    key = order.weekend if order else weekend
    return DataNotices(
        sample=SAMPLE_NOTICE if _is_sample(connection) else None,
        provisional=_provisional(connection, key) if key else None,
        stale=(_stale_prediction(connection, order) if order else None) or _missing_results(connection),
        look_back=_hindsight(connection, order) if order else None)


def newest_result(connection: duckdb.DuckDBPyConnection) -> tuple[str, datetime] | None:
    """The last weekend with a result, and when that was fetched."""
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
    return f"PROVISIONAL: the result of {weekend} is not official yet and may change." \
        if statuses and statuses[0] == "provisional" else None


def _missing_results(connection: duckdb.DuckDBPyConnection) -> str | None:
    """Races that are over and not stored, counted from the last one that is."""
    missing = [key for (key,) in connection.execute("""
        SELECT weekend FROM race.sessions WHERE session = 'race' AND state = 'overdue' AND starts_at > (
            SELECT max(starts_at) FROM race.sessions WHERE session = 'race' AND state = 'done')
        ORDER BY starts_at""").fetchall()]
    if not missing:
        return None
    if len(missing) == 1:
        return f"STALE: the race of {missing[0]} is over and not stored here."
    return f"STALE: {len(missing)} races are over and not stored here, the first {missing[0]}."


def _stale_prediction(connection: duckdb.DuckDBPyConnection, order: FinishingOrder) -> str | None:
    """A prediction that could be made anew from more than it was made from, for a race that is still to come."""
    if order.made_at is None or not order.stored or order.rows["actual_position"].notna().any():
        return None
    [(reached,)] = connection.execute("SELECT any_value(stage) FROM features.ranking WHERE weekend = ?",
                                      [order.weekend]).fetchall()
    if reached and STAGES.index(reached) > STAGES.index(order.stage):
        return f"STALE: predicted from {order.stage}, though {reached} is known by now; run the job pre_race."
    if not order.promoted:
        return f"STALE: predicted by {order.name}, which is not the promoted model any more; run the job pre_race."
    return None


def _hindsight(connection: duckdb.DuckDBPyConnection, order: FinishingOrder) -> str | None:
    """An order that is no forecast, because its model knew the race or because it was made afterwards."""
    if order.in_sample:
        return f"LOOK BACK, no forecast: the model {order.name} has learnt from this race."
    [(start,)] = connection.execute("SELECT race_start FROM race.calendar WHERE weekend = ?",
                                    [order.weekend]).fetchall()
    if order.made_at and order.made_at > start:
        return f"Made after the race, by a model that has learnt from none later than {order.trained_through}."
    return None
