"""The parts of DuckDB's file format needed to tell an intact file from a damaged one without opening it.

Notable facts (storage of DuckDB 1.0 to 2.0; a test checks them against the installed version):
- A file has three headers of 4096 bytes (one of the file, two of the database, written in turns), then blocks of equal
  size. Each header and block begins with a checksum of its other bytes.
- Of the two database headers the one with the higher iteration is current. It has the number of blocks and the position
  of the list of free blocks. A kill leaves half-written free blocks, and free blocks at the end may be missing: both
  are harmless.
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
_SEGMENTS = 64  # per metadata block
_END_OF_LIST = _MASK  # pointer value after the last segment


class DamagedFile(RuntimeError):
    """A database file or its log is damaged. The message says where."""


@dataclass(frozen=True)
class Header:
    """The current headers of a database file.

    Attributes:
        database: Id of the database, shared by copies of a file.
        iteration: Number of checkpoints that changed the file.
        free_list: Start of the list of free blocks: block number in the low 56 bits, segment above.
        blocks: Number of blocks, free ones included.
        block_bytes: Size of a block [bytes].
    """

    database: bytes
    iteration: int
    free_list: int
    blocks: int
    block_bytes: int


def read_header(path: Path) -> Header | None:
    """Read the headers of a database file. Return None for invalid headers, which DuckDB reports on opening."""
    with path.open("rb") as file:
        raw = file.read(HEADERS_BYTES)
    if len(raw) < HEADERS_BYTES or raw[8:12] != _MAGIC:
        return None
    headers = [raw[start:start + _HEADER_BYTES] for start in (_HEADER_BYTES, 2 * _HEADER_BYTES)]
    valid = [struct.unpack("<5Q", header[8:48]) for header in headers if _is_intact(header)]
    if not valid:
        return None
    iteration, _, free_list, blocks, block_bytes = max(valid)
    return Header(raw[_DATABASE_ID], iteration, free_list, blocks, block_bytes)


def verify_size(path: Path) -> None:
    """Check that a file is long enough for its used blocks. Reads only the headers and the list of free blocks.

    Raises:
        DamagedFile: The file is too short, or its list of free blocks is damaged.
    """
    header = read_header(path)
    if header:
        _used_blocks(path, header)


def verify_file(path: Path) -> None:
    """Check the checksums of all headers and used blocks of a database file, at some GB/s.

    Raises:
        DamagedFile: A checksum differs, or it is not a database file.
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
        raise DamagedFile(f"{len(damaged)} of {len(used)} blocks of {path.name} are damaged, first block {damaged[0]}")


def _used_blocks(path: Path, header: Header) -> set[int]:
    """The numbers of the used blocks. Raise if the file is too short to hold them."""
    used = set(range(header.blocks)) - _free_blocks(path, header)
    size, expected = path.stat().st_size, HEADERS_BYTES + (max(used, default=-1) + 1) * header.block_bytes
    if size < expected:
        raise DamagedFile(f"{path.name} is cut off: it has {size:,} bytes; wanted {expected:,} by its header")
    return used


def _free_blocks(path: Path, header: Header) -> set[int]:
    """The numbers of the free blocks: a linked list of segments, each a pointer to the next and then words. All words
    together are a count and the numbers."""
    segment_bytes = (header.block_bytes - 8) // _SEGMENTS // 8 * 8
    words: list[int] = []
    pointer, size = header.free_list, path.stat().st_size
    with path.open("rb") as file:
        while pointer != _END_OF_LIST and (not words or len(words) <= words[0]):
            number, segment = pointer & (1 << 56) - 1, pointer >> 56
            start = HEADERS_BYTES + number * header.block_bytes
            if start + header.block_bytes > size:
                raise DamagedFile(f"{path.name} is cut off: it has {size:,} bytes; wanted "
                                  f"{start + header.block_bytes:,} for block {number} of its header")
            file.seek(start)
            block = file.read(header.block_bytes)
            if not _is_intact(block):
                raise DamagedFile(f"block {number} of {path.name}, which lists the free blocks, is damaged")
            pointer, *values = struct.unpack_from(f"<{segment_bytes // 8}Q", block, 8 + segment * segment_bytes)
            words += values
    return set(words[1:words[0] + 1]) if words else set()


def _damaged_blocks(path: Path, header: Header) -> list[int]:
    damaged: list[int] = []
    with path.open("rb") as file:
        file.seek(HEADERS_BYTES)
        for first in range(0, header.blocks, _BLOCKS_AT_ONCE):
            content = file.read(min(_BLOCKS_AT_ONCE, header.blocks - first) * header.block_bytes)
            count = len(content) // header.block_bytes  # fewer if free blocks at the end are missing
            if not count:
                break
            words = np.frombuffer(content, "<u8", count * header.block_bytes // 8).reshape(count, -1)
            computed = np.bitwise_xor.reduce(words[:, 1:] * np.uint64(_FACTOR), axis=1) ^ np.uint64(_SEED)
            damaged += [first + int(offset) for offset in np.flatnonzero(computed != words[:, 0])]
    return damaged


def _is_intact(block: bytes) -> bool:
    return int.from_bytes(block[:8], "little") == checksum(block[8:])


def checksum(content: bytes) -> int:
    """DuckDB's checksum: xor of the 8-byte words times a factor, then the end of MurmurHash2A for the last bytes."""
    words_bytes = len(content) // 8 * 8
    words = np.frombuffer(content[:words_bytes], "<u8") * np.uint64(_FACTOR)
    words_hash = _SEED ^ int(np.bitwise_xor.reduce(words)) if len(words) else _SEED
    if words_bytes == len(content):
        return words_hash
    rest, factor = content[words_bytes:], 0xC6A4A7935BD1E995
    mixed = (0xE17A1465 ^ (len(rest) * factor)) & _MASK
    mixed = ((mixed ^ int.from_bytes(rest, "little")) * factor) & _MASK
    mixed = ((mixed ^ mixed >> 47) * factor) & _MASK
    return words_hash ^ mixed ^ mixed >> 47
