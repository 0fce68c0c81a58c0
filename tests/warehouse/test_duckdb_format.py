"""Our reading of DuckDB's file and log formats, checked against the installed version: damage is found, kills pass."""
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import duckdb
import numpy as np
import pytest

from f1_pipelines.warehouse.duckdb_file import HEADERS_BYTES, DamagedFile, read_header, verify_file, verify_size
from f1_pipelines.warehouse.duckdb_log import verify_log

BLOCK = 256 * 1024


@pytest.fixture(scope="module")
def database(tmp_path_factory) -> Path:
    """A file with free blocks between used ones, and an index."""
    path = tmp_path_factory.mktemp("format") / "some.duckdb"
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE numbers (i BIGINT PRIMARY KEY, name VARCHAR, x DOUBLE)")
        connection.execute("INSERT INTO numbers SELECT i, 'name ' || i, random() FROM range(150000) made(i)")
        connection.execute("CHECKPOINT")
        for part in range(3):
            connection.execute("DELETE FROM numbers WHERE i % 3 = ?", [part])
            connection.execute("CHECKPOINT")
            connection.execute("INSERT INTO numbers SELECT i, 'new ' || i, random() FROM range(150000) made(i) "
                               "WHERE i % 3 = ?", [part])
            connection.execute("CHECKPOINT")
    return path


@pytest.fixture
def copy(database, tmp_path) -> Path:
    return Path(shutil.copy(database, tmp_path))


def used_and_free(path: Path) -> tuple[int, int]:
    with duckdb.connect(path, read_only=True) as connection:
        [(used, free)] = connection.execute("SELECT used_blocks, free_blocks FROM pragma_database_size()").fetchall()
    return used, free


def overwrite(path: Path, at: int, content: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(content)


def test_an_intact_file_with_free_blocks_passes(database):
    used, free = used_and_free(database)
    assert free > 3
    assert read_header(database).blocks == used + free
    verify_file(database)


def test_a_zeroed_block_is_damage_only_if_it_is_used(copy):
    """The number of zeroed blocks found damaged equals DuckDB's number of used blocks."""
    used, free = used_and_free(copy)
    content, damaged = copy.read_bytes(), 0
    for block in range(used + free):
        overwrite(copy, HEADERS_BYTES + block * BLOCK, bytes(BLOCK))
        try:
            verify_file(copy)
        except DamagedFile as problem:
            assert "damaged" in str(problem)
            damaged += 1
        overwrite(copy, 0, content)
    assert damaged == used


@pytest.mark.parametrize("seed", range(8))
def test_a_flipped_bit_in_a_used_block_is_found(copy, seed):
    rng, size = np.random.default_rng(seed), copy.stat().st_size
    with duckdb.connect(copy, read_only=True) as connection:
        blocks = [block for (block,) in connection.execute(
            "SELECT DISTINCT block_id FROM pragma_storage_info('numbers') WHERE block_id >= 0").fetchall()]
    at = HEADERS_BYTES + int(rng.choice(blocks)) * BLOCK + int(rng.integers(BLOCK))
    assert at < size
    content = copy.read_bytes()
    overwrite(copy, at, bytes([content[at] ^ 1 << int(rng.integers(8))]))
    with pytest.raises(DamagedFile, match=r"1 of \d+ blocks of some.duckdb are damaged"):
        verify_file(copy)


@pytest.mark.parametrize("at", [0, 9, 130, 4096, 4096 + 20, 8192 + 3])
def test_a_damaged_header_is_found(copy, at):
    overwrite(copy, at, bytes([copy.read_bytes()[at] ^ 0x10]))
    with pytest.raises(DamagedFile, match="the header of some.duckdb is damaged"):
        verify_file(copy)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.6, 0.95])
def test_a_cut_off_file_is_found_by_its_size(copy, share):
    os.truncate(copy, int(copy.stat().st_size * share))
    with pytest.raises(DamagedFile):
        verify_file(copy)
    if copy.stat().st_size > HEADERS_BYTES:
        with pytest.raises(DamagedFile, match="cut off|free blocks"):
            verify_size(copy)


DIE_WITH_A_LOG = """
import os, signal, sys
import duckdb
connection = duckdb.connect(sys.argv[1])
connection.execute("INSERT INTO made VALUES (100, 'a')")
connection.execute("BEGIN; INSERT INTO made VALUES (101, 'b'); DELETE FROM made WHERE i = 3; COMMIT")
connection.execute("INSERT INTO made SELECT i, 'c' FROM range(1000, 1020) n(i)")
if len(sys.argv) > 2:
    connection.execute(f"PRAGMA debug_checkpoint_abort = '{sys.argv[2]}'")
    try:
        connection.execute("CHECKPOINT")
    except duckdb.Error:
        pass
os.kill(os.getpid(), signal.SIGKILL)
"""


def killed(folder: Path, *abort: str) -> tuple[Path, Path]:
    """A database whose writer was killed after three commits, and its log."""
    path = folder / "log.duckdb"
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE made (i INTEGER PRIMARY KEY, name VARCHAR)")
        connection.execute("INSERT INTO made SELECT i, 'x' FROM range(10) n(i)")
    process = subprocess.run([sys.executable, "-c", DIE_WITH_A_LOG, path, *abort], check=False)
    assert process.returncode == -signal.SIGKILL
    return path, path.with_name("log.duckdb.wal")


def test_every_flipped_bit_of_a_log_is_found_and_a_cut_off_log_passes(tmp_path):
    path, log = killed(tmp_path)
    verify_log(path)
    content = log.read_bytes()
    for at in range(len(content)):
        for bit in range(8):
            log.write_bytes(content[:at] + bytes([content[at] ^ 1 << bit]) + content[at + 1:])
            with pytest.raises(DamagedFile):
                verify_log(path)
    for end in range(len(content)):  # as after a kill during a write of the log
        log.write_bytes(content[:end])
        verify_log(path)
    log.write_bytes(content + bytes(100))  # as after a power cut
    verify_log(path)


@pytest.mark.parametrize("abort", ["before_header", "before_truncate", "after_free_list_write"])
def test_a_kill_during_a_checkpoint_is_not_damage(tmp_path, abort):
    path, log = killed(tmp_path, abort)
    assert log.stat().st_size > 0
    verify_file(path)
    verify_log(path)
    with duckdb.connect(path) as connection:
        assert connection.execute("SELECT count(*) FROM made").fetchall() == [(31,)]
    verify_file(path)


def test_the_log_of_another_file_is_found(tmp_path):
    _, log = killed(tmp_path)
    other = tmp_path / "other.duckdb"
    with duckdb.connect(other) as connection:
        connection.execute("CREATE TABLE made (i INTEGER)")
    shutil.copy(log, tmp_path / "other.duckdb.wal")
    with pytest.raises(DamagedFile, match="or the log belongs to another file"):
        verify_log(other)
