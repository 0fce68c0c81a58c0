"""Reading and writing the warehouse.

A writer opens the file itself, under a lock, and commits everything or nothing; what it committed is then published as
a copy, which is what everybody reads. So nobody's open shell stops a run, and no run stops anybody's query.

The copy is also the backup. So a writer refuses to begin on a file that is gone, cut off, older than its copy or has a
damaged log; a fresh copy is verified block by block before it replaces the last one; and the copies before stay for a
while (`generations`).
"""
from __future__ import annotations

import glob
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import duckdb

from f1_pipelines.tables.catalog import SCHEMA_VERSION
from f1_pipelines.warehouse.duckdb_file import DamagedFile, verify_file
from f1_pipelines.warehouse.files import GENERATIONS, WarehouseFiles
from f1_pipelines.warehouse.guard import WarehouseError, first_line, lost, refuse_to_lose_rows, unusable
from f1_pipelines.warehouse.lock import WarehouseBusy, no_writer, writer_lock
from f1_pipelines.warehouse.migrate import WrongSchema, bring_up_to_date, stored_version

# How DuckDB says that another process has the file.
_LOCKED = "Could not set lock"
# How it says that a block differs from its checksum.
_CORRUPT = "Corrupt database file"


class WarehouseFile(WarehouseFiles):
    """Reads and writes the DuckDB file and its copies."""

    def __init__(self, path: Path | str, wait_s: float = 300.0, generations: int = GENERATIONS):
        """
        Args:
            path: The DuckDB file, anywhere; made on the first write.
            wait_s: How long a writer waits for another one before `WarehouseBusy` [s].
            generations: How many earlier published copies stay (`Generations`).
        """
        super().__init__(Path(path).expanduser().absolute(), generations)
        self.wait_s = wait_s

    @contextmanager
    def read(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A read-only connection to the published copy: all that was published when it was opened.

        Each connection attaches the copy in a DuckDB instance of its own. One opened by its path would share the
        instance of all others of this process, and see what was published when the first of them was opened.

        A copy of an earlier schema version is migrated first, by a write of its own.

        Raises:
            WrongSchema: The copy was written by a later version of this project.
            WarehouseError: There is none, or it can't be opened.
            WarehouseBusy: The copy has to be migrated, and a writer is at work for longer than `wait_s`.
        """
        if not self.published_path.exists():
            raise WarehouseError(f"no warehouse at {self.published_path} yet; fill it with `make demo`, or by "
                                 "materializing race_results in Dagster")
        with duckdb.connect() as connection:
            try:
                attach(connection, self.published_path)
            except duckdb.Error as problem:
                raise WarehouseError(
                    f"{self.published_path} can't be opened ({first_line(problem)}); `f1 doctor --deep` says whether "
                    f"{self.path.name} is intact, which the next write publishes again; `f1 restore` goes on from an "
                    "earlier copy if it is not") from problem
            older = stored_version(connection, self.published_path) < SCHEMA_VERSION
            if not older:
                connection.execute("SET TimeZone = 'UTC'")
                yield connection
                return
        with self.write(f"migration to schema version {SCHEMA_VERSION}"):
            pass
        with self.read() as connection:
            yield connection

    def check(self) -> None:
        """Open and close the file without changing it. It may be absent, and a writer may be at work.

        Raises:
            WrongSchema: It was written by another version of this project, or by somebody else.
            WarehouseError: It is gone, damaged or can't be opened. The message has the command to recover.
        """
        with no_writer(self.path) as alone:
            if not alone:
                return  # it has checked the file itself
            refuse_to_lose_rows(self)
            if not self.path.exists():
                return
            try:
                with duckdb.connect(self.path, read_only=True) as connection:
                    stored_version(connection, self.path)
            except duckdb.Error as problem:
                if _LOCKED not in str(problem):
                    raise unusable(self, problem) from problem

    def unpublished(self) -> bool:
        """Whether the file holds commits that its copy lacks, and no writer is at work that will publish them."""
        with no_writer(self.path) as alone:
            return alone and self.is_ahead()

    @contextmanager
    def write(self, purpose: str) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection in a transaction of its own: committed and published if the body ends well, else undone.

        Args:
            purpose: What is written, for whoever has to wait ("race_results 2024-monaco").

        Raises:
            WarehouseBusy: Another process holds the file for longer than `wait_s`.
            WrongSchema: The file was written by another version of this project, or by somebody else.
            WarehouseError: The file is gone, damaged or older than its published copy, so that a write would lose
                rows; or it can't be opened. Raised before the body. After it, where the file turns out to be damaged
                when it is published: then the copy stays as it was.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with writer_lock(self.path, purpose, self.wait_s):
            self._remove_torn_copies()
            refuse_to_lose_rows(self)
            ahead = self.is_ahead()
            connection = self._open_for_writing()
            try:
                version = stored_version(connection, self.path)
                if not version and self.copies():
                    raise lost(self, "holds no tables")
                # What a killed writer had committed is not held back until this body ends, which may take long or fail.
                if ahead and version:
                    self._publish(connection)
                connection.execute("SET TimeZone = 'UTC'")
                connection.execute("BEGIN")
                try:
                    bring_up_to_date(connection, self.path, version)
                    yield connection
                    connection.execute("COMMIT")
                except BaseException:
                    with suppress(duckdb.Error):  # a file that is damaged can't even be rolled back; it is closed below
                        connection.execute("ROLLBACK")
                    raise
                self._publish(connection)
            except duckdb.Error as problem:
                if _CORRUPT not in str(problem):
                    raise
                raise unusable(self, problem) from problem
            finally:
                connection.close()

    def _open_for_writing(self) -> duckdb.DuckDBPyConnection:
        deadline = time.monotonic() + self.wait_s
        while True:
            try:
                return duckdb.connect(self.path)
            except duckdb.IOException as problem:
                if _LOCKED not in str(problem):
                    raise unusable(self, problem) from problem
                if time.monotonic() > deadline:
                    raise WarehouseBusy(
                        f"{self.path} is open in another program ({first_line(problem)}); waited {self.wait_s:g} s. "
                        f"Close it, and query {self.published_path.name} instead: it is never locked."
                    ) from problem
                time.sleep(0.2)
            except duckdb.Error as problem:
                raise unusable(self, problem) from problem

    def snapshot(self, target: Path) -> None:
        """Copy the file as it was committed last, and verify the copy.

        Args:
            target: File to write.

        Raises:
            WarehouseError: There is no file, or it is damaged.
            WarehouseBusy: A writer is at work for longer than `wait_s`.
        """
        with writer_lock(self.path, "a backup", self.wait_s):
            refuse_to_lose_rows(self)
            if not self.path.exists():
                raise WarehouseError(f"there is no warehouse at {self.path}; set F1_WAREHOUSE to the one that is meant")
            if self.is_ahead():
                connection = self._open_for_writing()
                try:
                    self._publish(connection)
                finally:
                    connection.close()
            copy_durably(self.path, target)
            try:
                verify_file(target)
            except DamagedFile as problem:
                target.unlink()
                raise unusable(self, problem) from problem

    def publish_file(self) -> None:
        """Put a verified copy of the file in the place of the published one, which becomes an earlier one.

        Only under the writer's lock, and when the log is empty: the copy takes the file alone.

        Raises:
            WarehouseError: The copy is damaged, so the file is. The published copy stays as it was.
        """
        fresh = self.published_path.with_name(f".{self.published_path.name}.{os.getpid()}")
        try:
            copy_durably(self.path, fresh)
            try:
                verify_file(fresh)
            except DamagedFile as problem:
                raise unusable(self, problem) from problem
            if self.published_path.exists():
                self.generations.add(self.published_path)
            os.replace(fresh, self.published_path)
        finally:
            fresh.unlink(missing_ok=True)
        self.generations.prune()

    def _publish(self, connection: duckdb.DuckDBPyConnection) -> None:
        connection.execute("CHECKPOINT")
        self.publish_file()

    def _remove_torn_copies(self) -> None:
        # Under the lock nobody else publishes: what lies there is of writers that were killed.
        for torn in self.path.parent.glob(glob.escape(f".{self.published_path.name}.") + "[0-9]*"):
            torn.unlink(missing_ok=True)


def attach(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    """Make a database file, read-only, the default one of a connection to an empty instance."""
    quoted = str(path).replace("'", "''")
    connection.execute(f"ATTACH '{quoted}' AS f1 (READ_ONLY)")
    connection.execute("USE f1")


def copy_durably(source: Path, target: Path) -> None:
    """Copy a file so that it is on the disk when this returns."""
    shutil.copyfile(source, target)
    with open(target, "rb") as handle:
        os.fsync(handle.fileno())


__all__ = ["SCHEMA_VERSION", "WarehouseBusy", "WarehouseError", "WarehouseFile", "WrongSchema"]
