"""Recovery from copies and backups after the file was deleted, cut off, overwritten or replaced."""
import os
import shutil
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import pytest

from f1_pipelines.warehouse.backup import create_backup, restore_backup
from f1_pipelines.warehouse.database import WarehouseError, WarehouseFile
from f1_pipelines.warehouse.duckdb_file import HEADERS_BYTES, DamagedFile, verify_file
from f1_pipelines.warehouse.ingest import stored_weekends
from f1_pipelines.warehouse.restore import reset, restore
from f1_pipelines.warehouse.verify import verify_database
from tests.warehouse.pit_stops import STOPS, put_weekend, weekends

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
BLOCK = 256 * 1024


@pytest.fixture
def warehouse(tmp_path: Path) -> WarehouseFile:
    """Three weekends, each published by a separate write."""
    warehouse = WarehouseFile(tmp_path / "my data" / "f1.duckdb", wait_s=5)
    for weekend in ("2026-monaco", "2026-spain", "2026-austria"):
        put_weekend(warehouse, weekend, 20)
    return warehouse


def delete(path: Path) -> None:
    path.unlink()


def empty(path: Path) -> None:
    os.truncate(path, 0)


def cut_off(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def zero_a_block(path: Path) -> None:
    """Overwrite 64 KiB in the middle of each block with zeros, until `verify_file` finds damage in a used block."""
    blocks = (path.stat().st_size - HEADERS_BYTES) // BLOCK
    for block in range(blocks):
        with path.open("r+b") as file:
            file.seek(HEADERS_BYTES + block * BLOCK + 64 * 1024)
            file.write(bytes(64 * 1024))
        try:
            verify_file(path)
        except DamagedFile:
            return
    raise AssertionError("no block of the file is in use")


def replace_by_an_empty_database(path: Path) -> None:
    path.unlink()
    duckdb.connect(path).close()


def replace_by_another_warehouse(path: Path) -> None:
    other = WarehouseFile(path.with_name("other") / "f1.duckdb")
    put_weekend(other, "2018-monaco")
    shutil.copy(other.path, path)


def replace_by_an_earlier_state(path: Path) -> None:
    shutil.copy(WarehouseFile(path).generations.newest_first()[-1], path)


DIE_WITH_A_LOG = """
import os, signal, sys
import duckdb
connection = duckdb.connect(sys.argv[1])
connection.execute("UPDATE race.pit_stops SET lap = 21 WHERE weekend = '2026-spain'")
connection.execute("UPDATE race.pit_stops SET lap = 22 WHERE weekend = '2026-monaco'")
os.kill(os.getpid(), signal.SIGKILL)
"""


def flip_a_byte_of_the_log(path: Path) -> None:
    subprocess.run([sys.executable, "-c", DIE_WITH_A_LOG, path], check=False)
    log = path.with_name(path.name + ".wal")
    content = bytearray(log.read_bytes())
    content[content.index(b"\xff\xff") + 4] ^= 1  # the size of the first entry
    log.write_bytes(content)


DAMAGES = [(delete, "is gone, while f1.published.duckdb holds"), (empty, "is empty, while f1.published.duckdb holds"),
           (cut_off, "is cut off|lists the free blocks"), (zero_a_block, "damaged|Corrupt database file"),
           (replace_by_an_empty_database, "holds no tables|is another database"),
           (replace_by_another_warehouse, "is another database than its published copy"),
           (replace_by_an_earlier_state, "is older than its published copy"),
           (flip_a_byte_of_the_log, "f1.duckdb.wal is damaged")]


@pytest.mark.parametrize(("damage", "message"), DAMAGES, ids=[damage.__name__ for damage, _ in DAMAGES])
def test_a_write_to_a_damaged_file_is_refused_and_a_restore_recovers_all_rows(warehouse, damage, message):
    damage(warehouse.path)
    copy = warehouse.published_path.read_bytes()
    for _ in range(2):  # a second attempt is refused too
        with pytest.raises(WarehouseError, match=message) as refused:
            put_weekend(warehouse, "2026-britain")
        assert "f1 restore" in str(refused.value)
        assert warehouse.published_path.read_bytes() == copy
    assert weekends(warehouse) == ["2026-austria", "2026-monaco", "2026-spain"]

    restored = restore(warehouse, NOW)
    assert restored.source == warehouse.published_path
    assert all(path.exists() for path in restored.set_aside)
    put_weekend(warehouse, "2026-britain")
    assert weekends(warehouse) == ["2026-austria", "2026-britain", "2026-monaco", "2026-spain"]
    verify_database(warehouse.path)
    verify_database(warehouse.published_path)


def test_a_restore_skips_a_damaged_copy(warehouse):
    delete(warehouse.path)
    zero_a_block(warehouse.published_path)
    restored = restore(warehouse, NOW)
    assert restored.source == warehouse.generations.newest_first()[0]
    assert "f1.published.duckdb are damaged" in restored.skipped[0] or "is damaged" in restored.skipped[0]
    assert weekends(warehouse) == ["2026-monaco", "2026-spain"]
    verify_database(warehouse.published_path)
    assert any(path.name.startswith("f1.published.duckdb.aside") for path in restored.set_aside)


def test_a_restore_without_an_intact_copy_is_refused_and_changes_nothing(warehouse):
    for path in [warehouse.path, *warehouse.copies()]:
        cut_off(path)
    before = {path: path.read_bytes() for path in [warehouse.path, *warehouse.copies()]}
    with pytest.raises(WarehouseError, match=r"no copy is intact .*name a backup.*`f1 reset`"):
        restore(warehouse, NOW)
    assert {path: path.read_bytes() for path in before} == before


def test_an_intact_file_is_not_restored_unless_a_copy_is_named(warehouse):
    with pytest.raises(WarehouseError, match="is intact, so nothing was restored; .*name the copy"):
        restore(warehouse, NOW)
    earlier = warehouse.generations.newest_first()[-1]
    restored = restore(warehouse, NOW, earlier)
    assert weekends(warehouse) == ["2026-monaco"]
    assert [path.name for path in restored.set_aside] == ["f1.duckdb.aside-20261130T120000Z"]
    put_weekend(warehouse, "2026-britain")
    assert weekends(warehouse) == ["2026-britain", "2026-monaco"]


def test_a_replaced_file_is_published_if_it_is_named(warehouse):
    replace_by_another_warehouse(warehouse.path)
    restore(warehouse, NOW, warehouse.path)
    assert weekends(warehouse) == ["2018-monaco"]
    assert weekends_of(warehouse.generations.newest_first()[0]) == ["2026-austria", "2026-monaco", "2026-spain"]


def weekends_of(path: Path) -> list[str]:
    with duckdb.connect(path, read_only=True) as connection:
        return sorted(stored_weekends(connection, STOPS.qualified))


def test_a_reset_sets_all_files_aside(warehouse):
    aside = reset(warehouse, NOW)
    assert sorted(path.name for path in aside.iterdir()) == ["f1.duckdb", "f1.generations", "f1.published.duckdb"]
    put_weekend(warehouse, "2026-britain")
    assert weekends(warehouse) == ["2026-britain"]
    with pytest.raises(WarehouseError, match="there is no warehouse at"):
        reset(WarehouseFile(warehouse.path.with_name("none.duckdb")), NOW)


def test_the_latest_copies_and_the_last_ones_of_earlier_days_are_kept(tmp_path):
    warehouse = WarehouseFile(tmp_path / "f1.duckdb", generations=2)
    for day in range(6):
        for hour in (9, 12, 18):
            put_weekend(warehouse, f"2026-day-{day}-{hour}")
            at = (NOW - timedelta(days=5 - day) + timedelta(hours=hour - 12)).timestamp()
            os.utime(warehouse.published_path, (at, at))
    names = [path.stem[:11] for path in warehouse.generations.newest_first()]
    assert names == ["20261130T12", "20261130T09", "20261129T18", "20261128T18"]
    assert [len(weekends_of(path)) for path in warehouse.generations.newest_first()] == [17, 16, 15, 12]
    none = WarehouseFile(tmp_path / "none" / "f1.duckdb", generations=0)
    put_weekend(none, "2026-monaco")
    put_weekend(none, "2026-spain")
    assert none.generations.newest_first() == []


KILL_DURING_RESTORE = """
import os, signal, sys
from datetime import UTC, datetime
from pathlib import Path
from f1_pipelines.warehouse import restore as module
from f1_pipelines.warehouse.database import WarehouseFile
set_aside = module._set_aside
def set_aside_and_die(path, now):
    set_aside(path, now)
    os.kill(os.getpid(), signal.SIGKILL)
module._set_aside = set_aside_and_die
module.restore(WarehouseFile(sys.argv[1]), datetime(2026, 11, 30, tzinfo=UTC))
"""


def test_a_killed_restore_can_be_repeated(warehouse):
    cut_off(warehouse.path)
    process = subprocess.run([sys.executable, "-c", KILL_DURING_RESTORE, warehouse.path], check=False)
    assert process.returncode == -signal.SIGKILL
    with pytest.raises(WarehouseError, match="is gone, while"):
        put_weekend(warehouse, "2026-britain")
    restore(warehouse, NOW)
    assert weekends(warehouse) == ["2026-austria", "2026-monaco", "2026-spain"]


@pytest.fixture
def beside(warehouse) -> tuple[Path, Path]:
    """Calendar and checkpoints beside the warehouse, including a running training."""
    calendar, checkpoints = warehouse.path.with_name("f1.calendar.csv"), warehouse.path.with_name("checkpoints")
    calendar.write_text("weekend\n2026-malaysia\n")
    for name in ("abc/model.safetensors", "abc/meta.json", "engineers/def/meta.json", "engineers/work/tiny/state.pt",
                 ".growing/meta.json"):
        (checkpoints / name).parent.mkdir(parents=True, exist_ok=True)
        (checkpoints / name).write_text(name)
    return calendar, checkpoints


def test_a_backup_restores_a_deleted_folder(warehouse, beside, tmp_path):
    calendar, checkpoints = beside
    target = tmp_path / "safe" / "backup"
    size = create_backup(warehouse, target, calendar, checkpoints, NOW)
    assert size == sum(path.stat().st_size for path in target.rglob("*") if path.is_file())
    assert not (target / "checkpoints" / "engineers" / "work").exists()
    assert [path.name for path in target.parent.iterdir()] == ["backup"]
    shutil.rmtree(warehouse.path.parent)

    restored = restore_backup(warehouse, target, calendar, checkpoints, NOW)
    assert weekends(warehouse) == ["2026-austria", "2026-monaco", "2026-spain"]
    assert restored.rows == 60 and not restored.set_aside
    assert calendar.read_text() == "weekend\n2026-malaysia\n"
    assert (checkpoints / "engineers" / "def" / "meta.json").read_text() == "engineers/def/meta.json"


def test_restoring_a_backup_keeps_newer_checkpoints_and_sets_different_files_aside(warehouse, beside, tmp_path):
    calendar, checkpoints = beside
    create_backup(warehouse, tmp_path / "backup", calendar, checkpoints, NOW)
    put_weekend(warehouse, "2026-britain")
    (checkpoints / "newer").mkdir()
    (checkpoints / "abc" / "model.safetensors").write_text("damaged")
    restored = restore_backup(warehouse, tmp_path / "backup", calendar, checkpoints, NOW)
    assert weekends(warehouse) == ["2026-austria", "2026-monaco", "2026-spain"]
    assert (checkpoints / "newer").is_dir()
    assert (checkpoints / "abc" / "model.safetensors").read_text() == "abc/model.safetensors"
    assert sorted(path.name.split(".aside")[0] for path in restored.set_aside) == ["f1.duckdb", "model.safetensors"]


@pytest.mark.parametrize("name", ["f1.duckdb", "checkpoints/abc/model.safetensors", "manifest.json"])
def test_a_damaged_backup_is_refused_and_changes_nothing(warehouse, beside, tmp_path, name):
    create_backup(warehouse, tmp_path / "backup", *beside, NOW)
    cut_off(tmp_path / "backup" / name)
    before = warehouse.path.read_bytes()
    with pytest.raises(WarehouseError, match="is damaged|can't be read"):
        restore_backup(warehouse, tmp_path / "backup", *beside, NOW)
    assert warehouse.path.read_bytes() == before


def test_a_damaged_warehouse_is_not_backed_up(warehouse, beside, tmp_path):
    zero_a_block(warehouse.path)
    with pytest.raises(WarehouseError, match="damaged"):
        create_backup(warehouse, tmp_path / "backup", *beside, NOW)
    assert not (tmp_path / "backup").exists()
    with pytest.raises(WarehouseError, match="there is no warehouse at"):
        create_backup(WarehouseFile(tmp_path / "none.duckdb"), tmp_path / "backup", *beside, NOW)


def test_a_backup_contains_the_commits_of_a_killed_writer(warehouse, beside, tmp_path):
    subprocess.run([sys.executable, "-c", DIE_WITH_A_LOG, warehouse.path], check=False)
    create_backup(warehouse, tmp_path / "backup", *beside, NOW)
    with duckdb.connect(tmp_path / "backup" / "f1.duckdb", read_only=True) as connection:
        assert connection.execute("SELECT DISTINCT lap FROM race.pit_stops ORDER BY lap").fetchall() == [
            (20,), (21,), (22,)]
