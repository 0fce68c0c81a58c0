"""Restore a copy of the warehouse, or reset it. Replaced files are set aside, never deleted."""
from __future__ import annotations

import os
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from f1_pipelines.warehouse.database import WarehouseError, WarehouseFile, copy_durably
from f1_pipelines.warehouse.duckdb_file import DamagedFile
from f1_pipelines.warehouse.guard import refuse_to_lose_rows
from f1_pipelines.warehouse.lock import writer_lock
from f1_pipelines.warehouse.migrate import WrongSchema
from f1_pipelines.warehouse.verify import verify_database


@dataclass
class Restored:
    """What a restore did.

    Attributes:
        source: The restored copy.
        rows: Number of rows in it.
        published_at: When the copy was published (UTC).
        skipped: One sentence per newer copy that is damaged.
        set_aside: New paths of the replaced files.
    """

    source: Path
    rows: int = 0
    published_at: datetime | None = None
    skipped: list[str] = field(default_factory=list)
    set_aside: list[Path] = field(default_factory=list)


def restore(warehouse: WarehouseFile, now: datetime, source: Path | None = None) -> Restored:
    """Replace the file by a verified copy, and publish it.

    Args:
        warehouse: The warehouse to restore.
        now: The current time, for the names of files set aside.
        source: A database file; None takes the newest intact published copy.

    Raises:
        WarehouseError: No copy is intact, or the file is intact and `source` is None. Nothing has changed.
        WarehouseBusy: Another process is writing.
    """
    if not warehouse.path.parent.is_dir():
        raise WarehouseError(f"{warehouse.path.parent} is not a folder, so there is nothing to restore; set "
                             "F1_WAREHOUSE to the path of the warehouse")
    with writer_lock(warehouse.path, "f1 restore", warehouse.wait_s):
        if source is None:
            _refuse_if_intact(warehouse)
        restored = _newest_intact(warehouse.copies() if source is None else [source])
        restored.published_at = datetime.fromtimestamp(restored.source.stat().st_mtime, now.tzinfo)
        if restored.source != warehouse.path:
            _replace(warehouse, restored, now)
        _publish(warehouse, restored, now)
    return restored


def reset(warehouse: WarehouseFile, now: datetime) -> Path:
    """Set the warehouse and all its copies aside, so that the next write starts an empty one.

    Returns:
        The folder that holds the files now.

    Raises:
        WarehouseError: There is nothing to set aside.
        WarehouseBusy: Another process is writing.
    """
    files = [warehouse.path, warehouse.log_path, warehouse.published_path, warehouse.generations.folder]
    if not any(path.exists() for path in files):
        raise WarehouseError(f"there is no warehouse at {warehouse.path}; the next write creates one")
    with writer_lock(warehouse.path, "f1 reset", warehouse.wait_s):
        aside = warehouse.path.with_name(f"{warehouse.path.stem}.aside-{_stamp(now)}")
        aside.mkdir()
        # Move the file first: after a kill in between, its copies still prevent a write to an empty warehouse.
        for path in files:
            if path.exists():
                path.rename(aside / path.name)
    return aside


def _refuse_if_intact(warehouse: WarehouseFile) -> None:
    try:
        refuse_to_lose_rows(warehouse)
        if not warehouse.path.exists():
            raise WarehouseError(f"there is no warehouse at {warehouse.path} and no copy of one; name a backup: "
                                 "`f1 restore FOLDER`")
        verify_database(warehouse.path)
    except (WarehouseError, DamagedFile, WrongSchema):
        if warehouse.copies():
            return
        raise
    listed = ", ".join(str(copy) for copy in warehouse.copies()) or "none"
    raise WarehouseError(f"{warehouse.path} is intact, so nothing was restored; to restore an earlier state name "
                         f"the copy, `f1 restore FILE`. Copies: {listed}")


def _newest_intact(copies: list[Path]) -> Restored:
    skipped: list[str] = []
    for copy in copies:
        try:
            return Restored(copy, rows=verify_database(copy), skipped=skipped)
        except (DamagedFile, WrongSchema, OSError) as problem:
            skipped.append(str(problem))
    raise WarehouseError(f"no copy is intact ({'; '.join(skipped)}); name a backup: `f1 restore FOLDER`, or start an "
                         "empty warehouse with `f1 reset`")


def _replace(warehouse: WarehouseFile, restored: Restored, now: datetime) -> None:
    temporary = warehouse.path.with_name(f".{warehouse.path.name}.{os.getpid()}")
    try:
        copy_durably(restored.source, temporary)
        for path in (warehouse.log_path, warehouse.path):
            if path.exists():
                restored.set_aside.append(_set_aside(path, now))
        temporary.replace(warehouse.path)
    finally:
        temporary.unlink(missing_ok=True)


def _publish(warehouse: WarehouseFile, restored: Restored, now: datetime) -> None:
    """Publish the restored file. A damaged published copy is set aside, not kept as an earlier generation."""
    if restored.source == warehouse.published_path:
        return
    if warehouse.published_path.exists():
        try:
            verify_database(warehouse.published_path)
        except (DamagedFile, WrongSchema):
            restored.set_aside.append(_set_aside(warehouse.published_path, now))
    warehouse.publish_file()


def _set_aside(path: Path, now: datetime) -> Path:
    return path.rename(path.with_name(f"{path.name}.aside-{_stamp(now)}"))


def _stamp(now: datetime) -> str:
    return f"{now:%Y%m%dT%H%M%SZ}"
