"""After a hard kill: a torn end of the log is passed over, a damaged log is refused with the command that recovers."""
import os
import shutil
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pandas as pd
import pytest

from f1_pipelines.cli.doctor import diagnose
from f1_pipelines.tables.catalog import BY_NAME
from f1_pipelines.warehouse.database import WarehouseError, WarehouseFile
from f1_pipelines.warehouse.replace import replace_slices
from f1_pipelines.warehouse.restore import restore

STOPS = BY_NAME["race.pit_stops"]

# Commits twice and dies: both transactions are in the write-ahead log only.
DIE_WITH_A_LOG = """
import os, signal, sys
import duckdb
connection = duckdb.connect(sys.argv[1])
for weekend in ("2026-spain", "2026-austria"):
    connection.execute("INSERT INTO race.pit_stops BY NAME SELECT ? AS weekend, 'driver-' || i AS driver, 1 AS stop, "
                       "20 AS lap, 'f1db' AS source, now() AS fetched_at FROM range(3) cars(i)", [weekend])
os.kill(os.getpid(), signal.SIGKILL)
"""

WRITE_FOR_LONG = """
import sys, time
from f1_pipelines.warehouse.database import WarehouseFile
with WarehouseFile(sys.argv[1]).write("race_results 2024-monaco"):
    print("writing", flush=True)
    time.sleep(60)
"""


def put(warehouse: WarehouseFile, weekend: str) -> None:
    rows = pd.DataFrame({
        "weekend": weekend, "driver": ["driver-0", "driver-1", "driver-2"], "constructor": None, "stop": 1, "lap": 20,
        "pit_lane_time_s": 22.0, "source": "f1db", "source_version": "test",
        "fetched_at": pd.Timestamp("2026-07-19T15:00Z")})
    with warehouse.write("test") as connection:
        replace_slices(connection, STOPS, rows)


def weekends(warehouse: WarehouseFile) -> list[str]:
    with warehouse.read() as connection:
        found = connection.execute("SELECT DISTINCT weekend FROM race.pit_stops ORDER BY weekend").fetchall()
    return [weekend for (weekend,) in found]


@pytest.fixture
def crashed(tmp_path: Path) -> tuple[WarehouseFile, Path]:
    """A warehouse whose writer was killed, and the log that it left: 2026-monaco is published, the rest is not."""
    warehouse = WarehouseFile(tmp_path / "my data" / "f1.duckdb", wait_s=1)
    put(warehouse, "2026-monaco")
    done = subprocess.run([sys.executable, "-c", DIE_WITH_A_LOG, warehouse.path], check=False)
    assert done.returncode == -signal.SIGKILL
    log = warehouse.path.with_name("f1.duckdb.wal")
    assert log.stat().st_size > 0
    return warehouse, log


def test_what_was_committed_is_there_after_a_kill(crashed):
    warehouse, _ = crashed
    assert weekends(warehouse) == ["2026-monaco"]
    put(warehouse, "2026-hungary")
    assert weekends(warehouse) == ["2026-austria", "2026-hungary", "2026-monaco", "2026-spain"]


def test_a_log_without_its_end_loses_the_torn_transaction_only(crashed):
    warehouse, log = crashed
    os.truncate(log, log.stat().st_size - 10)
    put(warehouse, "2026-hungary")
    assert weekends(warehouse) == ["2026-hungary", "2026-monaco", "2026-spain"]


def test_a_damaged_log_is_refused_and_set_aside_by_a_restore(crashed, monkeypatch):
    warehouse, log = crashed
    damaged = log.read_bytes().replace(b"2026-spain", b"\xff" * 10, 1)
    log.write_bytes(damaged)
    with pytest.raises(WarehouseError, match=r"f1.duckdb.wal is damaged at byte \d+ of \d+.*`f1 restore`") as refused:
        put(warehouse, "2026-hungary")
    assert log.read_bytes() == damaged
    assert weekends(warehouse) == ["2026-monaco"]

    monkeypatch.setenv("F1_WAREHOUSE", str(warehouse.path))
    [told] = [finding.text for finding in diagnose() if finding.what == "warehouse"]
    assert told == str(refused.value)
    restored = restore(warehouse, datetime(2026, 11, 30, tzinfo=UTC))
    put(warehouse, "2026-hungary")
    assert weekends(warehouse) == ["2026-hungary", "2026-monaco"]
    assert [path.read_bytes() for path in restored.set_aside if ".wal." in path.name] == [damaged]


@pytest.mark.parametrize("where", ["header", "first size", "last size"])
def test_one_flipped_byte_that_would_drop_transactions_in_silence_is_refused(crashed, where):
    """DuckDB opens each of these without a word, and some or all of the committed rows are gone."""
    warehouse, log = crashed
    content = bytearray(log.read_bytes())
    header_ends = content.index(b"\xff\xff") + 2
    last_flush = content.rindex(bytes.fromhex("640064ffff")) - 16
    at = {"header": 0, "first size": header_ends + 2, "last size": last_flush + 3}[where]
    content[at] ^= 0x40
    silent = warehouse.path.with_name("silent.duckdb")
    shutil.copy(warehouse.path, silent)
    silent.with_name("silent.duckdb.wal").write_bytes(content)
    with duckdb.connect(silent) as connection:
        assert connection.execute("SELECT count(*) FROM race.pit_stops").fetchall() < [(9,)]

    log.write_bytes(content)
    with pytest.raises(WarehouseError, match=r"f1.duckdb.wal.*is damaged|the header of f1.duckdb.wal is damaged"):
        put(warehouse, "2026-hungary")
    with pytest.raises(WarehouseError, match="is damaged"):
        warehouse.check()
    assert weekends(warehouse) == ["2026-monaco"]


def test_a_look_at_the_file_changes_nothing_and_minds_no_writer(crashed):
    warehouse, log = crashed
    before = log.read_bytes()
    warehouse.check()
    assert log.read_bytes() == before
    writer = subprocess.Popen([sys.executable, "-c", WRITE_FOR_LONG, warehouse.path], stdout=subprocess.PIPE, text=True)
    try:
        assert writer.stdout.readline() == "writing\n"
        warehouse.check()
    finally:
        writer.kill()
        writer.wait()
        writer.stdout.close()
    WarehouseFile(warehouse.path.with_name("none.duckdb")).check()


def test_every_write_ends_with_all_of_it_in_the_file(tmp_path):
    warehouse = WarehouseFile(tmp_path / "f1.duckdb")
    put(warehouse, "2026-monaco")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["f1.duckdb", "f1.duckdb.lock", "f1.published.duckdb"]
