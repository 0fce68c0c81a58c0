"""The parts of DuckDB's write-ahead log format needed to tell a torn log from a damaged one.

A log has a header, with the database id and the iteration it continues, then entries: size, checksum, content. A commit
ends with a flush entry. DuckDB replays up to the first truncated entry and ignores the rest as torn. One flipped byte
of a size or of the header can therefore make committed transactions look truncated. (Log version 2, DuckDB 2.0; a test
checks it against the installed version.)
"""
from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

from f1_pipelines.warehouse.duckdb_file import DamagedFile, Header, checksum, read_header

_LOG_HEADER = bytes.fromhex("640062650002660010")  # entry type, version 2; the database id (16 numbers) follows
_LOG_ITERATION, _LOG_HEADER_END = bytes.fromhex("6700"), bytes.fromhex("ffff")
_ENTRY = struct.Struct("<QQ")  # size of the content, its checksum
_FLUSH_CONTENT = bytes.fromhex("640064ffff")
_CHECKPOINT_CONTENT, _CHECKPOINT_WITHIN = bytes.fromhex("640063"), 64  # last entry before the flush, last 64 bytes


def verify_log(path: Path) -> None:
    """Check that DuckDB would replay all committed transactions of a write-ahead log.

    A log that a kill truncated within its last, uncommitted transaction is intact.

    Args:
        path: The database file; one without a log passes.

    Raises:
        DamagedFile: A committed transaction would be lost, or DuckDB would refuse the log.
    """
    file = path.with_name(path.name + ".wal")
    header = read_header(path) if path.exists() else None
    if header is None or not file.exists():
        return
    log = file.read_bytes()
    start = _log_start(log, header, file.name)
    position = start
    while position is not None and position < len(log):
        end = _entry_end(log, position)
        if end is None:
            _refuse_lost_commit(log[position:], position, file.name)
            return
        if not _entry_is_intact(log, position, end):
            if not log[position:].strip(b"\0"):  # a power cut leaves zeros after the last write
                return
            raise DamagedFile(f"{file.name} is damaged at byte {position} of {len(log)}")
        position = end


def _log_start(log: bytes, header: Header, name: str) -> int | None:
    """Position of the first entry; None if the log is truncated before it or was checkpointed already."""
    id_end = _after_numbers(log, len(_LOG_HEADER), len(header.database))
    iteration_end = None if id_end is None else _after_numbers(log, id_end + len(_LOG_ITERATION), 1)
    if id_end is None or iteration_end is None or len(log) < iteration_end + len(_LOG_HEADER_END):
        _refuse_lost_commit(log, 0, name)
        return None
    database = _numbers(log[len(_LOG_HEADER):id_end])
    [iteration] = _numbers(log[id_end + len(_LOG_ITERATION):iteration_end])
    start = iteration_end + len(_LOG_HEADER_END)
    if (iteration == header.iteration - 1 and database == list(header.database)
            and _CHECKPOINT_CONTENT in log[-_CHECKPOINT_WITHIN:]):
        return None  # killed after a checkpoint, before the log was removed: the file has all of it
    expected = (_LOG_HEADER + log[len(_LOG_HEADER):id_end] + _LOG_ITERATION + log[id_end + 2:iteration_end]
                + _LOG_HEADER_END)
    if database != list(header.database) or iteration != header.iteration or log[:start] != expected:
        raise DamagedFile(f"the header of {name} is damaged, or the log belongs to another file")
    return start


def _entry_end(log: bytes, position: int) -> int | None:
    """End of the entry at `position`; None if the log ends before."""
    if position + _ENTRY.size > len(log):
        return None
    size, _ = _ENTRY.unpack_from(log, position)
    end = position + _ENTRY.size + size
    return end if end <= len(log) else None


def _entry_is_intact(log: bytes, position: int, end: int) -> bool:
    _, expected = _ENTRY.unpack_from(log, position)
    return expected == checksum(log[position + _ENTRY.size:end])


def _refuse_lost_commit(rest: bytes, position: int, name: str) -> None:
    """Raise if the part that a replay would ignore has a flush entry, even one with a wrong byte."""
    flush = _ENTRY.pack(len(_FLUSH_CONTENT), checksum(_FLUSH_CONTENT)) + _FLUSH_CONTENT
    content = np.frombuffer(rest, np.uint8)
    starts = len(content) - len(flush) + 1
    if starts < 1:
        return
    equal = np.zeros(starts, np.int32)
    for offset, byte in enumerate(flush):
        equal += content[offset:offset + starts] == byte
    if (equal >= len(flush) - 1).any():
        raise DamagedFile(f"{name} is damaged at byte {position}: DuckDB would drop committed transactions after it")


def _after_numbers(log: bytes, position: int, count: int) -> int | None:
    """Position after `count` numbers of variable length (LEB128); None if the log ends before."""
    for _ in range(count):
        while position < len(log) and log[position] & 0x80:
            position += 1
        position += 1
    return position if position <= len(log) else None


def _numbers(encoded: bytes) -> list[int]:
    """Decode numbers from LEB128."""
    numbers, value, shift = [], 0, 0
    for byte in encoded:
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            numbers.append(value)
            value, shift = 0, 0
    return numbers
