"""From stored results to a model and its predictions: what changes the model and what does not."""
import pytest

from f1_pipelines.sources.base import Fetched
from f1_pipelines.sources.classification import classification_hash
from f1_pipelines.tables.race import RESULTS
from f1_pipelines.warehouse.ingest import store

SEASON = {"partition": "2025-australia", "until": "2025-miami"}
TRAIN_ON_2025 = {"ops": {"pretrained_ranker": {"config": {"seasons": [2025], "temperature": 3.4}}}}


@pytest.fixture
def trained(run, rows):
    """Train on the first races of 2025; return (checkpoint, data_version) of the promoted ranker."""
    def train() -> tuple[str, str]:
        assert run("ranking_features", "pretrained_ranker", "promoted_ranker", **SEASON, run_config=TRAIN_ON_2025,
                   raises=True).success
        [promoted] = rows("SELECT checkpoint, data_version FROM ranking.checkpoints WHERE promoted")
        return promoted

    assert run("race_calendar", "practice_results", "qualifying_results", "race_results", **SEASON).success
    return train


def store_sheet(resources, result_status: str, first: str, second: str) -> None:
    """Store another result of 2025-australia, with these two drivers in front."""
    with resources["warehouse"].write("another sheet") as connection:
        sheet = RESULTS.conform(connection.execute(
            "SELECT * FROM race.current_results WHERE weekend = '2025-australia' ORDER BY official_order").df())
        places = sheet.set_index("driver")[["official_order", "finish_position"]]
        places.loc[[first, second]] = [[1, 1], [2, 2]]
        moved = {name: sheet["driver"].map(places[name]) for name in places}
        sheet = sheet.assign(**moved, result_status=result_status)
        store(connection, Fetched({RESULTS.qualified: sheet.assign(content_hash=classification_hash(sheet))}))


def test_only_another_official_sheet_makes_another_model(trained, resources, rows):
    checkpoint = trained()
    assert trained() == checkpoint
    store_sheet(resources, "provisional", "max-verstappen", "lando-norris")
    assert trained() == checkpoint, "a provisional result changes nothing"
    store_sheet(resources, "official", "max-verstappen", "lando-norris")
    amended = trained()
    assert amended[0] != checkpoint[0] and amended[1] != checkpoint[1]
    store_sheet(resources, "official", "max-verstappen", "lando-norris")
    assert trained() == amended, "the same result again changes nothing"
    assert rows("SELECT version, result_status FROM race.results WHERE weekend = '2025-australia' "
                "GROUP BY ALL ORDER BY version") == [(1, "official"), (2, "provisional"), (3, "amended")]


def test_a_race_without_laps_is_ranked_from_its_results(trained, run, rows):
    trained()
    assert run("race_laps", "race_predictions", **SEASON).success
    assert rows("SELECT count(*) FROM race.laps") == [(0,)]
    orders = rows("SELECT weekend, count(*), count(DISTINCT predicted_position), count(actual_position) "
                  "FROM ranking.predictions WHERE stage = 'grid' GROUP BY ALL")
    assert len(orders) == 6
    assert all(order[1:] == (20, 20, 20) for order in orders)


def test_a_forecast_gets_its_outcome_after_another_model_was_promoted(trained, run, rows, resources):
    """A forecast on Saturday; on Monday the results are stored and the ranker is trained again."""
    first, _ = trained()
    assert run("race_predictions", partition="2025-miami", raises=True).success
    with resources["warehouse"].write("as on Saturday, without results") as connection:
        connection.execute("UPDATE ranking.predictions SET made_at = '2025-05-03T22:00:00Z', actual_position = NULL, "
                           "exact_match = NULL")
    store_sheet(resources, "official", "max-verstappen", "lando-norris")
    second, _ = trained()
    assert second != first
    assert run("race_predictions", partition="2025-miami", raises=True).success
    assert rows(f"SELECT checkpoint = '{first}', made_at < '2025-05-04T20:00:00Z', count(*), count(actual_position) "
                "FROM ranking.predictions WHERE stage = 'grid' GROUP BY ALL ORDER BY 2 DESC") == [
        (True, True, 20, 20), (False, False, 20, 20)]


def test_a_race_outside_the_training_seasons_changes_no_model(trained, run):
    before = trained()
    assert run("race_calendar", "practice_results", "qualifying_results", "race_results",
               partition="2026-australia").success
    assert trained() == before


def test_stored_features_of_later_weekends_follow_the_results_before_them(run, rows, resources):
    loaded = ("race_calendar", "practice_results", "qualifying_results", "race_results", "ranking_features")
    assert run(*loaded, partition="2025-china").success
    form = "SELECT count(driver_finish_form) FROM features.ranking WHERE weekend = '2025-china'"
    assert rows(form) == [(0,)]
    assert run(*loaded, partition="2025-australia").success
    assert rows(form) == [(20,)]


SUMMARY = """
    INSERT INTO ranking.evaluation_summary BY NAME
    SELECT 'champion' AS predictor, 'rolling_2019_2025' AS protocol, 'starters' AS population, 1 AS n_races,
           {spearman} AS spearman, 0 AS kendall, 0 AS ndcg10, 0 AS mae_positions, 0 AS top1, 0 AS podium_overlap,
           0 AS delta_spearman, {low} AS delta_low, 0.3 AS delta_high, 'x' AS data_version, now() AS evaluated_at
"""


@pytest.mark.parametrize(("check", "damage"), [
    ("no_feature_is_constant", "UPDATE features.ranking SET driver_finish_form = NULL"),
    ("no_feature_is_constant", "UPDATE features.ranking SET qualifying_gap_pct = 0"),
    ("starters_have_features", "DELETE FROM features.ranking WHERE driver = 'lewis-hamilton'"),
    ("run_races_have_grid_and_qualifying",
     "UPDATE features.ranking SET grid_place = NULL WHERE weekend = '2025-china'"),
    ("predictions_are_permutations", "UPDATE ranking.predictions SET predicted_position = 7 "
                                     "WHERE predicted_position = 8"),
    ("no_result_is_too_good_to_be_true", SUMMARY.format(spearman=0.93, low=0.2)),
    ("champion_beats_grid_order", SUMMARY.format(spearman=0.6, low=-0.1)),
])
def test_a_check_finds_damage(ranked, check, damage):
    warehouse, checks = ranked
    assert checks[check](warehouse).passed
    with warehouse.write("damage") as connection:
        connection.execute(damage)
    assert not checks[check](warehouse).passed


@pytest.fixture
def ranked(trained, run, resources):
    from f1_pipelines.definitions import defs

    trained()
    assert run("race_predictions", **SEASON).success
    return resources["warehouse"], {next(iter(check.check_keys)).name: check for check in defs.asset_checks}
