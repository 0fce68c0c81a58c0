"""After a race, only protocols with changed rows are evaluated again."""
import pytest

from f1_pipelines.backtest import report
from f1_pipelines.backtest.predictors import GridLogit
from f1_pipelines.evaluation.baselines import BASELINES
from f1_pipelines.sources.base import Fetched
from f1_pipelines.sources.classification import classification_hash
from f1_pipelines.tables.race import RESULTS
from f1_pipelines.warehouse.ingest import store

LOADED = ("race_calendar", "practice_results", "qualifying_results", "race_results", "ranking_features")


@pytest.fixture
def evaluate(run, monkeypatch):
    """Run the evaluation with fast predictors; return the state of each protocol."""
    monkeypatch.setattr(report, "default_predictors", lambda protocol, results, checkpoints: [*BASELINES, GridLogit()])

    def states() -> dict[str, str]:
        [event] = run("ranking_evaluation", raises=True).asset_materializations_for_node("ranking_evaluation")
        return {name: event.metadata[name].value for name in ("rolling_2019_2025", "holdout_2025", "prequential_2026")}

    assert run(*LOADED, partition="2024-qatar", until="2025-china").success
    return states


def amend(resources, weekend: str) -> None:
    """Swap the first two places of a race in another official result."""
    with resources["warehouse"].write("amended") as connection:
        sheet = RESULTS.conform(connection.execute(
            "SELECT * FROM race.current_results WHERE weekend = ? ORDER BY official_order", [weekend]).df())
        for name in ("official_order", "finish_position"):
            sheet.loc[[0, 1], name] = sheet.loc[[1, 0], name].to_numpy()
        store(connection, Fetched({RESULTS.qualified: sheet.assign(content_hash=classification_hash(sheet))}))


def test_only_protocols_whose_rows_changed_are_evaluated_again(evaluate, run, rows, resources):
    none = "no test race is stored"
    assert evaluate() == {"rolling_2019_2025": "evaluated", "holdout_2025": "evaluated", "prequential_2026": none}
    summary = rows("SELECT * FROM ranking.evaluation_summary ORDER BY ALL")
    assert evaluate() == {"rolling_2019_2025": "as before", "holdout_2025": "as before", "prequential_2026": none}
    assert rows("SELECT * FROM ranking.evaluation_summary ORDER BY ALL") == summary
    assert run(*LOADED, partition="2026-australia").success
    after_the_race = {"rolling_2019_2025": "as before", "holdout_2025": "as before", "prequential_2026": "evaluated"}
    assert evaluate() == after_the_race
    amend(resources, "2026-australia")
    assert evaluate() == after_the_race
    amend(resources, "2025-china")
    assert run("ranking_features", partition="2025-china").success
    assert evaluate() == {"rolling_2019_2025": "evaluated", "holdout_2025": "evaluated",
                          "prequential_2026": "evaluated"}


def test_a_season_without_an_earlier_one_is_not_evaluated(run, rows):
    """With FastF1, the demo loads only the current season."""
    assert run(*LOADED, partition="2026-australia").success
    assert run("ranking_evaluation", raises=True).success
    assert rows("SELECT count(*) FROM ranking.evaluation") == [(0,)]


def test_every_table_of_the_evaluation_is_filled_and_consistent(evaluate, rows, resources):
    evaluate()
    assert rows("SELECT DISTINCT predictor, population FROM ranking.evaluation WHERE log_loss_win IS NOT NULL") == [
        ("grid_logit", "starters")]
    cars = rows("SELECT sum(n_cars) FROM ranking.evaluation WHERE predictor = 'grid_logit' "
                "AND protocol = 'holdout_2025' AND population = 'starters'")
    assert rows("SELECT DISTINCT total FROM (SELECT sum(n) AS total FROM ranking.calibration "
                "WHERE protocol = 'holdout_2025' GROUP BY event)") == cars
    assert rows("SELECT kind, slice, n_races FROM ranking.evaluation_slices WHERE protocol = 'holdout_2025' "
                "AND predictor = 'rank_sum' ORDER BY kind") == [
        ("circuit", "race", 1), ("circuit", "street", 1), ("season", "2025", 2), ("weather", "unknown", 2)]
    assert rows("SELECT count(*) FROM ranking.evaluation_summary WHERE predictor = 'grid_logit' AND population = "
                "'starters' AND delta_log_loss_win = 0 AND ece_win IS NOT NULL") == [(2,)]


def test_a_removed_predictor_leaves_no_rows(evaluate, rows, monkeypatch):
    evaluate()
    monkeypatch.setattr(report, "default_predictors",
                        lambda protocol, results, checkpoints: [BASELINES[0], GridLogit()])
    monkeypatch.setattr(report, "EVALUATION_VERSION", "another")
    assert evaluate()["holdout_2025"] == "evaluated"
    for table in ("evaluation", "evaluation_summary", "evaluation_slices"):
        assert rows(f"SELECT DISTINCT predictor FROM ranking.{table} ORDER BY 1") == [("grid",), ("grid_logit",)]
