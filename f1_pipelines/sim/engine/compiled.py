"""Compilation of the engine's loops: `@compiled`.

A compiled function takes numbers, arrays and records of structured arrays, allocates nothing and rounds each operation
as IEEE 754 says, in the order in which it is written, so a race has the same bits on every processor. numba translates
it once; the machine code is kept in a cache folder named after the digest of the simulator's sources, because numba's
own cache only notices changes of the file in which a function stands, not of the functions that it calls.
"""
from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba

Function = TypeVar("Function", bound=Callable[..., Any])
Record = Any  # one element of a structured array, as compiled code sees it
Records = Any  # a structured array
SIM = Path(__file__).parents[1]
PREFIX = "compiled-"
_CONFIG: Any = numba.config
_JIT: Any = numba.njit


def compiled(function: Function) -> Function:
    """Compile a function that allocates nothing on its first call, or load its machine code from the cache folder."""
    folder, _CONFIG.CACHE_DIR = _CONFIG.CACHE_DIR, str(cache_folder())
    try:
        # Without numba's runtime no reference is counted, which would cost more than the arithmetic of a car. Functions
        # are inlined: the tables that they take would be copied at each call.
        translated: Function = _JIT(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)(function)
    finally:
        _CONFIG.CACHE_DIR = folder
    return translated


@cache
def cache_folder() -> Path:
    """The folder of the machine code of these sources: beside them, or in the user's cache if they are read-only."""
    digest = hashlib.sha256()
    for path in sorted(SIM.rglob("*.py")):
        digest.update(path.relative_to(SIM).as_posix().encode() + b"\0" + path.read_bytes())
    return cache_parent() / f"{PREFIX}{digest.hexdigest()[:16]}"


def cache_parent() -> Path:
    """Where the cache folders lie."""
    if os.access(SIM, os.W_OK):
        return SIM / "__pycache__"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "f1_pipelines"
