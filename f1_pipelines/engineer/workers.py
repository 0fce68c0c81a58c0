"""Races spread over processes: the simulator needs one core per race, and races are independent."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def map_races(function: Callable[[Item], Result], items: Sequence[Item], workers: int,
              chunksize: int = 4) -> Iterator[Result]:
    """`map(function, items)`, in order, over processes.

    Args:
        function: Pickled once per chunk.
        items: Pickled.
        workers: Number of processes; below 2, runs in this one.
        chunksize: Items that a process takes at a time.
    """
    if workers < 2:
        yield from map(function, items)
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        yield from pool.map(function, items, chunksize=chunksize)
