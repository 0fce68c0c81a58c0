"""Features, the pretrained ranker, its predictions and its evaluation."""
import json
from datetime import datetime

import dagster as dg
import duckdb
import pandas as pd
from pydantic import Field

from f1_pipelines.assets.checks import keys_are_unique, no_rows_check
from f1_pipelines.assets.metadata import described, interval_plot, line_plot, preview, weekends_materialized
from f1_pipelines.assets.partitions import race_weekends, weekends_of_run
from f1_pipelines.assets.race_data import practice_results, qualifying_results, race_results
from f1_pipelines.evaluation.targets import with_targets
from f1_pipelines.features.history import data_version, read_history
from f1_pipelines.features.ranking import CORE_FEATURES, FEATURE_VERSION, build_ranking_features
from f1_pipelines.models.config import F1NET, PRETRAINING_SEASONS
from f1_pipelines.predictions import promoted_checkpoint, rank, with_outcome
from f1_pipelines.resources.checkpoints import Checkpoints
from f1_pipelines.resources.compute import Compute
from f1_pipelines.resources.race_data import Clock
from f1_pipelines.resources.warehouse import Warehouse
from f1_pipelines.tables import ranking as tables
from f1_pipelines.tables.features import RANKING
from f1_pipelines.warehouse.replace import replace_slices

# The policy stands on unpartitioned assets too: the CLI takes a range of weekends only if every selected asset has it.
_COMMON = {"group_name": "ranking", "owners": ["team:ranking"], "code_version": "1",
           "backfill_policy": dg.BackfillPolicy.single_run()}
_BY_WEEKEND = {**_COMMON, "partitions_def": race_weekends}


@dg.asset(
    **_BY_WEEKEND, kinds={"python", "duckdb"}, metadata=described(RANKING),
    # Form needs every earlier race, whatever its weekend; this weekend's own result is never looked at.
    deps=[practice_results, qualifying_results, dg.AssetDep(race_results, partition_mapping=dg.AllPartitionMapping())],
)
def ranking_features(context: dg.AssetExecutionContext, warehouse: Warehouse) -> dg.MaterializeResult:
    """What was known of each driver before lights out. One row per (weekend, driver).

    Replaces these weekends' rows, and those of stored later weekends whose form they change; a rerun changes nothing.
    """
    asked = [weekend.key for weekend in weekends_of_run(context)]
    with warehouse.read() as connection:
        history = read_history(connection)
        stored = _stored_features(connection)
    everything = build_ranking_features(history.calendar, history.results, history.qualifying, history.practice,
                                        history.grid)
    features = everything[everything["weekend"].isin(asked)]
    if features.empty and len(asked) == 1:
        raise dg.Failure(f"{asked[0]}: no entry list, nothing is known of this weekend; load practice_results or "
                         "race_results of it or of an earlier weekend of the season", allow_retries=False)
    # New or amended results change the form of every later weekend: what is stored of those is brought up to date.
    stale = sorted(set(_weekends_that_differ(stored, everything)) - set(asked))
    with warehouse.write(f"ranking_features {asked[-1]}") as connection:
        # An entry list may shrink when a driver is replaced: that is news, not a loss.
        written = replace_slices(connection, RANKING, everything[everything["weekend"].isin([*asked, *stale])],
                                 accept_fewer_rows=True)
    return weekends_materialized(context, written, {
        "feature_version": FEATURE_VERSION, "later_weekends_refreshed": len(stale),
        "stages": {str(k): int(v) for k, v in features.groupby("stage")["weekend"].nunique().items()},
        "share_missing": {name: round(float(features[name].isna().mean()), 3) for name in CORE_FEATURES},
    }, {"preview": preview(features[["weekend", "driver", "constructor", "stage", *CORE_FEATURES[:6]]])})


class TemperatureConfig(dg.Config):
    """How long to search."""

    trials: int = Field(12, ge=1, le=500, description="Temperatures to try in all, those of earlier runs included.")
    seed: int = Field(0, ge=0, description="Seed of the search and of each training.")


@dg.asset(**_COMMON, kinds={"python", "pytorch"}, deps=[ranking_features], metadata=described(tables.TEMPERATURES))
def listnet_temperature(context: dg.AssetExecutionContext, config: TemperatureConfig, warehouse: Warehouse,
                        checkpoints: Checkpoints) -> dg.MaterializeResult:
    """Temperature of F1Net's ListNet loss, searched by Hyperopt. One row per trial.

    Judged on the last season inside the pretraining set, never on a later one. Trials are kept as they end: a run that
    was stopped goes on where it was, and ends as if it had never stopped.
    """
    from f1_pipelines.models.temperature import search_temperature

    rows = _training_rows(warehouse)
    rows = rows[rows["season"].isin(PRETRAINING_SEASONS)]
    version = data_version(rows)
    trials_file = checkpoints.folder / f"temperature-{version}-{config.seed}.jsonl"

    def told(trial: int, temperature: float, spearman: float) -> None:
        context.log.info("trial %d of %d: T = %.2f gives Spearman %.4f", trial, config.trials, temperature, spearman)

    found = search_temperature(rows, trials_file, max_trials=config.trials, seed=config.seed, progress=told)
    table = found.trials.assign(data_version=version, seed=config.seed)
    with warehouse.write("listnet_temperature") as connection:
        replace_slices(connection, tables.TEMPERATURES, table[tables.TEMPERATURES.column_names], accept_fewer_rows=True)
    return dg.MaterializeResult(metadata={
        "temperature": found.temperature, "spearman": found.spearman, "trials": len(table),
        "data_version": version, "preview": preview(table.sort_values("spearman", ascending=False)),
    })


class PretrainConfig(dg.Config):
    """What the ranker learns from."""

    seasons: list[int] = Field(list(PRETRAINING_SEASONS), description="Seasons to learn from.")
    seed: int = Field(0, ge=0, description="Seed of the training.")
    temperature: float | None = Field(None, gt=0, description="ListNet temperature of F1Net; empty takes the one that "
                                      "listnet_temperature found on these data, or 3.4.")


@dg.asset(**_COMMON, kinds={"python", "pytorch"}, deps=[ranking_features, listnet_temperature], pool="gpu",
          metadata=described(tables.CHECKPOINTS))
def pretrained_ranker(context: dg.AssetExecutionContext, config: PretrainConfig, warehouse: Warehouse,
                      checkpoints: Checkpoints, compute: Compute, clock: Clock) -> dg.MaterializeResult:
    """Our ranker and the reference F1Net, trained on past seasons. One row per checkpoint.

    Ours is promoted: predictions use it. The weights lie as safetensors beside their `meta.json`.
    """
    from f1_pipelines.models.pretrain import pretrain

    rows = _training_rows(warehouse)
    rows = rows[rows["season"].isin(config.seasons)]
    version = data_version(rows)
    with warehouse.read() as connection:
        searched = connection.execute(
            "SELECT temperature FROM ranking.temperatures WHERE data_version = ? ORDER BY spearman DESC, trial LIMIT 1",
            [version]).fetchall()
    temperature = config.temperature or (searched[0][0] if searched else F1NET.temperature)
    made = pretrain(rows, seasons=tuple(config.seasons), seed=config.seed, temperature=temperature,
                    device=compute.resolve(), data_version=version, folder=checkpoints.folder,
                    created_at=clock.now(), log=context.log.info)
    table = pd.DataFrame([made_one.row for made_one in made])
    with warehouse.write("pretrained_ranker") as connection:
        connection.execute("UPDATE ranking.checkpoints SET promoted = false WHERE promoted")
        replace_slices(connection, tables.CHECKPOINTS, table)
    ours = made[0]
    return dg.MaterializeResult(metadata={
        "checkpoint": ours.row["checkpoint"], "path": dg.MetadataValue.path(ours.row["path"]),
        "seconds": ours.seconds, "device": compute.resolve(), "data_version": version,
        "temperature_of_f1net": temperature, "races": int(ours.row["n_races"]),
        "trained_through": ours.row["trained_through"], **json.loads(ours.row["metrics"]),
        "loss": line_plot({made_one.row["model"]: made_one.losses for made_one in made}, "Training loss", "epoch"),
        "preview": preview(table[["checkpoint", "model", "kind", "n_races", "trained_through", "promoted"]]),
    })


@dg.asset(**_BY_WEEKEND, kinds={"python", "pytorch", "duckdb"}, deps=[ranking_features, pretrained_ranker],
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
        features = _stored_features(connection, asked)
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


@dg.asset(**_COMMON, kinds={"python", "pytorch", "duckdb"}, deps=[ranking_features],
          metadata=described(tables.EVALUATION))
def ranking_evaluation(context: dg.AssetExecutionContext, warehouse: Warehouse, clock: Clock) -> dg.MaterializeResult:
    """Every predictor against grid order, forwards in time. One row per (weekend, predictor, protocol, population).

    Each test season is predicted by models that learnt from earlier seasons only. The means with their paired bootstrap
    intervals are in `ranking.evaluation_summary`.
    """
    from f1_pipelines.evaluation.report import evaluate_all

    rows = _training_rows(warehouse)
    version = data_version(rows)
    per_race, summary = evaluate_all(rows, log=context.log.info)
    summary = summary.assign(data_version=version, evaluated_at=clock.now())
    with warehouse.write("ranking_evaluation") as connection:
        replace_slices(connection, tables.EVALUATION, per_race.assign(data_version=version), accept_fewer_rows=True)
        replace_slices(connection, tables.EVALUATION_SUMMARY, summary, accept_fewer_rows=True)
    starters = summary[(summary["population"] == "starters") & (summary["protocol"] == "rolling_2019_2025")]
    champion = starters.set_index("predictor").loc["champion"]
    return dg.MaterializeResult(metadata={
        "dagster/row_count": len(per_race), "data_version": version,
        "champion_spearman": float(champion["spearman"]), "champion_delta_low": float(champion["delta_low"]),
        "table": preview(starters.sort_values("spearman", ascending=False)[[
            "predictor", "n_races", "spearman", "delta_spearman", "delta_low", "delta_high", "ndcg10", "top1",
            "podium_overlap", "mae_positions"]], 20),
        "against_grid": interval_plot(starters.set_index("predictor")[["delta_spearman", "delta_low", "delta_high"]],
                                      "Mean Spearman against grid order, 2019-2025"),
    })


def _stored_features(connection: duckdb.DuckDBPyConnection, weekends: list[str] | None = None) -> pd.DataFrame:
    rows = connection.execute("SELECT * FROM features.ranking WHERE ? OR weekend IN (SELECT unnest(?::VARCHAR[])) "
                              "ORDER BY race_start, driver", [weekends is None, weekends or []]).df()
    return RANKING.conform(rows)


def _weekends_that_differ(stored: pd.DataFrame, rebuilt: pd.DataFrame) -> list[str]:
    """Stored weekends whose rows would come out otherwise now; a weekend that is no longer built stays as it is."""
    now = {key: rows.reset_index(drop=True) for key, rows in rebuilt.sort_values("driver").groupby("weekend")}
    was = {key: rows.reset_index(drop=True) for key, rows in stored.sort_values("driver").groupby("weekend")}
    return [key for key, rows in was.items() if key in now and not rows.equals(now[key])]


def _training_rows(warehouse: Warehouse) -> pd.DataFrame:
    """Stored features of the starters of run races, with their outcome."""
    with warehouse.read() as connection:
        rows = with_targets(_stored_features(connection), read_history(connection).results)
    return rows[rows["started"]]


def _keep_forecasts(forecasts: pd.DataFrame, fresh: pd.DataFrame, features: pd.DataFrame,
                    now: datetime) -> pd.DataFrame:
    """Fresh predictions beside the forecasts of races that have started; a forecast wins over the same made again."""
    run = set(features.loc[features["race_start"] <= now, "weekend"])
    kept = forecasts[forecasts["weekend"].isin(run)]
    slices = list(tables.PREDICTIONS.slice_by)
    fresh = fresh[~pd.MultiIndex.from_frame(fresh[slices]).isin(pd.MultiIndex.from_frame(kept[slices]))]
    return pd.concat([kept, fresh], ignore_index=True) if len(kept) else fresh


ranking_checks = [
    keys_are_unique(ranking_features, RANKING),
    keys_are_unique(listnet_temperature, tables.TEMPERATURES),
    keys_are_unique(pretrained_ranker, tables.CHECKPOINTS),
    keys_are_unique(race_predictions, tables.PREDICTIONS),
    keys_are_unique(ranking_evaluation, tables.EVALUATION, tables.EVALUATION_SUMMARY),
    no_rows_check(
        ranking_features, "starters_have_features",
        "A starter without a row would be left out of training and ranking.",
        """SELECT r.weekend, r.driver FROM race.current_results r
           WHERE r.status NOT IN ('not_started', 'withdrawn') AND r.result_status <> 'provisional'
             AND r.weekend IN (SELECT weekend FROM features.ranking)
             AND NOT EXISTS (SELECT 1 FROM features.ranking f WHERE f.weekend = r.weekend AND f.driver = r.driver)"""),
    no_rows_check(
        ranking_features, "run_races_have_grid_and_qualifying",
        "A race loaded without them trains on form alone; load qualifying_results for it.",
        """SELECT weekend, count(*) AS cars, count(grid_place) AS with_grid, count(qualifying_place) AS with_qualifying
           FROM features.ranking JOIN (SELECT DISTINCT weekend FROM race.current_results) USING (weekend)
           GROUP BY ALL HAVING count(grid_place) = 0 OR count(qualifying_place) = 0""", blocking=False),
    no_rows_check(
        ranking_features, "no_feature_is_constant",
        "A column that is one value or missing everywhere is a sentinel or a broken join.",
        " UNION ALL ".join(f"SELECT '{name}' AS feature, any_value({name}) AS value FROM features.ranking "
                           f"HAVING count(*) > 100 AND count(DISTINCT {name}) <= 1" for name in CORE_FEATURES)),
    no_rows_check(
        race_predictions, "predictions_are_permutations", "A predicted order has each place once.",
        """SELECT weekend, checkpoint, stage, count(*) AS cars, max(predicted_position) AS last_place
           FROM ranking.predictions GROUP BY ALL
           HAVING count(*) <> count(DISTINCT predicted_position) OR count(*) <> max(predicted_position)"""),
    no_rows_check(
        ranking_evaluation, "no_result_is_too_good_to_be_true",
        "0.70 on 2019-2025 is beyond what race noise allows: look for the leak before believing it.",
        """SELECT protocol, predictor, spearman FROM ranking.evaluation_summary
           WHERE population = 'starters'
             AND spearman >= CASE protocol WHEN 'prequential_2026' THEN 0.75 ELSE 0.70 END"""),
    no_rows_check(
        ranking_evaluation, "champion_beats_grid_order",
        "The promoted model should be better than the grid, its interval above zero.",
        """SELECT protocol, spearman, delta_low FROM ranking.evaluation_summary
           WHERE population = 'starters' AND predictor = 'champion' AND protocol = 'rolling_2019_2025'
             AND delta_low <= 0""", blocking=False),
]
