"""All recorded weekends at once, stored as by the assets: complete sessions have rows, incomplete ones have none."""
import dagster as dg
import pytest

from f1_pipelines.identity.weekends import weekend_of_round
from f1_pipelines.resources.race_data import Clock, RaceData
from f1_pipelines.resources.warehouse import Warehouse
from f1_pipelines.warehouse.database import WarehouseFile
from f1_pipelines.warehouse.ingest import store

pytestmark = pytest.mark.xdist_group("fastf1-warehouse")

# season, round, session: laps (shared/data/fastf1-http/README.md)
LAPS = {
    (2018, 4, "race"): 848, (2019, 14, "qualifying"): 275, (2020, 3, "practice_2"): 109, (2020, 5, "practice_2"): 535,
    (2021, 14, "practice_2"): 482, (2021, 18, "qualifying"): 311, (2022, 2, "qualifying"): 327,
    (2022, 10, "practice_1"): 80, (2023, 1, "race"): 1056, (2023, 4, "qualifying"): 356, (2023, 4, "sprint"): 308,
    (2023, 4, "sprint_qualifying"): 233, (2024, 1, "qualifying"): 267, (2024, 1, "race"): 1129,
    (2024, 5, "sprint_qualifying"): 218, (2024, 10, "qualifying"): 257, (2024, 12, "practice_1"): 459,
    (2025, 6, "sprint"): 331,
}
WITHOUT_LAPS = [(2020, 7), (2020, 8), (2020, 12), (2021, 1), (2021, 10), (2021, 21), (2022, 1), (2023, 5), (2023, 10),
                (2023, 11), (2024, 2), (2025, 1), (2025, 2), (2025, 4), (2025, 12), (2025, 16), (2026, 2)]


def test_every_recorded_session_is_stored_whole_or_not_at_all(source, tmp_path):
    recorded = [weekend_of_round(*key) for key in sorted({key[:2] for key in LAPS} | set(WITHOUT_LAPS))]
    warehouse = WarehouseFile(tmp_path / "f1.duckdb")
    refused = []
    for _ in range(2):  # a second time changes nothing
        for fetch in (source.practice, source.qualifying, source.results, source.laps):
            fetched = fetch(recorded)
            refused += fetched.refused
            with warehouse.write("test") as connection:
                store(connection, fetched)
    with warehouse.read() as connection:
        stored = connection.execute("""
            SELECT weekend, 'race' AS session, count(*) FROM race.laps GROUP BY ALL
            UNION ALL SELECT weekend, session, count(*) FROM race.session_laps GROUP BY ALL""").fetchall()
        versions = connection.execute("SELECT max(version), count(DISTINCT weekend) FROM race.results").fetchall()
    assert {(weekend, session): n for weekend, session, n in stored} == {
        (weekend_of_round(season, number).key, session): n for (season, number, session), n in LAPS.items()}
    assert versions == [(1, 20)]
    assert all(len(refusal.reason) > 20 for refusal in refused)


def test_an_asset_stores_complete_data_and_names_what_is_missing(replay, tmp_path):
    """2021 Bahrain: the race's sheet is recorded, its timing is not."""
    from f1_pipelines.definitions import defs

    warehouse = Warehouse(path=str(tmp_path / "f1.duckdb"))
    resources = {
        **defs.resources, "warehouse": warehouse, "clock": Clock(fixed="2026-11-29T12:00:00+00:00"),
        "race_data": RaceData(source="fastf1", f1db_folder=str(tmp_path), fastf1_cache=str(tmp_path / "cache"))}

    def run(*names: str) -> dg.ExecuteInProcessResult:
        return dg.materialize([*defs.assets, *defs.asset_checks], selection=dg.AssetSelection.assets(*names),
                              resources=resources, partition_key="2021-bahrain", raise_on_error=False)

    assert run("race_calendar", "race_results").success
    failed = run("race_laps")
    message = failed.failure_data_for_node("race_laps").user_failure_data.description
    assert not failed.success
    assert message.startswith("nothing could be loaded from fastf1: 2021-bahrain race: ")
    assert "needs a lap of every starter" in message
    with warehouse.read() as connection:
        assert connection.execute("SELECT (SELECT count(*) FROM race.results), (SELECT count(*) FROM race.laps)"
                                  ).fetchall() == [(20, 0)]
