"""Seconds and peak memory of one piece of work in a process of its own, so that pieces don't share caches."""
from __future__ import annotations

import multiprocessing
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Measured:
    """Wall and CPU seconds of the work alone, and the peak memory of its process [MiB], imports included."""

    wall_s: float
    cpu_s: float
    peak_mib: float
    told: Any


def measure(work: Callable[..., Any], *arguments: Any, prepare: Callable[..., Any] | None = None) -> Measured:
    """Run `work(*arguments)` in a fresh process. With `prepare`, run `work(prepare(*arguments))` and time `work`."""
    pool = multiprocessing.get_context("spawn").Pool(1)
    try:
        return pool.apply(_timed, (work, prepare, arguments))
    finally:
        # Not terminate, which `with` would do: Dagster turns the signal into a KeyboardInterrupt with a traceback.
        pool.close()
        pool.join()


def _timed(work: Callable[..., Any], prepare: Callable[..., Any] | None, arguments: tuple[Any, ...]) -> Measured:
    given = (prepare(*arguments),) if prepare else arguments
    wall, cpu = time.perf_counter(), time.process_time()
    told = work(*given)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return Measured(wall, cpu, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, told)


def print_table(title: str, rows: list[tuple[str, Measured, str]]) -> None:
    """One line a measurement: what, seconds, CPU seconds, memory, and what it came to."""
    print(f"\n{title}\n{'':44} {'wall s':>8} {'cpu s':>8} {'peak MiB':>9}")
    for what, measured, aim in rows:
        print(f"{what:44} {measured.wall_s:8.2f} {measured.cpu_s:8.2f} {measured.peak_mib:9.0f}  {aim}")
