"""The ranker's features, and helpers for the other ranking assets."""
from typing import Any

import dagster as dg
import pandas as pd

from f1_pipelines.assets.checks import keys_are_unique, no_rows_check
from f1_pipelines.assets.metadata import described, listing, preview, weekends_materialized
from f1_pipelines.assets.partitions import race_weekends, weekends_of_run
from f1_pipelines.assets.race_data import practice_results, qualifying_results, race_results
from f1_pipelines.features.history import read_history, unlearnable_weekends
from f1_pipelines.features.ranking import CORE_FEATURES, FEATURE_VERSION, build_ranking_features
from f1_pipelines.features.stored import learning_rows, stored_features
from f1_pipelines.resources.warehouse import Warehouse
from f1_pipelines.tables.features import RANKING
from f1_pipelines.tables.race_faults import STARTER_WITHOUT_FEATURES
from f1_pipelines.warehouse.replace import replace_slices

# Unpartitioned assets need the backfill policy too: the CLI accepts a range only if every selected asset has it.
RANKING_GROUP: dict[str, Any] = {"group_name": "ranking", "owners": ["team:ranking"], "code_version": "1",
                 "backfill_policy": dg.BackfillPolicy.single_run()}
RANKING_BY_WEEKEND: dict[str, Any] = {**RANKING_GROUP, "partitions_def": race_weekends}


@dg.asset(
    **RANKING_BY_WEEKEND, kinds={"python", "duckdb"}, metadata=described(RANKING),
    # Form needs the results of all earlier races; this weekend's own result is never used.
    deps=[practice_results, qualifying_results, dg.AssetDep(race_results, partition_mapping=dg.AllPartitionMapping())],
)
def ranking_features(context: dg.AssetExecutionContext, warehouse: Warehouse) -> dg.MaterializeResult[None]:
    """What was known of each driver before the start. One row per (weekend, driver).

    Replaces the rows of these weekends and of stored later weekends whose form changes; a rerun changes nothing. In a
    range, a race that can't be learnt from (`race.unlearnable_weekends`) gets rows too, from its valid data: once its
    results are corrected, they are in place.
    """
    weekends = [weekend.key for weekend in weekends_of_run(context)]
    # Read and write in one transaction, or this run could undo a concurrent run of the next weekend.
    with warehouse.write(f"ranking_features {weekends[-1]}") as connection:
        history = read_history(connection)
        stored = stored_features(connection)
        rebuilt = build_ranking_features(history.calendar, history.results, history.qualifying, history.practice,
                                         history.grid)
        features = rebuilt[rebuilt["weekend"].isin(weekends)]
        if features.empty and len(weekends) == 1:
            raise dg.Failure(f"{weekends[0]}: no entry list is stored for this weekend; load practice_results or "
                             "race_results of it or of an earlier weekend of the season", allow_retries=False)
        # New or amended results change the form of later weekends: refresh their stored rows.
        stale = sorted(set(_stale_weekends(stored, rebuilt)) - set(weekends))
        # An entry list may shrink when a driver is replaced.
        written = replace_slices(connection, RANKING, rebuilt[rebuilt["weekend"].isin([*weekends, *stale])],
                                 accept_fewer_rows=True)
        unlearnable = unlearnable_weekends(connection)
    return weekends_materialized(context, written, {
        "feature_version": FEATURE_VERSION, "later_weekends_refreshed": len(stale),
        "stages": {str(k): int(v) for k, v in features.groupby("stage")["weekend"].nunique().items()},
        "share_missing": {name: round(float(features[name].isna().mean()), 3) for name in CORE_FEATURES},
    }, {**not_learnt_from(unlearnable),
        "preview": preview(features[["weekend", "driver", "constructor", "stage", *CORE_FEATURES[:6]]])})


def training_rows(warehouse: Warehouse) -> pd.DataFrame:
    """Read `features.stored.learning_rows` from the published warehouse."""
    with warehouse.read() as connection:
        return learning_rows(connection)


def not_learnt_from(unlearnable: pd.DataFrame) -> dict[str, Any]:
    """Metadata that names the races left out of training, and why; empty if none are."""
    lines = [f"{row.weekend}: {row.detail}" for row in unlearnable.itertuples()]
    return {"weekends_not_learnt_from": listing(lines)} if lines else {}


def _stale_weekends(stored: pd.DataFrame, rebuilt: pd.DataFrame) -> list[str]:
    """Weekends whose stored rows differ from the rebuilt ones; ignores weekends that are no longer built."""
    new, old = ({key: rows.reset_index(drop=True) for key, rows in frame.sort_values("driver").groupby("weekend")}
                for frame in (rebuilt, stored))
    return [key for key, rows in old.items() if key in new and not rows.equals(new[key])]


feature_checks = [
    keys_are_unique(ranking_features, RANKING),
    no_rows_check(
        ranking_features, "starters_have_features",
        "A starter without a row would be left out of training and ranking.",
        STARTER_WITHOUT_FEATURES),
    no_rows_check(
        ranking_features, "run_races_have_grid_and_qualifying",
        "A race loaded without them trains on form alone; load qualifying_results for it.",
        """SELECT weekend, count(*) AS cars, count(grid_place) AS with_grid, count(qualifying_place) AS with_qualifying
           FROM features.ranking JOIN (SELECT DISTINCT weekend FROM race.current_results) USING (weekend)
           GROUP BY ALL HAVING count(grid_place) = 0 OR count(qualifying_place) = 0""", blocking=False),
    # Over the whole table, for any run: with a hundred rows of five races, one bad race can't make a feature constant.
    no_rows_check(
        ranking_features, "no_feature_is_constant",
        "A column with a single value, or all missing, is a sentinel or a broken join.",
        " UNION ALL ".join(f"SELECT '{name}' AS feature, any_value({name}) AS value FROM features.ranking "
                           f"HAVING count(*) > 100 AND count(DISTINCT {name}) <= 1" for name in CORE_FEATURES)),
]
