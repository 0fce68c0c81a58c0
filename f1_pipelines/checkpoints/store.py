"""A store of checkpoints: each is a folder with its weights and `meta.json`, named by a digest of its content.

- The id is a digest of the meaning in `meta.json`, which holds the digests of the weights: the same training on the
  same data is the same checkpoint, wherever and however often it runs.
- A checkpoint is written under a name with a leading dot, synced, then renamed: no reader ever meets half of one.
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
    """A checkpoint can't be used. One sentence: what came, what was wanted, what to do."""


def checkpoint_id(meaning: Mapping[str, Any]) -> str:
    """Twelve hex digits from what a checkpoint means; times, metrics and versions of code are no part of it."""
    return hashlib.sha256(json.dumps(meaning, sort_keys=True).encode()).hexdigest()[:12]


@contextmanager
def temporary_folder(folder: Path) -> Iterator[Path]:
    """A hidden folder inside `folder` to write a checkpoint into; what `commit` did not rename is removed."""
    growing = folder / f".{uuid4().hex}"
    growing.mkdir(parents=True)
    try:
        yield growing
    finally:
        shutil.rmtree(growing, ignore_errors=True)


def commit(growing: Path, target: Path, meta: Mapping[str, Any], is_intact: Callable[[Path], bool]) -> bool:
    """Put a written checkpoint into its place.

    Args:
        growing: Folder with all files but `meta.json`.
        target: The checkpoint's folder, named by its id.
        meta: Content of `meta.json`.
        is_intact: Whether a checkpoint that is already at `target` can be used. A damaged one is replaced.

    Returns:
        Whether it was stored; False if an intact one was there before, or another process was first.
    """
    (growing / META).write_text(json.dumps(meta, indent=2, sort_keys=True))
    for path in growing.iterdir():
        with path.open("rb+") as file:
            os.fsync(file.fileno())
    if target.exists():
        if is_intact(target):
            return False
        shutil.rmtree(target, ignore_errors=True)
    try:
        growing.rename(target)
    except OSError:
        if target.exists():
            return False
        raise
    return True


def read_meta(path: Path) -> dict[str, Any]:
    """`meta.json` of a checkpoint.

    Raises:
        FileNotFoundError: There is none.
        ValueError: It is no JSON object.
    """
    meta = json.loads((path / META).read_text())
    if not isinstance(meta, dict):
        raise ValueError(f"{META} holds {type(meta).__name__}, no object")
    return meta


def sha256_of(paths: Iterable[Path]) -> str:
    """Digest of the content of files, one after the other.

    Raises:
        FileNotFoundError: One of them is not there.
    """
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                digest.update(block)
    return digest.hexdigest()
