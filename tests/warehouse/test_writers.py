"""Writers, readers and kills: a reader sees the old rows or the new rows, and writers wait for each other."""
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pandas as pd
import pytest

from f1_pipelines.warehouse.database import WarehouseBusy, WarehouseFile
from f1_pipelines.warehouse.replace import replace_slices
from tests.warehouse.pit_stops import STOPS, put, rows, stops


@pytest.fixture
def warehouse(tmp_path: Path) -> WarehouseFile:
    return WarehouseFile(tmp_path / "nested" / "f1.duckdb", wait_s=0.5)


def test_a_writer_does_not_block_readers(warehouse):
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


def test_a_second_writer_times_out_and_names_the_first(warehouse):
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


def test_a_shell_that_has_the_file_open_is_named(warehouse):
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


# Kills itself at the point `where`.
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
    # Readers still see the last published state; the next writer publishes what was committed.
    assert rows(warehouse) == [("2026-monaco", 3, 22.0), ("2026-spain", 3, 22.0)]
    assert warehouse.unpublished() == (seconds == 40.0)
    with warehouse.write("test") as connection:
        # It publishes before its own body ends.
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
            counts = connection.execute("SELECT count(*), count(DISTINCT pit_lane_time_s) FROM race.pit_stops "
                                        "WHERE weekend = '2026-monaco'").fetchone()
        assert counts == (2000, 1)
