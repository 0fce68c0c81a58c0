"""Stored features with their outcome: what rankers learn from and are examined by."""
from __future__ import annotations

import duckdb
import pandas as pd

from f1_pipelines.evaluation.targets import with_targets
from f1_pipelines.features.history import read_history
from f1_pipelines.tables.features import RANKING


def learning_rows(connection: duckdb.DuckDBPyConnection) -> pd.DataFrame:
    """Stored features of the starters of run races, with their outcome, in the order of race start and driver id."""
    features = RANKING.conform(connection.execute("SELECT * FROM features.ranking ORDER BY race_start, driver").df())
    rows = with_targets(features, read_history(connection).results)
    return rows[rows["started"]]
