"""After a kill, a torn end of the log is ignored, and a damaged log is refused with the command to recover."""
import os
import shutil
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pytest

from f1_pipelines.cli.doctor import diagnose
from f1_pipelines.warehouse.database import WarehouseError, WarehouseFile
from f1_pipelines.warehouse.restore import restore
from tests.warehouse.pit_stops import put_weekend, weekends

# Commits twice and kills itself: both transactions are only in the write-ahead log.
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


@pytest.fixture
def crashed(tmp_path: Path) -> tuple[WarehouseFile, Path]:
    """A warehouse of a killed writer, and its log: only 2026-monaco is published."""
    warehouse = WarehouseFile(tmp_path / "my data" / "f1.duckdb", wait_s=1)
    put_weekend(warehouse, "2026-monaco")
    process = subprocess.run([sys.executable, "-c", DIE_WITH_A_LOG, warehouse.path], check=False)
    assert process.returncode == -signal.SIGKILL
    log = warehouse.path.with_name("f1.duckdb.wal")
    assert log.stat().st_size > 0
    return warehouse, log


def test_what_was_committed_is_there_after_a_kill(crashed):
    warehouse, _ = crashed
    assert weekends(warehouse) == ["2026-monaco"]
    put_weekend(warehouse, "2026-hungary")
    assert weekends(warehouse) == ["2026-austria", "2026-hungary", "2026-monaco", "2026-spain"]


def test_a_log_without_its_end_loses_the_torn_transaction_only(crashed):
    warehouse, log = crashed
    os.truncate(log, log.stat().st_size - 10)
    put_weekend(warehouse, "2026-hungary")
    assert weekends(warehouse) == ["2026-hungary", "2026-monaco", "2026-spain"]


def test_a_damaged_log_is_refused_and_set_aside_by_a_restore(crashed, monkeypatch):
    warehouse, log = crashed
    damaged = log.read_bytes().replace(b"2026-spain", b"\xff" * 10, 1)
    log.write_bytes(damaged)
    with pytest.raises(WarehouseError, match=r"f1.duckdb.wal is damaged at byte \d+ of \d+.*`f1 restore`") as refused:
        put_weekend(warehouse, "2026-hungary")
    assert log.read_bytes() == damaged
    assert weekends(warehouse) == ["2026-monaco"]

    monkeypatch.setenv("F1_WAREHOUSE", str(warehouse.path))
    [finding] = [finding for finding in diagnose() if finding.what == "warehouse"]
    assert finding.text == str(refused.value)
    restored = restore(warehouse, datetime(2026, 11, 30, tzinfo=UTC))
    put_weekend(warehouse, "2026-hungary")
    assert weekends(warehouse) == ["2026-hungary", "2026-monaco"]
    assert [path.read_bytes() for path in restored.set_aside if ".wal." in path.name] == [damaged]


@pytest.mark.parametrize("where", ["header", "first size", "last size"])
def test_a_flipped_byte_that_silently_drops_transactions_is_refused(crashed, where):
    """DuckDB opens each of these files without an error, but some or all committed rows are missing."""
    warehouse, log = crashed
    content = bytearray(log.read_bytes())
    header_ends = content.index(b"\xff\xff") + 2
    last_flush = content.rindex(bytes.fromhex("640064ffff")) - 16
    at = {"header": 0, "first size": header_ends + 2, "last size": last_flush + 3}[where]
    content[at] ^= 0x40
    copy = warehouse.path.with_name("copy.duckdb")
    shutil.copy(warehouse.path, copy)
    copy.with_name("copy.duckdb.wal").write_bytes(content)
    with duckdb.connect(copy) as connection:
        assert connection.execute("SELECT count(*) FROM race.pit_stops").fetchall() < [(9,)]

    log.write_bytes(content)
    with pytest.raises(WarehouseError, match=r"f1.duckdb.wal.*is damaged|the header of f1.duckdb.wal is damaged"):
        put_weekend(warehouse, "2026-hungary")
    with pytest.raises(WarehouseError, match="is damaged"):
        warehouse.check()
    assert weekends(warehouse) == ["2026-monaco"]


def test_a_check_changes_nothing_and_does_not_wait_for_a_writer(crashed):
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
    put_weekend(warehouse, "2026-monaco")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["f1.duckdb", "f1.duckdb.lock", "f1.published.duckdb"]
