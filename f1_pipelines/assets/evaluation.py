"""How good the ranker is, beside the baselines."""
import dagster as dg

from f1_pipelines.assets.checks import keys_are_unique, no_rows_check
from f1_pipelines.assets.features import RANKING_GROUP, ranking_features, training_rows
from f1_pipelines.assets.metadata import described, interval_plot, preview
from f1_pipelines.features.history import data_version
from f1_pipelines.resources.race_data import Clock
from f1_pipelines.resources.warehouse import Warehouse
from f1_pipelines.tables import ranking as tables
from f1_pipelines.warehouse.replace import replace_slices


@dg.asset(**RANKING_GROUP, kinds={"python", "pytorch", "duckdb"}, deps=[ranking_features],
          metadata=described(tables.EVALUATION))
def ranking_evaluation(context: dg.AssetExecutionContext, warehouse: Warehouse, clock: Clock) -> dg.MaterializeResult:
    """Every predictor against grid order, forwards in time. One row per (weekend, predictor, protocol, population).

    Each test season is predicted by models that learnt from earlier seasons only. The means with their paired bootstrap
    intervals are in `ranking.evaluation_summary`.
    """
    from f1_pipelines.evaluation.report import evaluate_all

    rows = training_rows(warehouse)
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


evaluation_checks = [
    keys_are_unique(ranking_evaluation, tables.EVALUATION, tables.EVALUATION_SUMMARY),
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
