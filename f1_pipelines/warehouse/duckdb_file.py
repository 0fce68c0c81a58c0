"""DuckDB's file format, as far as it takes to tell an intact file from a damaged one without opening it.

Notable facts (storage of DuckDB 1.0 to 2.0; a test holds them against the installed version):
- A file is three headers of 4096 bytes (one of the file, two of the database, written in turns), then blocks of one
  size. Headers and blocks begin with a checksum of all their other bytes.
- Of the two database headers the one with the higher iteration counts. It says how many blocks there are and where the
  list of free ones is. A kill leaves half-written free blocks, and free blocks at the end may be cut off: both are
  harmless.
"""
from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np

_HEADER_BYTES = 4096
HEADERS_BYTES = 3 * _HEADER_BYTES
_MAGIC = b"DUCK"
_DATABASE_ID = slice(124, 140)  # within the file header
_SEED, _FACTOR, _MASK = 5381, 0xBF58476D1CE4E5B9, (1 << 64) - 1
_BLOCKS_AT_ONCE = 32
_SEGMENTS = 64  # of a block that holds metadata
_NOWHERE = _MASK  # no further segment


class DamagedFile(RuntimeError):
    """A database file or its log is not what DuckDB wrote. The message says in what."""


@dataclass(frozen=True)
class Header:
    """What the headers of a file say.

    Attributes:
        database: Id of the database; copies of a file share it.
        iteration: Counts checkpoints that changed something.
        free_list: Where the list of free blocks begins: block in the low 56 bits, segment of it above.
        blocks: Number of blocks, free ones included.
        block_bytes: Size of each [bytes].
    """

    database: bytes
    iteration: int
    free_list: int
    blocks: int
    block_bytes: int


def read_header(path: Path) -> Header | None:
    """The headers of a database file; None where they can't be read, which DuckDB itself then reports on opening."""
    with path.open("rb") as file:
        raw = file.read(HEADERS_BYTES)
    if len(raw) < HEADERS_BYTES or raw[8:12] != _MAGIC:
        return None
    databases = [raw[start:start + _HEADER_BYTES] for start in (_HEADER_BYTES, 2 * _HEADER_BYTES)]
    valid = [struct.unpack("<5Q", one[8:48]) for one in databases if _is_intact(one)]
    if not valid:
        return None
    iteration, _, free_list, blocks, block_bytes = max(valid)
    return Header(raw[_DATABASE_ID], iteration, free_list, blocks, block_bytes)


def verify_size(path: Path) -> None:
    """Check that a file holds all blocks that are in use. Reads the headers and the list of free blocks only.

    Raises:
        DamagedFile: It is shorter.
    """
    header = read_header(path)
    if header:
        _used_blocks(path, header)


def verify_file(path: Path) -> None:
    """Check all headers of a database file and every block in use against their checksums, at some GB a second.

    Raises:
        DamagedFile: Something differs, or it is no database file.
    """
    with path.open("rb") as file:
        raw = file.read(HEADERS_BYTES)
    header = read_header(path)
    if header is None or not all(_is_intact(raw[start:start + _HEADER_BYTES])
                                 for start in range(0, HEADERS_BYTES, _HEADER_BYTES)):
        raise DamagedFile(f"the header of {path.name} is damaged")
    used = _used_blocks(path, header)
    damaged = sorted(used & set(_damaged_blocks(path, header)))
    if damaged:
        raise DamagedFile(f"{len(damaged)} of {len(used)} blocks of {path.name} are damaged, the first is block "
                          f"{damaged[0]}")


def _used_blocks(path: Path, header: Header) -> set[int]:
    """Numbers of the blocks in use, all of which the file holds."""
    used = set(range(header.blocks)) - _free_blocks(path, header)
    size, wanted = path.stat().st_size, HEADERS_BYTES + (max(used, default=-1) + 1) * header.block_bytes
    if size < wanted:
        raise DamagedFile(f"{path.name} is cut off: it has {size:,} bytes, its header says {wanted:,}")
    return used


def _free_blocks(path: Path, header: Header) -> set[int]:
    """The list of free blocks: segments that each begin with where the next one is; a count, then the numbers."""
    segment_bytes = (header.block_bytes - 8) // _SEGMENTS // 8 * 8
    words: list[int] = []
    pointer, size = header.free_list, path.stat().st_size
    with path.open("rb") as file:
        while pointer != _NOWHERE and (not words or len(words) <= words[0]):
            number, segment = pointer & (1 << 56) - 1, pointer >> 56
            start = HEADERS_BYTES + number * header.block_bytes
            if start + header.block_bytes > size:
                raise DamagedFile(f"{path.name} is cut off: it has {size:,} bytes, its header says that block {number} "
                                  f"ends at {start + header.block_bytes:,}")
            file.seek(start)
            block = file.read(header.block_bytes)
            if not _is_intact(block):
                raise DamagedFile(f"block {number} of {path.name}, which lists the free blocks, is damaged")
            pointer, *more = struct.unpack_from(f"<{segment_bytes // 8}Q", block, 8 + segment * segment_bytes)
            words += more
    return set(words[1:words[0] + 1]) if words else set()


def _damaged_blocks(path: Path, header: Header) -> list[int]:
    damaged: list[int] = []
    with path.open("rb") as file:
        file.seek(HEADERS_BYTES)
        for first in range(0, header.blocks, _BLOCKS_AT_ONCE):
            content = file.read(min(_BLOCKS_AT_ONCE, header.blocks - first) * header.block_bytes)
            count = len(content) // header.block_bytes  # fewer where free blocks at the end are cut off
            if not count:
                break
            words = np.frombuffer(content, "<u8", count * header.block_bytes // 8).reshape(count, -1)
            computed = np.bitwise_xor.reduce(words[:, 1:] * np.uint64(_FACTOR), axis=1) ^ np.uint64(_SEED)
            damaged += [first + int(at) for at in np.flatnonzero(computed != words[:, 0])]
    return damaged


def _is_intact(block: bytes) -> bool:
    return int.from_bytes(block[:8], "little") == checksum(block[8:])


def checksum(content: bytes) -> int:
    """DuckDB's checksum: whole words multiplied and joined by xor, the last bytes hashed as MurmurHash2A ends."""
    whole = len(content) // 8 * 8
    words = np.frombuffer(content[:whole], "<u8") * np.uint64(_FACTOR)
    whole_words = _SEED ^ int(np.bitwise_xor.reduce(words)) if len(words) else _SEED
    if whole == len(content):
        return whole_words
    rest, factor = content[whole:], 0xC6A4A7935BD1E995
    mixed = (0xE17A1465 ^ (len(rest) * factor)) & _MASK
    mixed = ((mixed ^ int.from_bytes(rest, "little")) * factor) & _MASK
    mixed = ((mixed ^ mixed >> 47) * factor) & _MASK
    return whole_words ^ mixed ^ mixed >> 47
