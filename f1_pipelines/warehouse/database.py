"""Reading and writing the warehouse.

A writer opens the DuckDB file under a lock, commits one transaction and publishes the result as a copy. All readers
open the copy, so readers and writers never block each other.

The copy is also a backup. A writer therefore refuses a file that is missing, truncated, older than its copy or has a
damaged log; a new copy is verified block by block before it replaces the last one; earlier copies stay for a while
(`generations`).
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

# Parts of DuckDB's error messages.
_LOCKED = "Could not set lock"  # another process has the file open
_CORRUPT = "Corrupt database file"  # a block differs from its checksum


class WarehouseFile(WarehouseFiles):
    """Read and write the DuckDB file and its copies."""

    def __init__(self, path: Path | str, wait_s: float = 300.0, generations: int = GENERATIONS):
        """
        Args:
            path: The DuckDB file; created by the first write.
            wait_s: How long a writer waits for another one before `WarehouseBusy` [s].
            generations: Number of earlier published copies to keep (`Generations`).
        """
        super().__init__(Path(path).expanduser().absolute(), generations)
        self.wait_s = wait_s

    @contextmanager
    def read(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Open a read-only connection to the published copy as it is now.

        Each connection attaches the copy in its own DuckDB instance: connections opened by path share one instance
        per process, and would see the copy that the first of them opened.

        A copy of an earlier schema version is migrated first, by a separate write.

        Raises:
            WrongSchema: A later version of this project wrote the copy.
            WarehouseError: The copy is missing or can't be opened.
            WarehouseBusy: The copy needs a migration, and another process writes for longer than `wait_s`.
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
                    f"{self.path.name} is intact, which the next write publishes again; if it is damaged, `f1 restore` "
                    "restores an earlier copy") from problem
            if stored_version(connection, self.published_path) >= SCHEMA_VERSION:
                connection.execute("SET TimeZone = 'UTC'")
                yield connection
                return
        with self.write(f"migration to schema version {SCHEMA_VERSION}"):
            pass
        with self.read() as connection:
            yield connection

    def check(self) -> None:
        """Open and close the file without changing it. A file that never existed passes, and so does one being written.

        Raises:
            WrongSchema: Another version of this project, or another program, wrote the file.
            WarehouseError: The file is missing, damaged or can't be opened. The message has the command to recover.
        """
        with no_writer(self.path) as free:
            if not free:
                return  # the writer has checked the file
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
        """Whether the file holds commits that its copy lacks, and no running writer will publish them."""
        with no_writer(self.path) as free:
            return free and self.is_ahead()

    @contextmanager
    def write(self, purpose: str) -> Iterator[duckdb.DuckDBPyConnection]:
        """Open a connection in a transaction. Commit and publish after the body, or roll back if it raises.

        Args:
            purpose: What is being written ("race_results 2024-monaco"), shown to waiting processes.

        Raises:
            WarehouseBusy: Another process holds the file for longer than `wait_s`.
            WrongSchema: Another version of this project, or another program, wrote the file.
            WarehouseError: Before the body: the file can't be opened, or it is missing, damaged or older than its
                published copy, so that a write would lose rows. After the body: the file turned out to be damaged
                when it was published; the published copy stays unchanged.
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
                # Publish the commits of a killed writer now: this body may take long or fail.
                if ahead and version:
                    self._publish(connection)
                connection.execute("SET TimeZone = 'UTC'")
                connection.execute("BEGIN")
                try:
                    bring_up_to_date(connection, self.path, version)
                    yield connection
                    connection.execute("COMMIT")
                except BaseException:
                    with suppress(duckdb.Error):  # a damaged file can't be rolled back; it is closed below
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
                        f"Close it and query {self.published_path.name} instead, which is never locked."
                    ) from problem
                time.sleep(0.2)
            except duckdb.Error as problem:
                raise unusable(self, problem) from problem

    def snapshot(self, target: Path) -> None:
        """Copy the file as of its last commit to `target`, and verify the copy.

        Raises:
            WarehouseError: The file is missing or damaged.
            WarehouseBusy: Another process writes for longer than `wait_s`.
        """
        with writer_lock(self.path, "a backup", self.wait_s):
            refuse_to_lose_rows(self)
            if not self.path.exists():
                raise WarehouseError(f"there is no warehouse at {self.path}; set F1_WAREHOUSE to its path")
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
        """Publish a verified copy of the file. The copy published before becomes an earlier generation.

        The caller holds the writer's lock, and DuckDB's log is empty: only the file is copied.

        Raises:
            WarehouseError: The new copy is damaged, hence the file. The published copy stays unchanged.
        """
        temporary = self.published_path.with_name(f".{self.published_path.name}.{os.getpid()}")
        try:
            copy_durably(self.path, temporary)
            try:
                verify_file(temporary)
            except DamagedFile as problem:
                raise unusable(self, problem) from problem
            if self.published_path.exists():
                self.generations.add(self.published_path)
            os.replace(temporary, self.published_path)
        finally:
            temporary.unlink(missing_ok=True)
        self.generations.prune()

    def _publish(self, connection: duckdb.DuckDBPyConnection) -> None:
        connection.execute("CHECKPOINT")
        self.publish_file()

    def _remove_torn_copies(self) -> None:
        # Under the lock no other process publishes: these files are left by killed writers.
        for torn in self.path.parent.glob(glob.escape(f".{self.published_path.name}.") + "[0-9]*"):
            torn.unlink(missing_ok=True)


def attach(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    """Attach a database file read-only and make it the connection's default. The connection's instance is empty."""
    quoted = str(path).replace("'", "''")
    connection.execute(f"ATTACH '{quoted}' AS f1 (READ_ONLY)")
    connection.execute("USE f1")


def copy_durably(source: Path, target: Path) -> None:
    """Copy a file and flush it to disk."""
    shutil.copyfile(source, target)
    with open(target, "rb") as handle:
        os.fsync(handle.fileno())


__all__ = ["SCHEMA_VERSION", "WarehouseBusy", "WarehouseError", "WarehouseFile", "WrongSchema"]
