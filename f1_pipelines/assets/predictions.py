"""Predicted finishing orders, with probabilities for each car."""
from datetime import datetime
from typing import TYPE_CHECKING

import dagster as dg
import pandas as pd

from f1_pipelines.assets.checks import keys_are_unique, no_rows_check
from f1_pipelines.assets.features import RANKING_BY_WEEKEND, ranking_features, training_rows
from f1_pipelines.assets.metadata import described, preview, weekends_materialized
from f1_pipelines.assets.partitions import weekends_of_run
from f1_pipelines.assets.ranker_promotion import promoted_ranker
from f1_pipelines.features.history import read_history
from f1_pipelines.features.stored import stored_features
from f1_pipelines.forecast.predictions import at_each_stage, promoted_checkpoint, rank, with_outcome
from f1_pipelines.lineage.seen import remember_predictions
from f1_pipelines.resources.checkpoints import Checkpoints
from f1_pipelines.resources.race_data import Clock
from f1_pipelines.resources.warehouse import Warehouse
from f1_pipelines.settings import settings
from f1_pipelines.tables import ranking as tables
from f1_pipelines.tables.features import STAGES
from f1_pipelines.warehouse.replace import replace_slices

if TYPE_CHECKING:
    from f1_pipelines.models.trained import TrainedRanker


@dg.asset(**RANKING_BY_WEEKEND, kinds={"python", "pytorch", "duckdb"},
          deps=[ranking_features, promoted_ranker], metadata=described(tables.PREDICTIONS))
def race_predictions(context: dg.AssetExecutionContext, warehouse: Warehouse, checkpoints: Checkpoints,
                     clock: Clock) -> dg.MaterializeResult[None]:
    """The promoted ranker's finishing order and probabilities. One row per (weekend, driver, checkpoint, stage).

    Predicts one order for each stage that the weekend has reached, from what was known then. Before the race, a rerun
    replaces the order of the current stage. After the start, and for earlier stages, the last forecast of any
    checkpoint stays and only gets its outcome. `made_at` shows an order made after the race, and `in_sample` one of a
    model that learnt from it. For future races, `ranking.simulated_predictions` has probabilities from simulated races.
    """
    from f1_pipelines.models.checkpoints import load_checkpoint

    weekends = [weekend.key for weekend in weekends_of_run(context)]
    with warehouse.read() as connection:
        checkpoint, folder = promoted_checkpoint(connection, checkpoints.folder)
        results = read_history(connection).results
        features = stored_features(connection, weekends)
        stored = tables.PREDICTIONS.conform(connection.execute(
            "SELECT * FROM ranking.predictions WHERE weekend IN (SELECT unnest(?::VARCHAR[]))", [weekends]).df())
        starts = dict(connection.execute("SELECT weekend, race_start FROM race.calendar").fetchall())
    if features.empty:
        raise dg.Failure(f"no features of {weekends[0]}{' to ' + weekends[-1] if len(weekends) > 1 else ''}; "
                         "materialize ranking_features for it first", allow_retries=False)
    trained, now = load_checkpoint(folder).trained, clock.now()
    stages = list(at_each_stage(features))
    fresh = pd.concat([rank(known, trained, checkpoint, now) for known in stages], ignore_index=True)
    forecasts = stored[stored["made_at"] < stored["weekend"].map(starts)]
    rows = _keep_forecasts(forecasts, fresh, features, now)
    # Orders of other checkpoints stay; an amended result changes their outcome too.
    rows = with_outcome(pd.concat([rows, _not_among(stored, rows)], ignore_index=True), results)
    with warehouse.write(f"race_predictions {weekends[-1]}") as connection:
        replace_slices(connection, tables.PREDICTIONS, rows, accept_fewer_rows=True)
        for known in stages:
            remember_predictions(connection, known, _stored_now(rows, fresh, known), context.run.run_id)
    simulated = _simulate(context, warehouse, features, results, trained, checkpoint, now)
    with_result = rows[rows["actual_position"].notna()]
    return weekends_materialized(context, len(rows), {
        "checkpoint": checkpoint, "weekends": int(rows["weekend"].nunique()),
        "weekends_in_sample": int(rows.loc[rows["in_sample"], "weekend"].nunique()),
        "exact_matches": int(with_result["exact_match"].sum()), "weekends_simulated": simulated,
    }, {"preview": preview(rows.sort_values(["weekend", "predicted_position"])[
        ["weekend", "stage", "predicted_position", "driver", "score", "p_win", "p_podium", "p_points",
         "expected_position", "actual_position"]], 22)})


def _simulate(context: dg.AssetExecutionContext, warehouse: Warehouse, features: pd.DataFrame, results: pd.DataFrame,
              trained: "TrainedRanker", checkpoint: str, now: datetime) -> int:
    """Simulate future races, and a single requested weekend never simulated before. Return the number of weekends."""
    from f1_pipelines.calibration.circuits import circuit_parameters
    from f1_pipelines.forecast.monte_carlo import learn_pace
    from f1_pipelines.forecast.monte_carlo_rows import simulated_rows

    races = settings().f1_simulated_races
    with warehouse.read() as connection:
        simulated = {key for (key,) in connection.execute("SELECT DISTINCT weekend FROM ranking.simulated_predictions")
                     .fetchall()}
        # Only fits from before the race: with a later one it would not be a forecast.
        fitted = connection.execute(
            "SELECT s.* FROM sim.circuits s JOIN race.calendar c ON c.weekend = s.through WHERE s.season = ? AND "
            "c.race_start < ?", [int(features["season"].max()), features["race_start"].min()]).df()
    is_upcoming = _is_upcoming(features, set(results["weekend"]), now)
    if len(context.partition_keys) == 1:
        is_upcoming |= ~features["weekend"].isin(simulated)
    upcoming = features[is_upcoming]
    if upcoming.empty or not races:
        return 0
    past = training_rows(warehouse)
    past = past[past["season"].isin(trained.seasons) & (past["race_start"] < upcoming["race_start"].min())]
    try:
        pace = learn_pace(past, trained.scores(past), results)
    except ValueError as problem:
        context.log.warning("no race is simulated: %s", problem)
        return 0
    circuits = {row["circuit"]: circuit_parameters(row) for row in fitted.to_dict("records")}
    rows = simulated_rows(upcoming, trained, checkpoint, pace, circuits, races, now)
    with warehouse.write(f"race_predictions {upcoming['weekend'].iloc[-1]}, simulated") as connection:
        replace_slices(connection, tables.SIMULATED_PREDICTIONS, rows, accept_fewer_rows=True)
        remember_predictions(connection, upcoming, rows, context.run.run_id, "simulated")
    return int(upcoming["weekend"].nunique())


def _is_upcoming(features: pd.DataFrame, weekends_with_result: set[str], now: datetime) -> pd.Series:
    """Mark rows of races that are not run yet, or whose result is still expected.

    A race without a result before one with a result is not upcoming: its result was refused. Simulations learn only
    from races before all simulated ones, so one such race would leave the upcoming ones nothing to learn from.
    """
    has_result = features["weekend"].isin(weekends_with_result)
    last = features.loc[has_result, "race_start"].max()
    return (features["race_start"] > now) | (~has_result & ((features["race_start"] > last) | pd.isna(last)))


def _keep_forecasts(forecasts: pd.DataFrame, fresh: pd.DataFrame, features: pd.DataFrame,
                    now: datetime) -> pd.DataFrame:
    """Combine fresh predictions with the stored forecasts that stay; a stored forecast wins over a fresh one.

    After the start of the race all forecasts stay, before it those of earlier stages: a new one would know more.
    """
    started = set(features.loc[features["race_start"] <= now, "weekend"])
    stage = forecasts["weekend"].map(features.drop_duplicates("weekend").set_index("weekend")["stage"])
    is_earlier_stage = forecasts["stage"].map(STAGES.index) < stage.map(STAGES.index)
    final = forecasts[forecasts["weekend"].isin(started) | is_earlier_stage]
    fresh = _not_among(fresh, final)
    return pd.concat([final, fresh], ignore_index=True) if len(final) else fresh


def _not_among(rows: pd.DataFrame, others: pd.DataFrame) -> pd.DataFrame:
    """Rows of the orders that `others` does not contain."""
    slices = list(tables.PREDICTIONS.slice_by)
    return rows[~pd.MultiIndex.from_frame(rows[slices]).isin(pd.MultiIndex.from_frame(others[slices]))]


def _stored_now(rows: pd.DataFrame, fresh: pd.DataFrame, known: pd.DataFrame) -> pd.DataFrame:
    """Fresh predictions from the rows `known` that are stored now; forecasts that stay keep their own input rows."""
    of_stage = fresh[fresh["stage"].isin(known["stage"])]
    return of_stage.merge(rows[["weekend", "driver", "checkpoint", "stage", "made_at"]])


prediction_checks = [
    keys_are_unique(race_predictions, tables.PREDICTIONS, tables.SIMULATED_PREDICTIONS),
    no_rows_check(
        race_predictions, "predictions_are_permutations", "A predicted order must have each place once.",
        """SELECT weekend, checkpoint, stage, count(*) AS cars, max(predicted_position) AS last_place
           FROM ranking.predictions GROUP BY ALL
           HAVING count(*) <> count(DISTINCT predicted_position) OR count(*) <> max(predicted_position)"""),
    no_rows_check(
        race_predictions, "chances_add_up",
        "Probabilities must sum to one win, three podiums and ten points finishes.",
        """SELECT weekend, checkpoint, stage, count(*) AS cars, sum(p_win) AS wins, sum(p_podium) AS podiums,
                  sum(p_points) AS points, sum(expected_position) AS places
           FROM (SELECT weekend, checkpoint, stage, 'scores' AS way, COLUMNS('p_(win|podium|points)'), expected_position
                 FROM ranking.predictions UNION ALL BY NAME
                 SELECT weekend, checkpoint, stage, 'races' AS way, COLUMNS('p_(win|podium|points)'), expected_position
                 FROM ranking.simulated_predictions)
           WHERE p_win IS NOT NULL GROUP BY way, weekend, checkpoint, stage
           HAVING abs(wins - 1) > 1e-6 OR abs(podiums - least(cars, 3)) > 1e-6 OR abs(points - least(cars, 10)) > 1e-6
               OR abs(places - cars * (cars + 1) / 2) > 1e-6 OR bool_or(p_win > p_podium OR p_podium > p_points)"""),
]
