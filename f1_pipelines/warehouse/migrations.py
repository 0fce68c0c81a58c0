"""Numbered migrations: how a warehouse of an earlier schema version becomes one of this version, rows included.

Migration `n` takes a file from version n - 1 to n. It runs inside the transaction of the first write that meets the
older file, so it happens whole or not at all. Renames and changed values belong here; added optional columns, comments
and views need no migration.
"""
from __future__ import annotations

import duckdb

# Metrics of `strategy.training_curve`: names before and after.
_METRICS = {
    "dead_moments": "frac_reward_zero_std", "moments": "states", "spread": "reward_range",
    "rewards/_gain/mean": "rewards/_advantage/mean", "rewards/_gain/std": "rewards/_advantage/std",
    "pupil_score": "student_score", "pupil_low": "student_low", "pupil_high": "student_high",
}

MIGRATIONS: dict[int, tuple[str, ...]] = {
    2: (
        "ALTER TABLE strategy.sft_turns RENAME COLUMN driver TO collected_by",
        "UPDATE strategy.sft_turns SET collected_by = 'student' WHERE collected_by = 'pupil'",
        # TRL's own metric of that name, over a whole batch, gives way to ours.
        "DELETE FROM strategy.training_curve WHERE metric = 'frac_reward_zero_std'",
        *(f"UPDATE strategy.training_curve SET metric = '{now}' WHERE metric = '{before}'"
          for before, now in _METRICS.items()),
    ),
}


def migrate(connection: duckdb.DuckDBPyConnection, stored: int, wanted: int) -> None:
    """Take the tables from one schema version to a later one, inside the caller's transaction.

    A table that the file does not hold yet is skipped: it is created in its latest form afterwards.

    Args:
        connection: To the file, in a transaction.
        stored: Schema version of the file.
        wanted: Schema version of this code.
    """
    tables = {name for (name,) in connection.execute(
        "SELECT schema_name || '.' || table_name FROM duckdb_tables()").fetchall()}
    for number in range(stored + 1, wanted + 1):
        for statement in MIGRATIONS[number]:
            if _table_of(statement) in tables:
                connection.execute(statement)
    connection.execute("UPDATE main.schema_version SET version = ?", [wanted])


def _table_of(statement: str) -> str:
    """`schema.table` of an ALTER TABLE, DELETE FROM or UPDATE statement."""
    words = statement.split()
    return words[2] if words[0] in ("ALTER", "DELETE") else words[1]
