"""Old rows or new rows, never neither: transactions, locks, publishing, killing."""
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import duckdb
import pandas as pd
import pytest

from f1_pipelines.tables.catalog import BY_NAME, SCHEMA_VERSION, TABLES
from f1_pipelines.tables.schema import InvalidRows
from f1_pipelines.tables.views import View
from f1_pipelines.warehouse import migrate
from f1_pipelines.warehouse.database import WarehouseBusy, WarehouseError, WarehouseFile, WrongSchema
from f1_pipelines.warehouse.replace import ShrunkSlice, replace_slices

STOPS = BY_NAME["race.pit_stops"]


def stops(weekend: str, n: int = 3, seconds: float = 22.0) -> pd.DataFrame:
    return pd.DataFrame({
        "weekend": weekend, "driver": [f"driver-{i}" for i in range(n)], "constructor": None, "stop": 1, "lap": 20,
        "pit_lane_time_s": seconds, "source": "f1db", "source_version": "test",
        "fetched_at": pd.Timestamp("2026-07-19T15:00Z")})


@pytest.fixture
def warehouse(tmp_path: Path) -> WarehouseFile:
    return WarehouseFile(tmp_path / "nested" / "f1.duckdb", wait_s=0.5)


def put(warehouse: WarehouseFile, frame: pd.DataFrame, **options) -> int:
    with warehouse.write("test") as connection:
        return replace_slices(connection, STOPS, frame, **options)


def rows(warehouse: WarehouseFile) -> list[tuple]:
    with warehouse.read() as connection:
        return connection.execute(
            "SELECT weekend, count(*), min(pit_lane_time_s) FROM race.pit_stops GROUP BY ALL ORDER BY 1").fetchall()


def test_a_slice_replaces_itself_and_leaves_others_alone(warehouse):
    put(warehouse, pd.concat([stops("2026-monaco"), stops("2026-spain")]))
    put(warehouse, stops("2026-monaco", seconds=30.0))
    put(warehouse, stops("2026-monaco", seconds=30.0))
    assert rows(warehouse) == [("2026-monaco", 3, 30.0), ("2026-spain", 3, 22.0)]


def test_columns_go_by_name_not_by_position(warehouse):
    put(warehouse, stops("2026-monaco")[list(reversed(STOPS.column_names))])
    assert rows(warehouse) == [("2026-monaco", 3, 22.0)]


def test_an_error_in_the_middle_leaves_the_old_rows(warehouse):
    put(warehouse, stops("2026-monaco"))
    with pytest.raises(InvalidRows), warehouse.write("test") as connection:
        replace_slices(connection, STOPS, stops("2026-monaco", seconds=99.0))
        replace_slices(connection, STOPS, stops("2026-monaco").assign(stop=0))
    assert rows(warehouse) == [("2026-monaco", 3, 22.0)]


def test_a_source_that_shrinks_is_refused_unless_told_otherwise(warehouse):
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
            told = connection.execute("SELECT avg(pit_lane_time_s), count(*) FILTER (isnan(pit_lane_time_s)), "
                                      "max(fetched_at)::DATE::VARCHAR FROM race.pit_stops").fetchone()
    finally:
        monkeypatch.undo()
        time.tzset()
    assert told == (20.0, 0, "2025-11-23")


def test_readers_go_on_while_a_writer_writes(warehouse):
    put(warehouse, stops("2026-monaco"))
    with warehouse.write("test") as connection:
        replace_slices(connection, STOPS, stops("2026-monaco", seconds=40.0))
        assert rows(warehouse) == [("2026-monaco", 3, 22.0)]
    assert rows(warehouse) == [("2026-monaco", 3, 40.0)]


def run_python(code: str, *arguments: object) -> subprocess.Popen:
    return subprocess.Popen([sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)],
                            stdout=subprocess.PIPE, text=True)


HOLD = """
    import sys, time
    from f1_pipelines.warehouse.database import WarehouseFile
    with WarehouseFile(sys.argv[1]).write("race_results 2024-monaco"):
        print("held", flush=True)
        time.sleep(60)
"""


def test_a_second_writer_waits_a_bounded_time_and_names_the_first(warehouse):
    holder = run_python(HOLD, warehouse.path)
    try:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(WarehouseBusy, match=rf"process {holder.pid} \(race_results 2024-monaco, since "):
            put(warehouse, stops("2026-monaco"))
    finally:
        holder.kill()
        holder.wait()
        holder.stdout.close()
    assert put(warehouse, stops("2026-monaco")) == 3


def test_an_open_shell_on_the_file_itself_is_named(warehouse):
    put(warehouse, stops("2026-monaco"))
    shell = run_python("""
        import duckdb, sys, time
        connection = duckdb.connect(sys.argv[1])
        print("open", flush=True)
        time.sleep(60)
    """, warehouse.path)
    try:
        assert shell.stdout.readline() == "open\n"
        with pytest.raises(WarehouseBusy, match=f"PID {shell.pid}.*never locked"):
            put(warehouse, stops("2026-monaco"))
        assert len(rows(warehouse)) == 1
    finally:
        shell.kill()
        shell.wait()
        shell.stdout.close()


# Where a writer can die: each name is a function it is stopped in, before or after calling it.
KILL = """
    import os, signal, sys
    import pandas as pd
    from f1_pipelines.warehouse import database, replace
    from f1_pipelines.tables.catalog import BY_NAME

    path, where = sys.argv[1:]
    frame = pd.read_pickle(path + ".frame")
    die = lambda *a, **k: os.kill(os.getpid(), signal.SIGKILL)
    if where == "during publish":
        database.shutil.copyfile = die
    if where == "before rename":
        database.os.replace = die
    with database.WarehouseFile(path).write("doomed") as connection:
        if where == "after delete":
            connection.execute("DELETE FROM race.pit_stops WHERE weekend = '2026-monaco'")
            die()
        replace.replace_slices(connection, BY_NAME["race.pit_stops"], frame)
        if where == "before commit":
            die()
"""


@pytest.mark.parametrize(("where", "seconds"), [
    ("after delete", 22.0), ("before commit", 22.0), ("during publish", 40.0), ("before rename", 40.0)])
def test_killed_anywhere_the_old_rows_or_the_new_rows_are_there(warehouse, where, seconds):
    put(warehouse, pd.concat([stops("2026-monaco"), stops("2026-spain")]))
    stops("2026-monaco", seconds=40.0).to_pickle(f"{warehouse.path}.frame")
    doomed = run_python(KILL, warehouse.path, where)
    assert doomed.wait(60) == -signal.SIGKILL
    doomed.stdout.close()
    # Readers still see the last published state, whole; a writer sees what was committed, and publishes it.
    assert rows(warehouse) == [("2026-monaco", 3, 22.0), ("2026-spain", 3, 22.0)]
    assert warehouse.unpublished() == (seconds == 40.0)
    with warehouse.write("test") as connection:
        # What was committed is published first, not only when this body is done.
        assert rows(warehouse) == [("2026-monaco", 3, seconds), ("2026-spain", 3, 22.0)]
        replace_slices(connection, STOPS, stops("2026-austria"))
    assert rows(warehouse) == [("2026-austria", 3, 22.0), ("2026-monaco", 3, seconds), ("2026-spain", 3, 22.0)]
    assert not list(warehouse.path.parent.glob(".f1.published.duckdb.*"))


def test_writers_killed_at_random_never_tear_a_slice(warehouse):
    put(warehouse, stops("2026-monaco", n=2000, seconds=0.0))
    writer = """
        import itertools, sys
        import pandas as pd
        from f1_pipelines.tables.catalog import BY_NAME
        from f1_pipelines.warehouse.database import WarehouseFile
        from f1_pipelines.warehouse.replace import replace_slices
        frame = pd.read_pickle(sys.argv[1] + ".frame")
        print("ready", flush=True)
        for n in itertools.count(1):
            with WarehouseFile(sys.argv[1]).write("loop") as connection:
                replace_slices(connection, BY_NAME["race.pit_stops"], frame.assign(pit_lane_time_s=float(n)))
    """
    stops("2026-monaco", n=2000).to_pickle(f"{warehouse.path}.frame")
    for delay in (0.05, 0.13, 0.21):
        process = run_python(writer, warehouse.path)
        assert process.stdout.readline() == "ready\n"
        time.sleep(delay)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
        put(warehouse, stops("2026-spain"))
        with warehouse.read() as connection:
            told = connection.execute("SELECT count(*), count(DISTINCT pit_lane_time_s) FROM race.pit_stops "
                                      "WHERE weekend = '2026-monaco'").fetchone()
        assert told == (2000, 1)


def test_a_file_of_another_schema_version_is_refused_and_untouched(warehouse):
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


@pytest.mark.parametrize("theirs", [
    "CREATE TABLE main.invoices (n INTEGER)", "CREATE VIEW main.invoices AS SELECT 1 AS n",
    "CREATE TABLE main.schema_version (version VARCHAR); INSERT INTO main.schema_version VALUES ('2.1-beta')"])
def test_somebody_elses_file_is_refused_and_untouched(warehouse, theirs):
    warehouse.path.parent.mkdir()
    with duckdb.connect(warehouse.path) as connection:
        connection.execute(theirs)
    before = warehouse.path.read_bytes()
    with pytest.raises(WrongSchema, match=r"f1.duckdb holds main\.\w+ but no schema version.*stays as it is"):
        put(warehouse, stops("2026-monaco"))
    with pytest.raises(WrongSchema, match="not a warehouse of this project"):
        warehouse.check()
    assert warehouse.path.read_bytes() == before
    assert not warehouse.published_path.exists()


def test_a_changed_view_reaches_a_file_that_exists(warehouse, monkeypatch):
    put(warehouse, stops("2026-monaco"))
    changed = View("race", "current_results", "Changed", "SELECT 'changed' AS said")
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


def test_a_copy_differs_by_content_not_by_time(warehouse):
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


def test_a_broken_file_says_how_to_go_back_to_the_published_copy(warehouse):
    put(warehouse, stops("2026-monaco"))
    warehouse.path.write_bytes(b"not a database" * 1000)
    with pytest.raises(WarehouseError, match=r"not a valid DuckDB database file.*`f1 restore` sets the file aside"):
        put(warehouse, stops("2026-spain"))
    assert rows(warehouse) == [("2026-monaco", 3, 22.0)]


def test_reading_before_anything_was_written_says_how_to_fill_it(warehouse):
    with pytest.raises(WarehouseError, match="no warehouse at .* yet; fill it with"), warehouse.read():
        pass
