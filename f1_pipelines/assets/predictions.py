"""Predicted finishing orders."""
from datetime import datetime

import dagster as dg
import pandas as pd

from f1_pipelines.assets.checks import keys_are_unique, no_rows_check
from f1_pipelines.assets.features import RANKING_BY_WEEKEND, ranking_features, stored_features
from f1_pipelines.assets.metadata import described, preview, weekends_materialized
from f1_pipelines.assets.partitions import weekends_of_run
from f1_pipelines.assets.ranking import pretrained_ranker
from f1_pipelines.features.history import read_history
from f1_pipelines.predictions import promoted_checkpoint, rank, with_outcome
from f1_pipelines.resources.checkpoints import Checkpoints
from f1_pipelines.resources.race_data import Clock
from f1_pipelines.resources.warehouse import Warehouse
from f1_pipelines.tables import ranking as tables
from f1_pipelines.warehouse.replace import replace_slices


@dg.asset(**RANKING_BY_WEEKEND, kinds={"python", "pytorch", "duckdb"}, deps=[ranking_features, pretrained_ranker],
          metadata=described(tables.PREDICTIONS))
def race_predictions(context: dg.AssetExecutionContext, warehouse: Warehouse, checkpoints: Checkpoints,
                     clock: Clock) -> dg.MaterializeResult:
    """The promoted ranker's finishing order. One row per (weekend, driver, checkpoint, stage).

    A prediction made before the race, by whatever checkpoint, is kept as it was made and only gets its outcome; one
    made afterwards says so in `made_at`, and `in_sample` where the model had learnt from that race.
    """
    from f1_pipelines.models.checkpoints import load_checkpoint

    asked = [weekend.key for weekend in weekends_of_run(context)]
    with warehouse.read() as connection:
        checkpoint, folder = promoted_checkpoint(connection, checkpoints.folder)
        results = read_history(connection).results
        features = stored_features(connection, asked)
        forecasts = tables.PREDICTIONS.conform(connection.execute(
            "SELECT p.* FROM ranking.predictions p JOIN race.calendar c USING (weekend) WHERE made_at < race_start "
            "AND weekend IN (SELECT unnest(?::VARCHAR[]))", [asked]).df())
    if features.empty:
        raise dg.Failure(f"no features of {asked[0]}{' to ' + asked[-1] if len(asked) > 1 else ''}; materialize "
                         "ranking_features for it first", allow_retries=False)
    fresh = rank(features, load_checkpoint(folder).trained, checkpoint, clock.now())
    rows = with_outcome(_keep_forecasts(forecasts, fresh, features, clock.now()), results)
    with warehouse.write(f"race_predictions {asked[-1]}") as connection:
        replace_slices(connection, tables.PREDICTIONS, rows, accept_fewer_rows=True)
    judged = rows[rows["actual_position"].notna()]
    return weekends_materialized(context, len(rows), {
        "checkpoint": checkpoint, "weekends": int(rows["weekend"].nunique()),
        "weekends_in_sample": int(rows.loc[rows["in_sample"], "weekend"].nunique()),
        "exact_matches": int(judged["exact_match"].sum()),
    }, {"preview": preview(rows.sort_values(["weekend", "predicted_position"])[
        ["weekend", "predicted_position", "driver", "constructor", "score", "stage", "actual_position"]], 22)})


def _keep_forecasts(forecasts: pd.DataFrame, fresh: pd.DataFrame, features: pd.DataFrame,
                    now: datetime) -> pd.DataFrame:
    """Fresh predictions beside the forecasts of races that have started; a forecast wins over the same made again."""
    run = set(features.loc[features["race_start"] <= now, "weekend"])
    kept = forecasts[forecasts["weekend"].isin(run)]
    slices = list(tables.PREDICTIONS.slice_by)
    fresh = fresh[~pd.MultiIndex.from_frame(fresh[slices]).isin(pd.MultiIndex.from_frame(kept[slices]))]
    return pd.concat([kept, fresh], ignore_index=True) if len(kept) else fresh


prediction_checks = [
    keys_are_unique(race_predictions, tables.PREDICTIONS),
    no_rows_check(
        race_predictions, "predictions_are_permutations", "A predicted order has each place once.",
        """SELECT weekend, checkpoint, stage, count(*) AS cars, max(predicted_position) AS last_place
           FROM ranking.predictions GROUP BY ALL
           HAVING count(*) <> count(DISTINCT predicted_position) OR count(*) <> max(predicted_position)"""),
]
