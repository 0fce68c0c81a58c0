"""A backup: a folder with the warehouse, the refreshed calendar and all checkpoints, and a SHA-256 digest of each file.

Published copies protect against a damaged file; a backup copied to another disk protects against losing the disk.
"""
from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path

from f1_pipelines.tables.catalog import SCHEMA_VERSION
from f1_pipelines.warehouse.database import WarehouseError, WarehouseFile
from f1_pipelines.warehouse.restore import Restored, restore

MANIFEST, DATABASE, CALENDAR, CHECKPOINTS = "manifest.json", "f1.duckdb", "f1.calendar.csv", "checkpoints"
_WORK_FOLDER = "work"  # of running trainings


def create_backup(warehouse: WarehouseFile, target: Path, calendar: Path, checkpoints: Path, now: datetime) -> int:
    """Write a backup. The target folder appears only when the backup is complete.

    Args:
        warehouse: The warehouse to back up, as of its last commit.
        target: Folder to create.
        calendar: File of the refreshed calendar; skipped if missing.
        checkpoints: Folder of checkpoints; running trainings are skipped.
        now: The current time.

    Returns:
        Size of the backup [bytes].

    Raises:
        WarehouseError: The target exists, or the warehouse is damaged.
        WarehouseBusy: Another process is writing.
    """
    if target.exists():
        raise WarehouseError(f"{target} is there already; name a new folder")
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    temporary.mkdir()
    try:
        warehouse.snapshot(temporary / DATABASE)
        if calendar.exists():
            shutil.copyfile(calendar, temporary / CALENDAR)
        if checkpoints.is_dir():
            shutil.copytree(checkpoints, temporary / CHECKPOINTS, ignore=_not_backed_up)
        digests = {str(path.relative_to(temporary)): _digest(path) for path in _files(temporary)}
        manifest = {"created_at": now.isoformat(), "schema_version": SCHEMA_VERSION, "sha256": digests}
        (temporary / MANIFEST).write_text(json.dumps(manifest, indent=1))
        for path in _files(temporary):
            with path.open("rb") as file:
                os.fsync(file.fileno())
        temporary.rename(target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return sum(path.stat().st_size for path in _files(target))


def restore_backup(warehouse: WarehouseFile, source: Path, calendar: Path, checkpoints: Path,
                   now: datetime) -> Restored:
    """Restore a backup: the warehouse, the calendar, and checkpoints that are missing or differ.

    Newer checkpoints stay. Arguments as for `create_backup`; `source` is the folder of the backup.

    Raises:
        WarehouseError: The folder is damaged or not a backup. Nothing has changed.
    """
    verify_backup(source)
    warehouse.path.parent.mkdir(parents=True, exist_ok=True)
    restored = restore(warehouse, now, source / DATABASE)
    targets = {CALENDAR: calendar, CHECKPOINTS: checkpoints}
    for path in _files(source):
        name = path.relative_to(source)
        if name.parts[0] not in targets:
            continue
        target = targets[name.parts[0]].joinpath(*name.parts[1:])
        if target.exists() and _digest(target) == _digest(path):
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists():
            aside = target.with_name(f"{target.name}.aside-{now:%Y%m%dT%H%M%SZ}")
            restored.set_aside.append(target.rename(aside))
        shutil.copyfile(path, target)
    return restored


def verify_backup(source: Path) -> Mapping[str, str]:
    """Check every file of a backup against its digest. Return the digests by file name.

    Raises:
        WarehouseError: The folder is not a backup, or files are damaged or missing; the message names them.
    """
    try:
        digests: dict[str, str] = json.loads((source / MANIFEST).read_text())["sha256"]
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise WarehouseError(f"{source} is not a backup of `f1 backup`: {MANIFEST} can't be read ({problem})"
                             ) from problem
    damaged = [name for name, digest in digests.items()
               if not (source / name).is_file() or _digest(source / name) != digest]
    if damaged or DATABASE not in digests:
        raise WarehouseError(f"the backup {source} is damaged: {', '.join(damaged[:5]) or DATABASE} "
                             f"({len(damaged)} of {len(digests)} files); restore another one")
    return digests


def _not_backed_up(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if name.startswith(".") or name == _WORK_FOLDER]


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file())


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
