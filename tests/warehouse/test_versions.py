"""Every version of a classification is kept, and the right one is current."""
import pandas as pd
import pytest

from f1_pipelines.sources.classification import classification_hash
from f1_pipelines.tables.catalog import BY_NAME
from f1_pipelines.warehouse.database import WarehouseFile
from f1_pipelines.warehouse.replace import add_versions

RESULTS = BY_NAME["race.results"]


def sheet(order: str, result_status: str = "official", source: str = "fastf1") -> pd.DataFrame:
    """A classification of 2023-italy in the order of the letters."""
    places = range(1, len(order) + 1)
    rows = pd.DataFrame({
        "weekend": "2023-italy", "driver": list(order), "version": 1, "constructor": "team", "car_number": 1,
        "grid_position": places, "grid_status": "grid", "official_order": places, "finish_position": places,
        "classified": True, "status": "finished", "status_text": None, "points": 0.0, "laps": 51, "race_time_s": None,
        "gap_s": None, "gap_laps": None, "fastest_lap_s": None, "result_status": result_status, "source": source,
        "source_version": "test", "fetched_at": pd.Timestamp("2023-09-03T15:00Z")})
    return rows.assign(content_hash=classification_hash(rows))


@pytest.fixture
def store_sheets(tmp_path):
    """A function that stores sheets in turn and returns (current order, its version, all versions with status)."""
    warehouse = WarehouseFile(tmp_path / "f1.duckdb")

    def store(*sheets: pd.DataFrame) -> tuple[str, int, list[tuple[int, str]]]:
        for frame in sheets:
            with warehouse.write("test") as connection:
                add_versions(connection, RESULTS, frame)
        with warehouse.read() as connection:
            current = connection.execute(
                "SELECT string_agg(driver, '' ORDER BY official_order), any_value(version) FROM race.current_results"
            ).fetchone()
            versions = connection.execute(
                "SELECT DISTINCT version, result_status FROM race.results ORDER BY version").fetchall()
        return *current, versions
    return store


def test_an_equal_sheet_adds_no_version(store_sheets):
    assert store_sheets(sheet("abc"), sheet("abc"), sheet("abc", source="f1db")) == ("abc", 1, [(1, "official")])


def test_official_replaces_provisional_even_when_it_says_the_same(store_sheets):
    assert store_sheets(sheet("abc", "provisional"), sheet("abc")) == ("abc", 2, [(1, "provisional"), (2, "official")])


def test_a_penalty_after_the_race_is_the_official_order_and_the_first_one_stays(store_sheets):
    order, version, versions = store_sheets(sheet("abcd", "provisional"), sheet("acbd"))
    assert (order, version) == ("acbd", 2)
    assert versions == [(1, "provisional"), (2, "official")]


def test_a_changed_official_sheet_is_amended(store_sheets):
    assert store_sheets(sheet("abc"), sheet("bac")) == ("bac", 2, [(1, "official"), (2, "amended")])


def test_a_reverted_amendment_is_a_new_version(store_sheets):
    order, version, versions = store_sheets(sheet("abc"), sheet("bac"), sheet("abc"))
    assert (order, version) == ("abc", 3)
    assert versions[-1] == (3, "amended")


def test_a_provisional_sheet_that_comes_late_is_not_current(store_sheets):
    assert store_sheets(sheet("bac"), sheet("abc", "provisional"))[:2] == ("bac", 1)
    # The official one, stored again, is still the same version.
    assert store_sheets(sheet("bac"))[:2] == ("bac", 1)


def test_sample_and_real_weekends_are_not_mixed(tmp_path):
    from f1_pipelines.sources.base import Fetched
    from f1_pipelines.warehouse.ingest import MixedSources, store

    warehouse = WarehouseFile(tmp_path / "f1.duckdb")
    calendar = pd.DataFrame({column: [None] for column in BY_NAME["race.calendar"].column_names}).assign(
        weekend="2023-italy", season=2023, event_name="Italian Grand Prix", circuit="monza", layout="monza-7",
        format="conventional", state="done", race_start=pd.Timestamp("2023-09-03T13:00Z"), source="sample",
        fetched_at=pd.Timestamp("2023-09-03T15:00Z"))
    with warehouse.write("test") as connection:
        store(connection, Fetched({"race.calendar": calendar}))
        store(connection, Fetched({"race.results": sheet("abc", source="sample")}))
    with pytest.raises(MixedSources, match="holds weekends of the source sample, rows of f1db don't go into it"), \
            warehouse.write("test") as connection:
        store(connection, Fetched({"race.results": sheet("bac", source="f1db")}))
    with warehouse.read() as connection:
        assert connection.execute("SELECT DISTINCT source FROM race.results").fetchall() == [("sample",)]


def test_a_mixture_is_refused_without_a_calendar_too(tmp_path):
    from f1_pipelines.sources.base import Fetched
    from f1_pipelines.warehouse.ingest import MixedSources, store

    warehouse = WarehouseFile(tmp_path / "f1.duckdb")
    with warehouse.write("test") as connection:
        store(connection, Fetched({"race.results": sheet("abc", source="f1db")}))
    with pytest.raises(MixedSources), warehouse.write("test") as connection:
        store(connection, Fetched({"race.results": sheet("bac", source="sample")}))
