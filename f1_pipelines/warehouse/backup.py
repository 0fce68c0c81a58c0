"""A backup: a folder with the warehouse, the refreshed calendar and all checkpoints, each file with its digest.

The published copy and the ones before it survive a damaged file; a backup survives the disk, once it is copied off it.
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
_WORK_FOLDER = "work"  # of trainings under way


def create_backup(warehouse: WarehouseFile, target: Path, calendar: Path, checkpoints: Path, now: datetime) -> int:
    """Write a backup. The folder appears under its name when it is complete.

    Args:
        warehouse: What is backed up, as of its last commit.
        target: Folder to make.
        calendar: File of the refreshed calendar; left out where there is none.
        checkpoints: Folder of checkpoints; trainings under way are left out.
        now: The present instant.

    Returns:
        Its size [bytes].

    Raises:
        WarehouseError: The target is there already, or the warehouse is damaged.
        WarehouseBusy: A writer is at work.
    """
    if target.exists():
        raise WarehouseError(f"{target} is there already; name a folder that is not")
    target.parent.mkdir(parents=True, exist_ok=True)
    growing = target.with_name(f".{target.name}.{os.getpid()}")
    growing.mkdir()
    try:
        warehouse.snapshot(growing / DATABASE)
        if calendar.exists():
            shutil.copyfile(calendar, growing / CALENDAR)
        if checkpoints.is_dir():
            shutil.copytree(checkpoints, growing / CHECKPOINTS, ignore=_not_backed_up)
        digests = {str(path.relative_to(growing)): _digest(path) for path in _files(growing)}
        manifest = {"created_at": now.isoformat(), "schema_version": SCHEMA_VERSION, "sha256": digests}
        (growing / MANIFEST).write_text(json.dumps(manifest, indent=1))
        for path in _files(growing):
            with path.open("rb") as file:
                os.fsync(file.fileno())
        growing.rename(target)
    finally:
        shutil.rmtree(growing, ignore_errors=True)
    return sum(path.stat().st_size for path in _files(target))


def restore_backup(warehouse: WarehouseFile, source: Path, calendar: Path, checkpoints: Path,
                   now: datetime) -> Restored:
    """Go back to a backup: its warehouse, its calendar, and the checkpoints that are missing or differ here.

    Checkpoints made since stay. Arguments as for `create_backup`; `source` is the folder of the backup.

    Raises:
        WarehouseError: The backup is damaged or none. Nothing has changed.
    """
    verify_backup(source)
    warehouse.path.parent.mkdir(parents=True, exist_ok=True)
    restored = restore(warehouse, now, source / DATABASE)
    places = {CALENDAR: calendar, CHECKPOINTS: checkpoints}
    for path in _files(source):
        name = path.relative_to(source)
        if name.parts[0] not in places:
            continue
        target = places[name.parts[0]].joinpath(*name.parts[1:])
        if target.exists() and _digest(target) == _digest(path):
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists():
            aside = target.with_name(f"{target.name}.aside-{now:%Y%m%dT%H%M%SZ}")
            restored.set_aside.append(target.rename(aside))
        shutil.copyfile(path, target)
    return restored


def verify_backup(source: Path) -> Mapping[str, str]:
    """Check every file of a backup against its digest; the digests by name.

    Raises:
        WarehouseError: It is no backup, or which files are damaged or missing.
    """
    try:
        digests: dict[str, str] = json.loads((source / MANIFEST).read_text())["sha256"]
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise WarehouseError(f"{source} is no backup of `f1 backup`: {MANIFEST} can't be read ({problem})") from problem
    damaged = [name for name, digest in digests.items()
               if not (source / name).is_file() or _digest(source / name) != digest]
    if damaged or DATABASE not in digests:
        raise WarehouseError(f"the backup {source} is damaged: {', '.join(damaged[:5]) or DATABASE} "
                             f"({len(damaged)} of {len(digests)} files); name another one")
    return digests


def _not_backed_up(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if name.startswith(".") or name == _WORK_FOLDER]


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file())


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
