"""Ingest of race weekends through Dagster: reruns, ranges, refusals, passing and failing checks."""
from pathlib import Path

import dagster as dg
import duckdb
import pytest

from f1_pipelines.assets import race_data
from f1_pipelines.identity.weekends import known_weekends, weekend
from f1_pipelines.resources.race_data import RaceData

LOADED = ("race_calendar", "practice_results", "qualifying_results", "race_results", "race_laps")


def check_of(result: dg.ExecuteInProcessResult, name: str) -> list[dg.AssetCheckEvaluation]:
    return [check for check in result.get_asset_check_evaluations() if check.check_name == name]


def test_a_weekend_loads_and_a_rerun_changes_no_row(run, rows):
    counts = """SELECT (SELECT count(*) FROM race.calendar), (SELECT count(*) FROM race.practice),
                       (SELECT count(*) FROM race.qualifying), (SELECT count(*) FROM race.results),
                       (SELECT count(*) FROM race.pit_stops), (SELECT max(version) FROM race.results)"""
    assert run(*LOADED, partition="2024-sao-paulo").success
    first = rows(counts)
    assert run(*LOADED, partition="2024-sao-paulo").success
    assert rows(counts) == first == [(1, 20, 40, 20, first[0][4], 1)]
    assert rows("SELECT state, source FROM race.calendar") == [("done", "f1db")]


def test_a_range_is_one_run_and_cancelled_weekends_in_it_are_no_fault(run, rows):
    result = run(*LOADED, partition="2023-azerbaijan", until="2023-monaco")
    assert result.success
    assert rows("SELECT weekend, state FROM race.calendar ORDER BY race_start") == [
        ("2023-azerbaijan", "done"), ("2023-miami", "done"), ("2023-emilia-romagna", "cancelled"),
        ("2023-monaco", "done")]
    assert rows("SELECT DISTINCT weekend FROM race.results ORDER BY 1") == [
        ("2023-azerbaijan",), ("2023-miami",), ("2023-monaco",)]
    assert all(check.passed for check in result.get_asset_check_evaluations())


def test_a_future_weekend_is_refused_with_one_sentence_and_nothing_is_lost(run, rows):
    run("race_calendar", "race_results", partition="2026-hungary")
    failed = run("race_results", partition="2026-netherlands")
    assert not failed.success
    message = failed.failure_data_for_node("race_results").user_failure_data.description
    assert message == ("nothing could be loaded from f1db: 2026-netherlands race: not held yet "
                       "(starts 2026-08-23 13:00 UTC) (and 1 more)")
    assert rows("SELECT DISTINCT weekend FROM race.results") == [("2026-hungary",)]


def error_of(failed: dg.ExecuteInProcessResult, node: str) -> str:
    assert not failed.success
    error = failed.failure_data_for_node(node).error
    return (error.cause or error).message


@pytest.mark.parametrize(("changes", "message"), [
    ({"f1db_path": "/nowhere"}, "no f1db release at /nowhere: set F1_F1DB_PATH to the folder or zip"),
    ({"f1db_path": None, "f1db_url": "http://127.0.0.1:9/f1db-csv.zip"}, "could not be downloaded from http://127.0.0.1"),
    ({"source": "ergast"}, "'ergast' is no source; set F1_SOURCE to one of "),
])
def test_a_source_that_can_not_answer_says_why_and_nothing_is_lost(run, rows, resources, tmp_path, changes, message):
    run("race_calendar", "race_results", partition="2024-monaco")
    before = [rows("SELECT * FROM race.results ORDER BY driver"), rows("SELECT * FROM race.calendar")]
    settings = {"source": "f1db", "f1db_path": None, "f1db_folder": str(tmp_path), "fastf1_cache": str(tmp_path)}
    resources["race_data"] = RaceData(**settings | changes)
    for asset in ("race_calendar", "race_results"):
        assert message in error_of(run(asset, partition="2024-monaco"), asset)
    assert [rows("SELECT * FROM race.results ORDER BY driver"), rows("SELECT * FROM race.calendar")] == before


def test_a_warehouse_of_another_version_stays_unchanged(run, rows, resources):
    run("race_calendar", "race_results", partition="2024-monaco")
    with duckdb.connect(resources["warehouse"].path) as connection:
        connection.execute("UPDATE main.schema_version SET version = 99")
    assert "holds schema version 99" in error_of(run("race_results", partition="2024-spain"), "race_results")
    assert rows("SELECT DISTINCT weekend FROM race.results") == [("2024-monaco",)]


def test_a_start_that_the_source_moved_is_what_the_next_run_goes_by(run, rows, resources):
    """f1db has first practice of Singapore 2026 an hour later than our calendar."""
    assert run("race_calendar", partition="2026-singapore").success
    refreshed = Path(resources["warehouse"].path).with_suffix(".calendar.csv")
    [(start,)] = rows("SELECT practice_1_start FROM race.calendar")
    assert weekend("2026-singapore", refreshed).sessions["practice_1"] == start != \
        weekend("2026-singapore").sessions["practice_1"]
    assert [w.key for w in known_weekends(refreshed)] == [w.key for w in known_weekends()]


def test_laps_that_the_source_never_has_are_no_failure(run):
    result = run("race_calendar", "race_laps", partition="2024-monaco")
    assert result.success
    metadata = result.asset_materializations_for_node("race_laps")[0].metadata
    assert metadata["dagster/partition_row_count"].value == 0
    assert "f1db has no lap times" in metadata["refused"].value


@pytest.mark.parametrize(("check", "damage"), [
    ("classifications_are_permutations", "UPDATE race.results SET official_order = 2 WHERE official_order = 1"),
    ("classifications_are_permutations", "UPDATE race.results SET finish_position = 9 WHERE finish_position = 8"),
    ("grid_has_no_sentinels", "UPDATE race.results SET grid_position = 1"),
    ("grid_has_no_sentinels", "UPDATE race.results SET grid_position = NULL"),
    ("qualifying_covers_the_starters", "DELETE FROM race.qualifying WHERE position > 12"),
])
def test_a_blocking_check_finds_damage_and_shows_the_rows(run, resources, check, damage):
    assert all(c.passed for c in run(*LOADED, partition="2024-monaco").get_asset_check_evaluations())
    with resources["warehouse"].write("damage") as connection:
        connection.execute(damage)
    definition = next(d for d in race_data.race_data_checks if d.check_keys and
                      next(iter(d.check_keys)).name == check)
    result = definition(resources["warehouse"])
    assert not result.passed
    assert result.severity == dg.AssetCheckSeverity.ERROR
    assert result.metadata["rows_found"].value > 0
    assert "2024-monaco" in str(result.metadata["rows"].value)


def test_a_failed_blocking_check_stops_downstream_assets(run, rows, monkeypatch):
    """The rows are already written, but no features are built from them."""
    run("race_calendar", partition="2024-monaco")
    from f1_pipelines.warehouse import ingest

    store = ingest.store

    def damaged(connection, fetched, accept_fewer_rows=False):
        written = store(connection, fetched, accept_fewer_rows)
        connection.execute("UPDATE race.results SET official_order = 2 WHERE official_order = 1")
        return written

    monkeypatch.setattr(race_data, "store", damaged)
    result = run("practice_results", "qualifying_results", "race_results", "ranking_features", partition="2024-monaco")
    assert not result.success
    assert [check.passed for check in check_of(result, "classifications_are_permutations")] == [False]
    assert not result.asset_materializations_for_node("ranking_features")


def test_two_results_of_a_weekend_are_stored_as_versions(run, rows, resources):
    run("race_calendar", "race_results", partition="2023-italy")
    with resources["warehouse"].write("an older sheet") as connection:
        connection.execute("UPDATE race.results SET points = 0, content_hash = 'first version'")
    assert run("race_results", partition="2023-italy").success
    assert rows("SELECT version, result_status, max(points) FROM race.results GROUP BY ALL ORDER BY 1") == [
        (1, "official", 0.0), (2, "amended", 25.0)]
    assert rows("SELECT max(points) FROM race.current_results") == [(25.0,)]
