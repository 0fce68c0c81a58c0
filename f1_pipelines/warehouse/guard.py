"""When a write is refused, since it would lose rows, and what the user is to do then."""
from __future__ import annotations

from datetime import UTC, datetime

from f1_pipelines.warehouse.duckdb_file import DamagedFile, read_header, verify_size
from f1_pipelines.warehouse.duckdb_log import verify_log
from f1_pipelines.warehouse.files import WarehouseFiles


class WarehouseError(RuntimeError):
    """The warehouse can't be read or written as it is. The message says what to do."""


def refuse_to_lose_rows(files: WarehouseFiles) -> None:
    """Raise where a write would publish less than was published before, or drop commits that lie in the log.

    Raises:
        WarehouseError: What is wrong, and the commands that mend it.
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
    ours = read_header(files.path)
    published = read_header(files.published_path) if files.published_path.exists() else None
    if ours and published and (ours.database != published.database or ours.iteration < published.iteration):
        what = "is older than" if ours.database == published.database else "is another database than"
        raise WarehouseError(
            f"{files.path} {what} its published copy {files.published_path.name}, so a write would replace that by "
            f"less; go on from the copy with `f1 restore {files.published_path}`, or, if {files.path.name} is the "
            f"right one, with `f1 restore {files.path}`")


def lost(files: WarehouseFiles, what: str) -> WarehouseError:
    """The refusal where the file holds nothing and a copy of it does."""
    newest = files.copies()[0]
    published = datetime.fromtimestamp(newest.stat().st_mtime, UTC)
    return WarehouseError(
        f"{files.path} {what}, while {newest.name} holds what was published on {published:%Y-%m-%d %H:%M} UTC; nothing "
        "is written, since that would publish an empty warehouse over this copy. Bring the rows back with `f1 restore`,"
        " or begin an empty warehouse on purpose with `f1 reset`")


def unusable(files: WarehouseFiles, problem: Exception) -> WarehouseError:
    """The refusal where the file is damaged: in what, and the command that goes on from a copy."""
    advice = f"{files.path} can't be used: {first_line(problem)}."
    if files.copies():
        return WarehouseError(f"{advice} Its copy stays as it is. `f1 restore` sets the file aside and goes on from "
                              "the newest intact copy; what was written since is to be materialized again")
    return WarehouseError(f"{advice} Nothing was ever published from it: `f1 reset` sets it aside, then load the "
                          "weekends again")


def first_line(problem: Exception) -> str:
    """The first line of a message: DuckDB adds advice of its own."""
    return str(problem).strip().splitlines()[0]
