"""Checks of `f1 doctor --deep`: every block and row of the warehouse and its copies, and every checkpoint."""
from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from f1_pipelines.settings import Settings
from f1_pipelines.warehouse.database import WarehouseFile, WrongSchema
from f1_pipelines.warehouse.duckdb_file import DamagedFile
from f1_pipelines.warehouse.lock import no_writer
from f1_pipelines.warehouse.verify import verify_database


def warehouse_file(settings: Settings) -> str:
    """Verify the warehouse file.

    Raises:
        RuntimeError: The file is damaged or missing; the message says what to do.
    """
    warehouse = WarehouseFile(settings.f1_warehouse)
    with no_writer(warehouse.path) as alone:
        if not alone:
            return "not read: a writer holds it; its copy is verified when published"
        if not warehouse.path.exists():
            raise RuntimeError(f"{warehouse.path} does not exist")
        try:
            return f"{verify_database(warehouse.path):,} rows read, every block intact"
        except DamagedFile as problem:
            raise RuntimeError(f"{problem}; `f1 restore` restores the newest intact copy") from problem


def published_copy(settings: Settings) -> str:
    """Verify the published copy, which all readers use. Raises like `warehouse_file`."""
    copy = WarehouseFile(settings.f1_warehouse).published_path
    if not copy.exists():
        raise RuntimeError(f"{copy} does not exist; the next write publishes one")
    try:
        return f"{verify_database(copy):,} rows read, every block intact"
    except DamagedFile as problem:
        raise RuntimeError(f"{problem}; delete this copy: if the warehouse file is intact, the next write publishes a "
                           "new one") from problem


def earlier_copies(settings: Settings) -> str:
    """Verify the earlier published copies. Raises like `warehouse_file`."""
    copies, damaged = WarehouseFile(settings.f1_warehouse).generations.newest_first(), []
    for copy in copies:
        try:
            verify_database(copy)
        except (DamagedFile, WrongSchema) as problem:
            damaged.append(f"{problem}; delete {copy}")
    if damaged:
        raise RuntimeError("; ".join(damaged))
    return f"{len(copies)}, all intact" + (f", the oldest {copies[-1].name}" if copies else "")


def checkpoints(settings: Settings) -> str:
    """Verify all checkpoints, and that the promoted ones exist. Raises like `warehouse_file`."""
    rankers = settings.checkpoints_path
    engineers = rankers / "engineers"
    folders = [(_damage_of_ranker, meta.parent) for meta in sorted(rankers.glob("[!.]*/meta.json"))]
    folders += [(_damage_of_engineer, meta.parent) for meta in sorted(engineers.glob("[!.]*/meta.json"))]
    problems = [problem for damage_of, path in folders if (problem := damage_of(path))]
    with WarehouseFile(settings.f1_warehouse).read() as connection:
        promoted = [rankers / name for (name,) in connection.execute(
            "SELECT checkpoint FROM ranking.checkpoints WHERE promoted").fetchall()]
        promoted += [engineers / name for (name,) in connection.execute(
            "SELECT path FROM strategy.engineers WHERE promoted").fetchall()]
    problems += [f"{path} is promoted but missing; restore it with `f1 restore BACKUP`, or train again"
                 for path in promoted if not (path / "meta.json").is_file()]
    if problems:
        raise RuntimeError("; ".join(problems))
    return f"{len(folders)} in {rankers}, all intact"


def _damage_of_ranker(path: Path) -> str:
    from f1_pipelines.checkpoints.store import CheckpointError
    from f1_pipelines.models.checkpoints import load_checkpoint

    try:
        # A checkpoint of an older release is not damaged: load it with its own feature version.
        load_checkpoint(path, json.loads((path / "meta.json").read_text())["feature_version"])
    except CheckpointError as problem:
        return str(problem)
    except (OSError, ValueError, KeyError, TypeError) as problem:
        return f"{path}: meta.json can't be read ({problem}); delete the folder and train again"
    return ""


def _damage_of_engineer(path: Path) -> str:
    from f1_pipelines.engineer.inference.checkpoints import damage_of

    problem = damage_of(path)
    return f"{path}: {problem}; delete the folder and train again" if problem else ""


CHECKS: dict[str, Callable[[Settings], str]] = {
    "warehouse file": warehouse_file, "published copy": published_copy, "earlier copies": earlier_copies,
    "checkpoints": checkpoints}
