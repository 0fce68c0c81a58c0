"""Races spread over processes: the simulator needs one core a race, and races don't depend on each other."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def map_races(job: Callable[[Item], Result], items: Sequence[Item], workers: int, at_once: int = 4) -> Iterator[Result]:
    """`map(job, items)` over several processes, results in order.

    Args:
        job: Called with each item; pickled, as are items and results.
        items: What the races are made from, one job each.
        workers: Processes; below 2 the jobs run in this one.
        at_once: Items that a process takes at a time.
    """
    if workers < 2:
        yield from map(job, items)
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        yield from pool.map(job, items, chunksize=at_once)
