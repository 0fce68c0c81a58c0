"""The files of a warehouse: the DuckDB file, its log, the published copy and earlier copies."""
from __future__ import annotations

import os
import re
import shutil
from datetime import UTC, datetime
from pathlib import Path

from f1_pipelines.warehouse.duckdb_file import HEADERS_BYTES

GENERATIONS = 3
_STAMP = "%Y%m%dT%H%M%S.%fZ"
_NAME = re.compile(r"\d{8}T\d{6}\.\d{6}Z")


class Generations:
    """The folder of earlier published copies of a warehouse, each named by its publication time."""

    def __init__(self, database: Path, keep: int = GENERATIONS):
        """
        Args:
            database: The DuckDB file; the copies of `f1.duckdb` are in `f1.generations/` beside it.
            keep: Number of latest copies to keep, and of earlier days whose last copy is kept. 0 keeps none.
        """
        self.folder = database.with_name(f"{database.stem}.generations")
        self._keep, self._suffix = keep, database.suffix

    def newest_first(self) -> list[Path]:
        """All earlier copies, newest first."""
        return sorted((path for path in self.folder.glob(f"*{self._suffix}") if _NAME.fullmatch(path.stem)),
                      reverse=True)

    def add(self, published: Path) -> None:
        """Keep a published copy that is about to be replaced: as a hard link, if the file system supports them."""
        if not self._keep:
            return
        self.folder.mkdir(exist_ok=True)
        stamp = datetime.fromtimestamp(published.stat().st_mtime, UTC).strftime(_STAMP)
        copy = self.folder / f"{stamp}{self._suffix}"
        try:
            os.link(published, copy)
        except FileExistsError:
            return  # a writer was killed after it kept this copy and before it published the next one
        except OSError:
            temporary = self.folder / f".{copy.name}.{os.getpid()}"
            shutil.copy2(published, temporary)
            temporary.replace(copy)

    def prune(self) -> None:
        """Delete all but the latest `keep` copies and the last copies of `keep` days before them."""
        for torn in self.folder.glob(f".*{self._suffix}.*"):
            torn.unlink(missing_ok=True)
        copies = self.newest_first()
        last_of_day: dict[str, Path] = {}
        for copy in copies[self._keep:]:
            last_of_day.setdefault(copy.stem[:8], copy)
        retained = {*copies[:self._keep], *list(last_of_day.values())[:self._keep]}
        for copy in set(copies) - retained:
            copy.unlink(missing_ok=True)


class WarehouseFiles:
    """The paths of the files of a warehouse."""

    def __init__(self, path: Path, generations: int = GENERATIONS):
        self.path = path
        self.generations = Generations(path, generations)

    @property
    def published_path(self) -> Path:
        """The copy that readers open: `f1.duckdb` is published as `f1.published.duckdb`."""
        return self.path.with_name(f"{self.path.stem}.published{self.path.suffix}")

    @property
    def log_path(self) -> Path:
        """DuckDB's write-ahead log, which exists only during a write or after a kill."""
        return self.path.with_name(self.path.name + ".wal")

    def copies(self) -> list[Path]:
        """The published copy, if any, and the earlier ones, newest first."""
        return [*([self.published_path] if self.published_path.exists() else []), *self.generations.newest_first()]

    def is_ahead(self) -> bool:
        """Whether the copy differs from the file, by content: file times are wrong after a `cp` or a restore."""
        if not self.path.exists():
            return False
        return (not self.published_path.exists() or _headers(self.path) != _headers(self.published_path)
                or (self.log_path.exists() and self.log_path.stat().st_size > 0))


def _headers(path: Path) -> bytes:
    """The headers of a file; every checkpoint that changes the file changes them."""
    with open(path, "rb") as handle:
        return handle.read(HEADERS_BYTES)
