"""Refuse writes that would lose rows, and tell the user how to recover."""
from __future__ import annotations

from datetime import UTC, datetime

from f1_pipelines.warehouse.duckdb_file import DamagedFile, read_header, verify_size
from f1_pipelines.warehouse.duckdb_log import verify_log
from f1_pipelines.warehouse.files import WarehouseFiles


class WarehouseError(RuntimeError):
    """The warehouse can't be read or written. The message says what to do."""


def refuse_to_lose_rows(files: WarehouseFiles) -> None:
    """Check that a write would not publish fewer rows than before, or drop commits in the log.

    Raises:
        WarehouseError: It would. The message has the reason and the commands to recover.
    """
    copies = files.copies()
    if not files.path.exists() or not files.path.stat().st_size:
        if copies:
            raise lost(files, "is empty" if files.path.exists() else "is gone")
        return
    try:
        verify_size(files.path)
        verify_log(files.path)
    except DamagedFile as problem:
        raise unusable(files, problem) from problem
    current = read_header(files.path)
    published = read_header(files.published_path) if files.published_path.exists() else None
    if current and published and (current.database != published.database or current.iteration < published.iteration):
        relation = "is older than" if current.database == published.database else "is another database than"
        raise WarehouseError(
            f"{files.path} {relation} its published copy {files.published_path.name}, so a write would lose rows; "
            f"restore the copy with `f1 restore {files.published_path}`, or, if {files.path.name} is the right one, "
            f"publish it with `f1 restore {files.path}`")


def lost(files: WarehouseFiles, reason: str) -> WarehouseError:
    """The error for a file without rows that has a copy with rows."""
    newest = files.copies()[0]
    published = datetime.fromtimestamp(newest.stat().st_mtime, UTC)
    return WarehouseError(
        f"{files.path} {reason}, while {newest.name} holds what was published on {published:%Y-%m-%d %H:%M} UTC; "
        "nothing is written, since an empty warehouse would replace this copy. Restore the rows with `f1 restore`, or "
        "start an empty warehouse with `f1 reset`")


def unusable(files: WarehouseFiles, problem: Exception) -> WarehouseError:
    """The error for a damaged file, with the problem and the command to recover."""
    message = f"{files.path} can't be used: {first_line(problem)}."
    if files.copies():
        return WarehouseError(f"{message} Its copy is unchanged. `f1 restore` sets the file aside and restores the "
                              "newest intact copy; materialize again what was written since")
    return WarehouseError(f"{message} It has no published copy: set it aside with `f1 reset`, then load the weekends "
                          "again")


def first_line(problem: Exception) -> str:
    """The first line of a message, without the hints that DuckDB adds."""
    return str(problem).strip().splitlines()[0]
