"""Add the prediction targets to the features."""
from __future__ import annotations

import pandas as pd

from f1_pipelines.tables.race import NON_STARTERS

TARGETS = ("official_order", "started", "classified")


def with_targets(features: pd.DataFrame, results: pd.DataFrame) -> pd.DataFrame:
    """Add the outcome to the features, ordered by race start and driver id so that row order reveals no result.

    Args:
        features: Rows of `features.ranking`.
        results: Rows of `race.results`, one per (weekend, driver).

    Returns:
        All rows of `features` with official_order (1..n among the starters, retirements by distance, disqualified
        last; missing if the car did not start or the race is not completed), started and classified (booleans).
    """
    rows = results[["weekend", "driver", "official_order"]].assign(
        started=~results["status"].isin(NON_STARTERS), classified=results["classified"].astype(bool))
    rows["official_order"] = rows["official_order"].where(rows["started"]).groupby(rows["weekend"]).rank()
    joined = features.merge(rows, on=["weekend", "driver"], how="left", validate="1:1")
    return joined.assign(
        official_order=joined["official_order"].astype("Int32"),
        started=joined["started"].eq(True), classified=joined["classified"].eq(True),
    ).sort_values(["race_start", "driver"], ignore_index=True)
