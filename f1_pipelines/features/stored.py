"""Read stored features, with outcomes for training and evaluation of rankers."""
from __future__ import annotations

import duckdb
import pandas as pd

from f1_pipelines.evaluation.targets import with_targets
from f1_pipelines.features.history import read_history, unlearnable_weekends
from f1_pipelines.tables.features import RANKING


def stored_features(connection: duckdb.DuckDBPyConnection, weekends: list[str] | None = None) -> pd.DataFrame:
    """Rows of `features.ranking` of these weekends (default all), ordered by race start and driver id."""
    rows = connection.execute("SELECT * FROM features.ranking WHERE ? OR weekend IN (SELECT unnest(?::VARCHAR[])) "
                              "ORDER BY race_start, driver", [weekends is None, weekends or []]).df()
    return RANKING.conform(rows)


def learning_rows(connection: duckdb.DuckDBPyConnection) -> pd.DataFrame:
    """Stored features and outcomes of the starters of completed races, without unlearnable races."""
    rows = with_targets(stored_features(connection), read_history(connection).results)
    return rows[rows["started"] & ~rows["weekend"].isin(unlearnable_weekends(connection)["weekend"])]
