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
from functools import cache, cached_property, update_wrapper
from pathlib import Path
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])
Record = Any  # one element of a structured array, as compiled code sees it
Records = Any  # a structured array
SIM = Path(__file__).parents[1]
PREFIX = "compiled-"


class CompiledFunction:
    """A function that is translated when it is first called, from Python or from another compiled function.

    So numba, which takes half a second and 110 MiB to import, is only imported by those who race.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        update_wrapper(self, function)

    def __call__(self, *arguments: Any) -> Any:
        """Call the machine code."""
        return self.dispatcher(*arguments)

    @cached_property
    def dispatcher(self) -> Any:
        """numba's form of the function."""
        config, jit = _numba()
        folder, config.CACHE_DIR = config.CACHE_DIR, str(cache_folder())
        try:
            # Without numba's runtime no reference is counted, which would cost more than the arithmetic of a car.
            # Functions are inlined: the tables that they take would be copied at each call.
            return jit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)(self.function)
        finally:
            config.CACHE_DIR = folder


def compiled(function: Function) -> Function:
    """Compile a function that allocates nothing on its first call, or load its machine code from the cache folder."""
    return cast("Function", CompiledFunction(function))


@cache
def _numba() -> tuple[Any, Any]:
    """numba's configuration and decorator, taught that a CompiledFunction stands for its dispatcher."""
    import numba
    from numba.extending import typeof_impl

    @typeof_impl.register(CompiledFunction)
    def type_of(function: CompiledFunction, context: Any) -> Any:
        return typeof_impl(function.dispatcher, context)

    return numba.config, numba.njit


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
