"""Races spread over processes: the simulator needs one core a race, and races don't know of each other."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TypeVar

Of, Found = TypeVar("Of"), TypeVar("Found")


def map_races(job: Callable[[Of], Found], of: Sequence[Of], workers: int, at_once: int = 4) -> Iterator[Found]:
    """`map(job, of)`, in order, by so many processes, each of which takes `at_once` at a time; below two in this one.
    Job and things are pickled."""
    if workers < 2:
        yield from map(job, of)
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        yield from pool.map(job, of, chunksize=at_once)
