"""Slices and schema: what a write replaces, which files it extends and which it refuses."""
import os
import time
from pathlib import Path

import duckdb
import pandas as pd
import pytest

from f1_pipelines.tables.catalog import SCHEMA_VERSION, TABLES
from f1_pipelines.tables.schema import InvalidRows
from f1_pipelines.tables.views import View
from f1_pipelines.warehouse import migrate
from f1_pipelines.warehouse.database import WarehouseError, WarehouseFile, WrongSchema
from f1_pipelines.warehouse.replace import ShrunkSlice, replace_slices
from tests.warehouse.pit_stops import STOPS, put, rows, stops


@pytest.fixture
def warehouse(tmp_path: Path) -> WarehouseFile:
    return WarehouseFile(tmp_path / "nested" / "f1.duckdb", wait_s=0.5)


def test_a_slice_replaces_the_stored_one_and_no_other(warehouse):
    put(warehouse, pd.concat([stops("2026-monaco"), stops("2026-spain")]))
    put(warehouse, stops("2026-monaco", seconds=30.0))
    put(warehouse, stops("2026-monaco", seconds=30.0))
    assert rows(warehouse) == [("2026-monaco", 3, 30.0), ("2026-spain", 3, 22.0)]


def test_columns_are_matched_by_name_not_position(warehouse):
    put(warehouse, stops("2026-monaco")[list(reversed(STOPS.column_names))])
    assert rows(warehouse) == [("2026-monaco", 3, 22.0)]


def test_an_error_in_the_body_keeps_the_old_rows(warehouse):
    put(warehouse, stops("2026-monaco"))
    with pytest.raises(InvalidRows), warehouse.write("test") as connection:
        replace_slices(connection, STOPS, stops("2026-monaco", seconds=99.0))
        replace_slices(connection, STOPS, stops("2026-monaco").assign(stop=0))
    assert rows(warehouse) == [("2026-monaco", 3, 22.0)]


def test_a_shrunk_slice_is_refused_unless_accepted(warehouse):
    put(warehouse, stops("2026-monaco", n=20))
    with pytest.raises(ShrunkSlice, match="gives 5 rows, 20 are stored"):
        put(warehouse, stops("2026-monaco", n=5))
    assert rows(warehouse)[0][1] == 20
    assert put(warehouse, stops("2026-monaco", n=5), accept_fewer_rows=True) == 5


def test_an_empty_frame_removes_nothing(warehouse):
    put(warehouse, stops("2026-monaco"))
    assert put(warehouse, stops("2026-monaco").iloc[:0]) == 0
    assert rows(warehouse) == [("2026-monaco", 3, 22.0)]


def test_every_table_is_there_with_comments_and_its_primary_key(warehouse):
    put(warehouse, stops("2026-monaco"))
    with warehouse.read() as connection:
        commented = dict(connection.execute(
            "SELECT schema_name || '.' || table_name, comment FROM duckdb_tables() "
            "WHERE schema_name <> 'main'").fetchall())
        keys = {f"{schema}.{table}": tuple(columns) for schema, table, columns in connection.execute(
            "SELECT schema_name, table_name, constraint_column_names FROM duckdb_constraints() "
            "WHERE constraint_type = 'PRIMARY KEY'").fetchall()}
    assert commented == {table.qualified: table.comment for table in TABLES}
    assert keys == {table.qualified: table.key for table in TABLES}


def test_missing_values_are_null_and_instants_are_utc(warehouse, monkeypatch):
    monkeypatch.setenv("TZ", "America/Los_Angeles")
    time.tzset()
    try:
        put(warehouse, stops("2026-monaco", n=2, seconds=[20.0, float("nan")]).assign(
            fetched_at=pd.Timestamp("2025-11-23T04:00Z")))
        with warehouse.read() as connection:
            values = connection.execute("SELECT avg(pit_lane_time_s), count(*) FILTER (isnan(pit_lane_time_s)), "
                                        "max(fetched_at)::DATE::VARCHAR FROM race.pit_stops").fetchone()
    finally:
        monkeypatch.undo()
        time.tzset()
    assert values == (20.0, 0, "2025-11-23")


def test_a_file_of_another_schema_version_is_refused_and_unchanged(warehouse):
    put(warehouse, stops("2026-monaco"))
    with duckdb.connect(warehouse.path) as connection:
        connection.execute("UPDATE main.schema_version SET version = 99")
    with pytest.raises(WrongSchema, match=f"schema version 99, this code writes version {SCHEMA_VERSION}"):
        put(warehouse, stops("2026-spain"))
    assert rows(warehouse) == [("2026-monaco", 3, 22.0)]


def test_a_published_copy_of_another_schema_version_is_refused(warehouse):
    put(warehouse, stops("2026-monaco"))
    for path in (warehouse.published_path, warehouse.path):
        with duckdb.connect(path) as connection:
            connection.execute("UPDATE main.schema_version SET version = 99")
    with pytest.raises(WrongSchema, match=rf"f1.published.duckdb holds schema version 99.*version {SCHEMA_VERSION}"):
        rows(warehouse)
    with pytest.raises(WrongSchema, match="f1.duckdb holds schema version 99"):
        warehouse.check()


@pytest.mark.parametrize("foreign_sql", [
    "CREATE TABLE main.invoices (n INTEGER)", "CREATE VIEW main.invoices AS SELECT 1 AS n",
    "CREATE TABLE main.schema_version (version VARCHAR); INSERT INTO main.schema_version VALUES ('2.1-beta')"])
def test_a_file_of_another_program_is_refused_and_unchanged(warehouse, foreign_sql):
    warehouse.path.parent.mkdir()
    with duckdb.connect(warehouse.path) as connection:
        connection.execute(foreign_sql)
    before = warehouse.path.read_bytes()
    with pytest.raises(WrongSchema, match=r"f1.duckdb holds main\.\w+ but no schema version.*stays unchanged"):
        put(warehouse, stops("2026-monaco"))
    with pytest.raises(WrongSchema, match="not a warehouse of this project"):
        warehouse.check()
    assert warehouse.path.read_bytes() == before
    assert not warehouse.published_path.exists()


def test_a_changed_view_replaces_the_stored_one(warehouse, monkeypatch):
    put(warehouse, stops("2026-monaco"))
    changed = View("race", "current_results", "Changed", "SELECT 'changed' AS text")
    monkeypatch.setattr(migrate, "VIEWS", (changed,))
    put(warehouse, stops("2026-spain"))
    with warehouse.read() as connection:
        assert connection.execute("SELECT * FROM race.current_results").fetchall() == [("changed",)]
        assert connection.execute("SELECT comment FROM duckdb_views() WHERE view_name = 'current_results'"
                                  ).fetchall() == [("Changed",)]


def test_another_primary_key_is_refused(warehouse):
    put(warehouse, stops("2026-monaco"))
    with duckdb.connect(warehouse.path) as connection:
        connection.execute("DROP TABLE race.pit_stops")
        connection.execute(STOPS.ddl().replace('("weekend", "driver", "stop")', '("weekend", "driver", "lap")'))
    with pytest.raises(WrongSchema, match=r"has the key \(weekend, driver, lap\), declared \(weekend, driver, stop"):
        put(warehouse, stops("2026-spain"))


def test_file_and_copy_are_compared_by_content_not_time(warehouse):
    put(warehouse, stops("2026-monaco"))
    assert not warehouse.unpublished()
    os.utime(warehouse.path)
    assert not warehouse.unpublished()
    with duckdb.connect(warehouse.path) as connection:
        connection.execute("UPDATE race.pit_stops SET lap = 21")
    os.utime(warehouse.path, (0, 0))
    assert warehouse.unpublished()
    with warehouse.write("test"):
        assert not warehouse.unpublished()
    assert not warehouse.unpublished()


def test_a_new_optional_column_is_added_and_a_changed_type_refused(warehouse):
    put(warehouse, stops("2026-monaco"))
    with duckdb.connect(warehouse.path) as connection:
        connection.execute("ALTER TABLE race.pit_stops DROP COLUMN pit_lane_time_s")
    put(warehouse, stops("2026-spain"))
    assert rows(warehouse) == [("2026-monaco", 3, None), ("2026-spain", 3, 22.0)]
    with duckdb.connect(warehouse.path) as connection:
        connection.execute("ALTER TABLE race.pit_stops ALTER pit_lane_time_s TYPE VARCHAR")
    with pytest.raises(WrongSchema, match=r"pit_stops.pit_lane_time_s is VARCHAR, declared DOUBLE"):
        put(warehouse, stops("2026-austria"))


def test_a_broken_file_is_refused_with_the_restore_command(warehouse):
    put(warehouse, stops("2026-monaco"))
    warehouse.path.write_bytes(b"not a database" * 1000)
    with pytest.raises(WarehouseError, match=r"not a valid DuckDB database file.*`f1 restore` sets the file aside"):
        put(warehouse, stops("2026-spain"))
    assert rows(warehouse) == [("2026-monaco", 3, 22.0)]


def test_reading_a_missing_warehouse_says_how_to_fill_it(warehouse):
    with pytest.raises(WarehouseError, match="no warehouse at .* yet; fill it with"), warehouse.read():
        pass
