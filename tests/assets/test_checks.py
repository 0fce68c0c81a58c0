"""Every blocking check stops the run of the invalid weekend, and warns in runs of other weekends."""
import shutil
from pathlib import Path

import dagster as dg
import duckdb
import pandas as pd
import pytest

from f1_pipelines.assets.checks import verdict
from f1_pipelines.assets.features import training_rows
from f1_pipelines.assets.simulation import _race_frames
from f1_pipelines.cli.doctor import diagnose
from f1_pipelines.definitions import defs
from f1_pipelines.features.history import read_history
from f1_pipelines.features.ranking import build_ranking_features
from f1_pipelines.forecast.predictions import with_outcome
from f1_pipelines.identity.weekends import known_weekends, season_weekends
from f1_pipelines.resources.warehouse import Warehouse
from f1_pipelines.sources.calendar import calendar_rows
from f1_pipelines.sources.sample import SampleSource
from f1_pipelines.tables.catalog import BY_NAME
from f1_pipelines.tables.features import RANKING
from f1_pipelines.tables.race import CALENDAR
from f1_pipelines.tables.ranking import PREDICTIONS
from f1_pipelines.warehouse.database import WarehouseFile
from f1_pipelines.warehouse.ingest import store
from f1_pipelines.warehouse.replace import replace_slices
from tests.conftest import NOW

pytestmark = pytest.mark.xdist_group("checks")  # builds the shared warehouse once
RACES = ("2026-australia", "2026-china", "2026-japan")
INVALID, VALID = RACES[1], RACES[2]
UNENFORCED = """CREATE TABLE {0}_copy AS SELECT * FROM {0}; DROP TABLE {0};
                CREATE TABLE {0} AS SELECT * FROM {0}_copy;
                INSERT INTO {0} SELECT * FROM {0}_copy WHERE weekend = '2026-china' LIMIT 1"""


@pytest.fixture(scope="module")
def three_races(f1db, tmp_path_factory) -> Path:
    """The published copy of a warehouse with the first races of 2026, their features, predictions and a chain."""
    file = WarehouseFile(tmp_path_factory.mktemp("three") / "f1.duckdb")
    weekends = [weekend for weekend in season_weekends(2026) if weekend.key in RACES]
    with file.write("three races") as connection:
        replace_slices(connection, CALENDAR, calendar_rows(weekends, NOW))
        for fetched in (f1db.practice(weekends), f1db.qualifying(weekends), f1db.results(weekends)):
            store(connection, fetched)
        history = read_history(connection)
        features = build_ranking_features(**vars(history))
        replace_slices(connection, RANKING, features)
        connection.execute("""
            INSERT INTO ranking.predictions BY NAME
            SELECT weekend, driver, 'root' AS checkpoint, 'grid' AS stage, official_order AS predicted_position,
                   0.0 AS score, 1.0 / n AS p_win, 3.0 / n AS p_podium, 10.0 / n AS p_points,
                   (n + 1) / 2 AS expected_position, false AS in_sample, 'x' AS data_version, now() AS made_at
            FROM (SELECT *, count(*) OVER (PARTITION BY weekend) AS n FROM race.current_results)""")
        connection.execute("""
            INSERT INTO ranking.checkpoints BY NAME
            SELECT name AS checkpoint, kind, 'champion' AS model, '2025-japan' AS trained_from,
                   '2025-abu-dhabi' AS trained_through, 1 AS n_races, '1' AS feature_version, 'x' AS data_version,
                   0 AS seed, '{}' AS metrics, '' AS path, false AS promoted, now() AS created_at
            FROM (VALUES ('root', 'pretrained'), ('2026-australia', 'ewc'), ('2026-china', 'ewc'),
                         ('2026-japan', 'ewc')) links(name, kind)""")
        connection.execute("""
            INSERT INTO ranking.updates BY NAME
            SELECT weekend, weekend AS checkpoint, 'ewc' AS kind, lag(weekend, 1, 'root') OVER (ORDER BY weekend)
                   AS parent, 'champion' AS model, 'root' AS pretrained, 'ewc' AS method, '{}' AS settings,
                   1 AS n_races, 0.7 AS old_season_before, 0.7 AS old_season_after, 0.1 AS seconds,
                   'x' AS data_version, true AS current, now() AS created_at
            FROM race.calendar""")
    return file.published_path


@pytest.fixture
def damaged(three_races, tmp_path):
    """A warehouse whose published copy is damaged by some SQL."""
    def damage(sql: str) -> Warehouse:
        copy = Path(shutil.copy(three_races, tmp_path / "f1.published.duckdb"))
        with duckdb.connect(copy) as connection:
            connection.execute(sql)
        return Warehouse(path=str(tmp_path / "f1.duckdb"))

    return damage


def run_check(warehouse: Warehouse, asset: str, check: str, *span: str) -> tuple[bool, dg.AssetCheckEvaluation]:
    """Run a check alone, for a weekend, a range (first and last) or none. Return the run's success and the evaluation.
    """
    tags = {"dagster/partition": span[0]} if len(span) == 1 else dict(zip(
        ("dagster/asset_partition_range_start", "dagster/asset_partition_range_end"), span, strict=False))
    key = dg.AssetCheckKey(dg.AssetKey(asset), check)
    definitions = [definition for definition in [*defs.assets, *defs.asset_checks]
                   if key.asset_key in definition.keys or key in definition.check_keys]
    result = dg.materialize(definitions, resources={**defs.resources, "warehouse": warehouse}, tags=tags,
                            selection=dg.AssetSelection.checks(key), raise_on_error=False)
    [evaluation] = result.get_asset_check_evaluations()
    return result.success, evaluation


ORDER = "UPDATE race.results SET official_order = {} WHERE weekend = '2026-china' AND official_order = {}"
SLOT = "UPDATE race.results SET grid_position = {} WHERE weekend = '2026-china' AND {}"
QUALIFYING = "race.qualifying WHERE weekend = '2026-china' AND session = 'qualifying' AND position"
# asset, check, damage to China's race, fault in race.unlearnable_weekends
RACE_FAULTS = [
    ("race_results", "classifications_are_permutations", ORDER.format(2, 1), "broken_order"),
    ("race_results", "classifications_are_permutations", ORDER.format(40, 7), "broken_order"),
    ("race_results", "classifications_are_permutations", ORDER.format(0, 1), "broken_order"),
    ("race_results", "classifications_are_permutations",
     "DELETE FROM race.results WHERE weekend = '2026-china' AND official_order = 4", "broken_order"),
    ("race_results", "classifications_are_permutations", "UPDATE race.results SET finish_position = NULL "
     "WHERE weekend = '2026-china' AND finish_position = 3", "broken_order"),
    ("race_results", "grid_has_no_sentinels", SLOT.format(1, "grid_position = 2"), "grid_slot_twice"),
    ("race_results", "grid_has_no_sentinels", SLOT.format(0, "grid_position = 2"), "grid_sentinel"),
    ("race_results", "grid_has_no_sentinels", SLOT.format(-1, "true"), "grid_sentinel"),
    ("race_results", "grid_has_no_sentinels", SLOT.format("NULL", "grid_position = 2"), "starter_without_slot"),
    ("race_results", "grid_has_no_sentinels",
     SLOT.format("NULL", "true").replace("NULL", "NULL, grid_status = 'unknown'"), "no_grid"),
    ("race_results", "grid_has_no_sentinels",
     SLOT.format(1, "grid_position = 2").replace("race.results", "race.grid"), "grid_slot_twice"),
    ("qualifying_results", "places_are_permutations", f"UPDATE {QUALIFYING} = 2".replace(
        "race.qualifying", "race.qualifying SET position = 1"), "broken_qualifying"),
    ("qualifying_results", "places_are_permutations", f"DELETE FROM {QUALIFYING} <= 11", "broken_qualifying"),
    ("race_results", "qualifying_covers_the_starters", f"DELETE FROM {QUALIFYING} > 11", "qualifying_incomplete"),
    ("ranking_features", "starters_have_features", "DELETE FROM features.ranking WHERE weekend = '2026-china' AND "
     "driver = 'lewis-hamilton'", "starter_without_features"),
]
OTHER_FAULTS = [
    ("race_predictions", "predictions_are_permutations", "UPDATE ranking.predictions SET predicted_position = 7 "
     "WHERE weekend = '2026-china' AND predicted_position = 8"),
    ("race_predictions", "chances_add_up", "UPDATE ranking.predictions SET p_win = p_win / 2 "
     "WHERE weekend = '2026-china'"),
    ("ewc_ranker", "every_link_has_its_parent", "UPDATE ranking.updates SET parent = 'gone' "
     "WHERE weekend = '2026-china'"),
    ("ewc_ranker", "one_current_link_per_race", "INSERT INTO ranking.updates BY NAME SELECT * REPLACE ('twin' AS "
     "checkpoint) FROM ranking.updates WHERE weekend = '2026-china'"),
    *((asset, "keys_are_unique", UNENFORCED.format(table)) for asset, table in (
        ("race_calendar", "race.calendar"), ("qualifying_results", "race.grid"), ("race_results", "race.pit_stops"),
        ("ranking_features", "features.ranking"), ("ewc_ranker", "ranking.updates"))),
]


@pytest.mark.parametrize(("asset", "check", "damage"), [case[:3] for case in RACE_FAULTS] + OTHER_FAULTS)
def test_a_fault_stops_its_own_weekend_and_warns_in_others(damaged, asset, check, damage):
    warehouse = damaged(damage)
    success, own = run_check(warehouse, asset, check, INVALID)
    assert not success and (own.passed, own.severity) == (False, dg.AssetCheckSeverity.ERROR)
    assert own.description.startswith(f"in this run: {INVALID}. ")
    success, other = run_check(warehouse, asset, check, VALID)
    assert success and (other.passed, other.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert other.description.startswith(f"in other weekends, which don't stop this run: {INVALID}. ")
    assert INVALID in str(other.metadata["rows"].value)


@pytest.mark.parametrize(("damage", "fault"), [case[2:] for case in RACE_FAULTS])
def test_an_invalid_race_is_marked_and_not_learnt_from(damaged, damage, fault):
    warehouse = damaged(damage)
    with warehouse.read() as connection:
        unlearnable = connection.sql("SELECT DISTINCT weekend, fault FROM race.unlearnable_weekends").fetchall()
        history = read_history(connection)
        predictions = PREDICTIONS.conform(connection.sql("SELECT * FROM ranking.predictions").df())
    assert (INVALID, fault) in unlearnable and {weekend for weekend, _ in unlearnable} == {INVALID}
    assert set(training_rows(warehouse)["weekend"]) == {*RACES} - {INVALID}
    outcomes = with_outcome(predictions, history.results).groupby("weekend")["actual_position"].count()
    assert (outcomes[INVALID] == 0) == (fault == "broken_order") and (outcomes[[RACES[0], VALID]] >= 20).all()


def test_form_ignores_races_with_a_broken_order_and_uses_those_without_a_grid(damaged):
    def form(sql: str) -> pd.DataFrame:
        with damaged(sql).read() as connection:
            features = build_ranking_features(**vars(read_history(connection)))
        japan = features[features["weekend"] == VALID].set_index("driver")
        return japan[[name for name in japan if name.endswith(("form", "form_pct", "dnf_rate", "place", "finish"))
                      and not name.startswith(("grid", "qualifying", "practice"))]]

    assert form(SLOT.format("NULL", "true")).equals(form("SELECT 1"))
    broken, without_race = form(ORDER.format(2, 1)), form("DELETE FROM race.results WHERE weekend = '2026-china'")
    race_form = [name for name in broken if "qualifying" not in name]
    assert broken[race_form].equals(without_race[race_form])
    assert not broken[race_form].equals(form("SELECT 1")[race_form])
    incomplete = form(f"DELETE FROM {QUALIFYING} <= 11")
    qualifying_form = [name for name in incomplete if "qualifying" in name]
    assert incomplete[qualifying_form].equals(form(f"DELETE FROM {QUALIFYING} > 0")[qualifying_form])


def test_a_range_continues_with_its_valid_weekends_and_stops_without_any(damaged):
    warehouse = damaged(SLOT.format("NULL", "true"))
    grid = ("race_results", "grid_has_no_sentinels")
    success, check = run_check(warehouse, *grid, RACES[0], "2026-abu-dhabi")
    assert success and (check.passed, check.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert check.description == (f"in this run: {INVALID}; the run continues with its 2 valid weekends. "
                                 f"{INVALID}: none of 22 cars has a slot on the grid")
    # In this range only China has rows, and it is invalid.
    assert not run_check(damaged("DELETE FROM race.results WHERE weekend = '2026-japan';"
                                 + SLOT.format("NULL", "true")), *grid, INVALID, "2026-abu-dhabi")[0]
    success, check = run_check(damaged("UPDATE race.results SET grid_position = NULL"), *grid, RACES[0], VALID)
    assert not success and check.description.startswith(f"in this run: {', '.join(RACES)}. ")
    # Downstream assets can't leave out a link of a chain.
    link = next(damage for _, name, damage in OTHER_FAULTS if name == "every_link_has_its_parent")
    assert not run_check(damaged(link), "ewc_ranker", "every_link_has_its_parent", RACES[0], VALID)[0]


def test_a_run_without_weekends_checks_the_whole_table(damaged):
    success, check = run_check(damaged(SLOT.format("NULL", "true")), "race_results", "grid_has_no_sentinels")
    assert not success and check.severity == dg.AssetCheckSeverity.ERROR
    twin = UNENFORCED.format("ranking.checkpoints").replace("weekend = '2026-china'", "true")
    assert not run_check(damaged(twin), "ewc_ranker", "keys_are_unique", VALID)[0], "a table without weekends"


def test_one_race_can_not_make_a_feature_constant(damaged):
    """One of six races lacks a whole session: the others still vary."""
    more = "; ".join(f"INSERT INTO features.ranking SELECT * REPLACE ('{key}' AS weekend) FROM features.ranking "
                     f"WHERE weekend = '2026-japan'" for key in ("2026-miami", "2026-canada", "2026-monaco"))
    incomplete = "UPDATE features.ranking SET {} WHERE weekend = '2026-china'".format(
        ", ".join(f"{name} = NULL" for name in ("grid_place", "qualifying_place", "practice_place", "points_place")))
    assert run_check(damaged(f"{more}; {incomplete}"), "ranking_features", "no_feature_is_constant", INVALID)[1].passed
    everywhere = "UPDATE features.ranking SET grid_place = 0"
    assert not run_check(damaged(f"{more}; {everywhere}"), "ranking_features", "no_feature_is_constant", INVALID)[0]


def test_a_broken_sprint_does_not_prevent_learning(damaged):
    sprint = damaged("UPDATE race.sprint_results SET official_order = 2 WHERE official_order = 1; "
                     "UPDATE race.qualifying SET position = 2 WHERE session = 'sprint_qualifying' AND position = 1")
    for asset, name in (("race_results", "sprint_classifications_are_permutations"),
                        ("qualifying_results", "sprint_places_are_permutations")):
        success, check = run_check(sprint, asset, name, INVALID)
        assert success and (check.passed, check.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert set(training_rows(sprint)["weekend"]) == {*RACES}


def test_the_simulator_is_fitted_without_an_invalid_race(damaged):
    lap = """INSERT INTO race.laps BY NAME SELECT weekend, 'someone' AS driver, 1 AS lap, 'f1db' AS source,
             now() AS fetched_at FROM race.calendar; """
    with damaged(lap + SLOT.format("NULL", "true")).read() as connection:
        frames = _race_frames(connection)
    assert {name: set(frames[name]["weekend"]) for name in ("laps", "results", "calendar")} == {
        "laps": {RACES[0], VALID}, "results": {RACES[0], VALID}, "calendar": {*RACES}}


def test_the_doctor_names_a_race_that_is_not_learnt_from(damaged, monkeypatch):
    monkeypatch.setenv("F1_WAREHOUSE", damaged(SLOT.format("NULL", "true")).path)
    [races] = [finding for finding in diagnose() if finding.what == "races"]
    assert not races.well
    assert races.text.startswith(f"nothing is learnt from {INVALID} (none of 22 cars has a slot on the grid): reload")
    monkeypatch.setenv("F1_WAREHOUSE", damaged("SELECT 1").path)
    assert [finding.well for finding in diagnose() if finding.what == "races"] == [True]


def test_a_row_without_a_weekend_blocks_every_run():
    rows = pd.DataFrame({"weekend": [None, "2026-china"]})
    assert verdict(rows, ["2026-japan"], {"2026-japan"}, stops_range=False).blocks
    assert not verdict(rows[1:], ["2026-japan"], {"2026-japan"}, stops_range=False).blocks


@pytest.mark.parametrize("source", ["f1db", "sample"])
def test_no_existing_season_has_unlearnable_weekends(source, request, tmp_path):
    """Features there use the tables as they are."""
    tables = request.getfixturevalue("real") if source == "f1db" else sample_tables()
    with WarehouseFile(tmp_path / "f1.duckdb").write("everything") as connection:
        for name, frame in tables.items():
            replace_slices(connection, BY_NAME[f"race.{name}"], frame)
        features = build_ranking_features(**vars(read_history(connection)))
        replace_slices(connection, RANKING, features)
        assert connection.sql("SELECT * FROM race.unlearnable_weekends").fetchall() == []
    expected = request.getfixturevalue("real_features") if source == "f1db" else build_ranking_features(**tables)
    assert expected.equals(features)


def sample_tables() -> dict[str, pd.DataFrame]:
    """The sample source's tables of all seasons."""
    weekends, sample = known_weekends(), SampleSource(lambda: NOW)
    tables = sample.practice(weekends).tables | sample.qualifying(weekends).tables | sample.results(weekends).tables
    return {"calendar": calendar_rows(weekends, NOW).assign(source="sample"),
            **{name: tables[f"race.{name}"] for name in ("results", "qualifying", "practice", "grid")}}
