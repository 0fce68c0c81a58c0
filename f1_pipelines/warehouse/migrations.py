"""Numbered migrations from earlier schema versions of the warehouse; they keep all rows.

Migration `n` takes a file from version n - 1 to n, inside the transaction of the first write to the older file.
Renamed columns and changed values need a migration; new optional columns, comments and views don't.
"""
from __future__ import annotations

import duckdb

# Renamed metrics of `strategy.training_curve`: new name by old name.
_METRICS = {
    "dead_moments": "frac_reward_zero_std", "moments": "states", "spread": "reward_range",
    "rewards/_gain/mean": "rewards/_advantage/mean", "rewards/_gain/std": "rewards/_advantage/std",
    "pupil_score": "student_score", "pupil_low": "student_low", "pupil_high": "student_high",
}

MIGRATIONS: dict[int, tuple[str, ...]] = {
    2: (
        "ALTER TABLE strategy.sft_turns RENAME COLUMN driver TO collected_by",
        "UPDATE strategy.sft_turns SET collected_by = 'student' WHERE collected_by = 'pupil'",
        # Drop TRL's metric of this name, which is over a whole batch; ours takes the name.
        "DELETE FROM strategy.training_curve WHERE metric = 'frac_reward_zero_std'",
        *(f"UPDATE strategy.training_curve SET metric = '{new}' WHERE metric = '{old}'"
          for old, new in _METRICS.items()),
    ),
}


def migrate(connection: duckdb.DuckDBPyConnection, stored: int, target: int) -> None:
    """Migrate the tables from the stored schema version to the target version, inside the caller's transaction.

    Missing tables are skipped: they are created in their latest form afterwards.
    """
    tables = {name for (name,) in connection.execute(
        "SELECT schema_name || '.' || table_name FROM duckdb_tables()").fetchall()}
    for number in range(stored + 1, target + 1):
        for statement in MIGRATIONS[number]:
            if _table_of(statement) in tables:
                connection.execute(statement)
    connection.execute("UPDATE main.schema_version SET version = ?", [target])


def _table_of(statement: str) -> str:
    """`schema.table` of an ALTER TABLE, DELETE FROM or UPDATE statement."""
    words = statement.split()
    return words[2] if words[0] in ("ALTER", "DELETE") else words[1]
