"""A store of checkpoints: each is a folder with its weights and `meta.json`, named by a digest of its content.

- The id is a digest of the identity in `meta.json`, which holds the digests of the weights: the same training on the
  same data gives the same checkpoint, on any run.
- A checkpoint is written under a name with a leading dot, synced, then renamed: readers never see half of one.
- No pickle: weights are safetensors, the rest is JSON.
"""
from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

META = "meta.json"
_BLOCK = 1 << 20


class CheckpointError(RuntimeError):
    """A checkpoint can't be used. The message says why and what to do."""


def checkpoint_id(identity: Mapping[str, Any]) -> str:
    """Return twelve hex digits from a checkpoint's identity, without times, metrics and versions of code."""
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:12]


@contextmanager
def temporary_folder(folder: Path) -> Iterator[Path]:
    """Create a hidden folder inside `folder` to write a checkpoint into. Removes it unless `commit` renamed it."""
    temporary = folder / f".{uuid4().hex}"
    temporary.mkdir(parents=True)
    try:
        yield temporary
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def commit(temporary: Path, target: Path, meta: Mapping[str, Any], is_intact: Callable[[Path], bool]) -> bool:
    """Move a written checkpoint to its place.

    Args:
        temporary: Folder with all files except `meta.json`.
        target: The checkpoint's folder, named by its id.
        meta: Content of `meta.json`.
        is_intact: Whether an existing checkpoint at `target` can be used. A damaged one is replaced.

    Returns:
        Whether it was stored; False if an intact one exists, or another process was first.
    """
    (temporary / META).write_text(json.dumps(meta, indent=2, sort_keys=True))
    for path in temporary.iterdir():
        with path.open("rb+") as file:
            os.fsync(file.fileno())
    if target.exists():
        if is_intact(target):
            return False
        shutil.rmtree(target, ignore_errors=True)
    try:
        temporary.rename(target)
    except OSError:
        if target.exists():
            return False
        raise
    return True


def read_meta(path: Path) -> dict[str, Any]:
    """Read `meta.json` of a checkpoint.

    Raises:
        FileNotFoundError: The file is missing.
        ValueError: It is not a JSON object.
    """
    meta = json.loads((path / META).read_text())
    if not isinstance(meta, dict):
        raise ValueError(f"{META} holds {type(meta).__name__}, no object")
    return meta


def sha256_of(paths: Iterable[Path]) -> str:
    """Return the digest of the content of files, one after the other.

    Raises:
        FileNotFoundError: A file is missing.
    """
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                digest.update(block)
    return digest.hexdigest()
