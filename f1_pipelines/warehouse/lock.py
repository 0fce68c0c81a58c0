"""A lock for one writer at a time. The wait is bounded, and its error names the process that holds the lock."""
from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path


class WarehouseBusy(TimeoutError):
    """Another process held the warehouse for longer than the allowed wait."""


@contextmanager
def writer_lock(database: Path, purpose: str, wait_s: float) -> Iterator[None]:
    """Hold `<database>.lock` during the body. The kernel releases it whenever the process ends.

    Args:
        database: The DuckDB file. Its folder must exist.
        purpose: What will be written, shown to waiting processes.
        wait_s: How long to wait for another writer [s].

    Raises:
        WarehouseBusy: Another writer held the lock throughout; the message names its process and purpose.
    """
    path = database.with_name(database.name + ".lock")
    deadline = time.monotonic() + wait_s
    with open(path, "a+") as handle:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise WarehouseBusy(
                        f"{database} is being written by {_holder(path)}; waited {wait_s:g} s for it. "
                        "Try again when it is done, or stop it."
                    ) from None
                time.sleep(0.05)
        handle.truncate(0)
        since = datetime.now(UTC).isoformat("T", "seconds")
        json.dump({"pid": os.getpid(), "purpose": purpose, "since": since}, handle)
        handle.flush()
        try:
            yield
        finally:
            handle.truncate(0)


@contextmanager
def no_writer(database: Path) -> Iterator[bool]:
    """Yield whether no process is writing; if so, writers wait until the body ends. Creates no lock file."""
    try:
        handle = open(database.with_name(database.name + ".lock"))  # noqa: SIM115  closed below
    except FileNotFoundError:
        yield True
        return
    with handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


def _holder(lock_path: Path) -> str:
    try:
        holder = json.loads(lock_path.read_text())
        return f"process {holder['pid']} ({holder['purpose']}, since {holder['since']})"
    except (OSError, ValueError, KeyError):
        return "another process"
