"""Predictions at each stage; stored forecasts don't change."""
from datetime import UTC, datetime

import pandas as pd
import pytest

from f1_pipelines.assets.predictions import _is_upcoming
from f1_pipelines.definitions import defs
from f1_pipelines.features.stored import stored_features
from f1_pipelines.forecast.predictions import NothingToPredict, at_each_stage, promoted_checkpoint, rank
from f1_pipelines.forecast.report import predict_stored
from f1_pipelines.models.checkpoints import load_checkpoint
from f1_pipelines.resources.race_data import Clock
from f1_pipelines.tables.features import STAGES

pytestmark = pytest.mark.xdist_group("season")
UPCOMING = "2026-netherlands"  # first practice is over, nothing else


def query(resources, sql: str) -> pd.DataFrame:
    with resources["warehouse"].read() as connection:
        return connection.execute(sql).df()


def test_every_reached_stage_has_an_order_of_all_entries_with_probabilities(season):
    orders = query(season, "SELECT weekend, stage, count(*) AS cars, max(predicted_position) AS last, sum(p_win) AS "
                           "wins, sum(p_podium) AS podiums, sum(p_points) AS points, count(p_beats_teammate) AS mates "
                           "FROM ranking.predictions GROUP BY ALL")
    past = orders[orders["weekend"] != UPCOMING]
    assert set(zip(past["weekend"], past["stage"], strict=True)) == {
        (weekend, stage) for weekend in past["weekend"].unique() for stage in STAGES}
    assert set(orders.loc[orders["weekend"] == UPCOMING, "stage"]) == {"entry", "practice"}
    assert (orders["cars"] == orders["last"]).all()
    assert orders["wins"].tolist() == pytest.approx([1] * len(orders))
    assert orders["podiums"].tolist() == pytest.approx([3] * len(orders))
    assert orders["points"].tolist() == pytest.approx([10] * len(orders))
    assert (orders["mates"] == orders["cars"]).all()


def test_only_upcoming_races_are_simulated(season):
    rows = query(season, "SELECT * FROM ranking.simulated_predictions")
    assert set(rows["weekend"]) == {UPCOMING} and set(rows["stage"]) == {"practice"}
    assert rows["p_win"].sum() == pytest.approx(1)
    assert sorted(rows["predicted_position"]) == list(range(1, len(rows) + 1))
    assert rows["races"].eq(100).all() and set(rows["circuit_provenance"]) == {"circuit_prior"}
    assert not rows["in_sample"].any()
    ordered = rows.sort_values("expected_position")
    assert ordered["pace_s"].head(5).mean() < ordered["pace_s"].tail(5).mean()


def test_later_data_changes_no_earlier_stage(season):
    with season["warehouse"].read() as connection:
        features = stored_features(connection, ["2025-miami"])
        checkpoint, folder = promoted_checkpoint(connection, season["checkpoints"].folder)
    trained, now = load_checkpoint(folder).trained, datetime(2025, 5, 4, tzinfo=UTC)
    added = {"practice": ["practice_place", "practice_gap_pct", "practice_1_gap_pct"],
             "qualifying": ["qualifying_position", "qualifying_place", "qualifying_gap_pct"],
             "grid": ["grid_position", "grid_place", "out_of_position_places"]}
    before = [rank(seen, trained, checkpoint, now) for seen in at_each_stage(features)]
    for at, stage in enumerate(STAGES[1:], start=1):
        other = features.copy()
        for name in added[stage]:
            other[name] = other[name].array[::-1]
        after = [rank(seen, trained, checkpoint, now) for seen in at_each_stage(other)]
        columns = [name for name in before[0].columns if name != "data_version"]
        for earlier in range(at):
            pd.testing.assert_frame_equal(after[earlier][columns], before[earlier][columns])
        assert not after[at]["score"].equals(before[at]["score"]), stage


def test_the_same_checkpoint_predicts_the_same_again(season, materialize):
    order = "SELECT * EXCLUDE (made_at) FROM ranking.predictions ORDER BY ALL"
    before = query(season, order)
    assert materialize(season, "race_predictions", partition="2025-miami").success
    pd.testing.assert_frame_equal(query(season, order), before)


def test_a_forecast_of_an_earlier_stage_is_never_replaced(season, materialize):
    by_stage = ("SELECT stage, min(made_at) AS made_at, min(p_win) AS least FROM ranking.predictions "
                f"WHERE weekend = '{UPCOMING}' GROUP BY ALL ORDER BY stage")
    friday = query(season, by_stage).set_index("stage")
    with season["warehouse"].write("pretend that qualifying was held") as connection:
        connection.execute("UPDATE features.ranking SET stage = 'qualifying', qualifying_position = practice_place * "
                           f"20 + 1, practice_place = 1 - practice_place WHERE weekend = '{UPCOMING}'")
    saturday = {**season, "clock": Clock(fixed="2026-08-22T16:00:00+00:00")}
    assert materialize(saturday, "race_predictions", partition=UPCOMING).success
    now = query(season, by_stage).set_index("stage")
    pd.testing.assert_frame_equal(now.loc[["entry", "practice"]], friday)
    assert now.loc["qualifying", "made_at"] > friday["made_at"].max()
    assert materialize({**season, "clock": Clock(fixed="2026-08-22T18:00:00+00:00")}, "race_predictions",
                       partition=UPCOMING).success
    later = query(season, by_stage).set_index("stage")
    assert later.loc["qualifying", "made_at"] > now.loc["qualifying", "made_at"], "the current stage follows its data"
    assert later.loc["practice", "made_at"] == friday.loc["practice", "made_at"]


def test_an_amended_result_reaches_the_orders_of_all_checkpoints(season, materialize):
    """Including those that a former champion made after the race."""
    with season["warehouse"].write("test") as connection:
        connection.execute("""
            INSERT INTO ranking.predictions SELECT * REPLACE ('former' AS checkpoint, 30 - actual_position AS
            actual_position, true AS exact_match) FROM ranking.predictions
            WHERE weekend = '2025-miami' AND stage = 'grid'""")
    assert materialize(season, "race_predictions", partition="2025-miami").success
    rows = query(season, "SELECT * FROM ranking.predictions WHERE weekend = '2025-miami' AND stage = 'grid'")
    assert rows["checkpoint"].nunique() == 2
    assert rows.groupby("driver")["actual_position"].nunique().eq(1).all()
    assert (rows["exact_match"] == (rows["predicted_position"] == rows["actual_position"])).all()


def test_f1_predict_uses_only_data_up_to_its_stage(season, monkeypatch):
    monkeypatch.setenv("F1_WAREHOUSE", season["warehouse"].path)
    grid, practice = predict_stored("2025-miami"), predict_stored("2025-miami", "practice")
    assert "known: practice" in practice.heading and "known: grid" in grid.heading
    assert not grid.ranking["driver"].equals(practice.ranking["driver"])
    assert grid.ranking["win %"].sum() == pytest.approx(100, abs=1)
    assert {"podium %", "points %", "expected place", "beats mate %"} <= set(grid.ranking)
    with pytest.raises(NothingToPredict, match="is known as far as practice, not grid"):
        predict_stored(UPCOMING, "grid")


@pytest.mark.parametrize("damage", [
    "UPDATE {} SET p_win = p_win / 2",
    "UPDATE {} SET p_podium = p_points WHERE predicted_position = 4",
    "DELETE FROM {} WHERE predicted_position = 1",
    "UPDATE {} SET expected_position = expected_position + 1 WHERE predicted_position = 3",
    "UPDATE {} SET p_win = p_points, p_points = p_win WHERE predicted_position = 2",
])
@pytest.mark.parametrize("table", ["ranking.predictions", "ranking.simulated_predictions"])
def test_probabilities_that_do_not_add_up_block(season, table, damage):
    checks = {next(iter(check.check_keys)).name: check for check in defs.asset_checks}
    backup = query(season, f"SELECT * FROM {table}")
    assert checks["chances_add_up"](season["warehouse"]).passed
    with season["warehouse"].write("damage") as connection:
        connection.execute(damage.format(table))
    result = checks["chances_add_up"](season["warehouse"])
    with season["warehouse"].write("repair") as connection:
        connection.execute(f"DELETE FROM {table}")
        connection.execute(f"INSERT INTO {table} BY NAME SELECT * FROM backup")
    assert len(backup) and not result.passed and result.severity.value == "ERROR"


def test_a_past_race_with_a_refused_result_is_not_upcoming():
    """Otherwise too few older races are left to learn from, and the next race has no simulated races."""
    features = pd.DataFrame({
        "weekend": ["2021-monaco", "2026-hungary", "2026-netherlands"],
        "race_start": pd.to_datetime(["2021-05-23T13:00Z", "2026-07-26T13:00Z", "2026-08-23T13:00Z"])})
    now = datetime(2026, 8, 22, tzinfo=UTC)
    assert list(_is_upcoming(features, {"2026-hungary"}, now)) == [False, False, True]
    assert list(_is_upcoming(features, {"2021-monaco"}, now)) == [False, True, True]  # its result is still expected
    assert list(_is_upcoming(features.head(1), set(), now)) == [True]  # the only weekend
