"""Reading and writing the warehouse.

A writer opens the file itself, under a lock, and commits everything or nothing; what it committed is then published as
a copy, which is what everybody reads. So nobody's open shell stops a run, and no run stops anybody's query.
"""
from __future__ import annotations

import glob
import os
import shlex
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from f1_pipelines.tables.catalog import SCHEMA_VERSION
from f1_pipelines.warehouse.lock import WarehouseBusy, no_writer, writer_lock
from f1_pipelines.warehouse.migrate import WrongSchema, bring_up_to_date, check_version

# How DuckDB says that another process has the file.
_LOCKED = "Could not set lock"

# DuckDB's file header and its two database headers, which every checkpoint that changes something writes anew.
_HEADERS_BYTES = 3 * 4096


class WarehouseError(RuntimeError):
    """The warehouse can't be read or written as it is. The message says what to do."""


class WarehouseFile:
    """A DuckDB file and the read copy beside it."""

    def __init__(self, path: Path | str, wait_s: float = 300.0):
        """
        Args:
            path: The DuckDB file, anywhere; made on the first write.
            wait_s: How long a writer waits for another one before `WarehouseBusy` [s].
        """
        self.path = Path(path).expanduser().absolute()
        self.wait_s = wait_s

    @property
    def published_path(self) -> Path:
        """The copy that readers open: `f1.duckdb` is published as `f1.published.duckdb`."""
        return self.path.with_name(f"{self.path.stem}.published{self.path.suffix}")

    @contextmanager
    def read(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A read-only connection to the published copy: all that was published when it was opened.

        Raises:
            WrongSchema: The copy was written by another version of this project.
            WarehouseError: There is none, or it can't be opened.
        """
        if not self.published_path.exists():
            raise WarehouseError(f"no warehouse at {self.published_path} yet; fill it with `make demo`, or by "
                                 "materializing race_results in Dagster")
        try:
            connection = duckdb.connect(self.published_path, read_only=True)
        except duckdb.Error as problem:
            raise WarehouseError(f"{self.published_path} can't be opened ({_first_line(problem)}); delete this copy, "
                                 "the next write publishes a new one") from problem
        with connection:
            check_version(connection, self.published_path)
            connection.execute("SET TimeZone = 'UTC'")
            yield connection

    def check(self) -> None:
        """Open and close the file without changing it. It may be absent, and a writer may be at work.

        Raises:
            WrongSchema: It was written by another version of this project, or by somebody else.
            WarehouseError: It can't be opened, after a crash for example. The message has the command to recover.
        """
        if not self.path.exists():
            return
        try:
            with duckdb.connect(self.path, read_only=True) as connection:
                check_version(connection, self.path)
        except duckdb.Error as problem:
            if _LOCKED not in str(problem):
                raise WarehouseError(self._recovery_advice(problem)) from problem

    def unpublished(self) -> bool:
        """Whether the file holds commits that its copy lacks, and no writer is at work that will publish them."""
        with no_writer(self.path) as alone:
            return alone and self._is_ahead()

    @contextmanager
    def write(self, purpose: str) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection in a transaction of its own: committed and published if the body ends well, else undone.

        Args:
            purpose: What is written, for whoever has to wait ("race_results 2024-monaco").

        Raises:
            WarehouseBusy: Another process holds the file for longer than `wait_s`.
            WrongSchema: The file was written by another version of this project, or by somebody else.
            WarehouseError: The file can't be opened at all.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with writer_lock(self.path, purpose, self.wait_s):
            self._remove_torn_copies()
            ahead = self._is_ahead()
            connection = self._open_for_writing()
            try:
                new = not check_version(connection, self.path)
                # What a killed writer had committed is not held back until this body ends, which may take long or fail.
                if ahead and not new:
                    self._publish(connection)
                connection.execute("SET TimeZone = 'UTC'")
                connection.execute("BEGIN")
                try:
                    bring_up_to_date(connection, self.path, new)
                    yield connection
                    connection.execute("COMMIT")
                except BaseException:
                    connection.execute("ROLLBACK")
                    raise
                self._publish(connection)
            finally:
                connection.close()

    def _open_for_writing(self) -> duckdb.DuckDBPyConnection:
        deadline = time.monotonic() + self.wait_s
        while True:
            try:
                return duckdb.connect(self.path)
            except duckdb.IOException as problem:
                if _LOCKED not in str(problem):
                    raise WarehouseError(self._recovery_advice(problem)) from problem
                if time.monotonic() > deadline:
                    raise WarehouseBusy(
                        f"{self.path} is open in another program ({_first_line(problem)}); waited {self.wait_s:g} s. "
                        f"Close it, and query {self.published_path.name} instead: it is never locked."
                    ) from problem
                time.sleep(0.2)
            except duckdb.Error as problem:
                raise WarehouseError(self._recovery_advice(problem)) from problem

    def _recovery_advice(self, problem: Exception) -> str:
        broken = [path for path in (self.path, self.path.with_name(self.path.name + ".wal")) if path.exists()]
        aside = " && ".join(shlex.join(["mv", str(path), f"{path}.broken"]) for path in broken)
        advice = f"{self.path} can't be opened: {_first_line(problem)}."
        if self.published_path.exists():
            return (f"{advice} The last published copy is whole; keep what is broken aside and go on from there: "
                    f"`{aside} && {shlex.join(['cp', str(self.published_path), str(self.path)])}`")
        return f"{advice} Nothing was published from it yet; keep it aside, `{aside}`, and load the weekends again"

    def _is_ahead(self) -> bool:
        """Whether the copy differs from the file. By content: times say nothing after a `cp` or a restored backup."""
        if not self.path.exists():
            return False
        log = self.path.with_name(self.path.name + ".wal")
        return (not self.published_path.exists() or _headers(self.path) != _headers(self.published_path)
                or (log.exists() and log.stat().st_size > 0))

    def _publish(self, connection: duckdb.DuckDBPyConnection) -> None:
        # The copy takes the file alone: without a checkpoint it would lack what is still in the WAL.
        connection.execute("CHECKPOINT")
        fresh = self.published_path.with_name(f".{self.published_path.name}.{os.getpid()}")
        try:
            shutil.copyfile(self.path, fresh)
            with open(fresh, "rb") as handle:
                os.fsync(handle.fileno())
            os.replace(fresh, self.published_path)
        finally:
            fresh.unlink(missing_ok=True)

    def _remove_torn_copies(self) -> None:
        # Under the lock nobody else publishes: what lies there is of writers that were killed.
        for torn in self.path.parent.glob(glob.escape(f".{self.published_path.name}.") + "[0-9]*"):
            torn.unlink(missing_ok=True)


def _headers(path: Path) -> bytes:
    with open(path, "rb") as handle:
        return handle.read(_HEADERS_BYTES)


def _first_line(problem: Exception) -> str:
    return str(problem).strip().splitlines()[0]


__all__ = ["SCHEMA_VERSION", "WarehouseBusy", "WarehouseError", "WarehouseFile", "WrongSchema"]
