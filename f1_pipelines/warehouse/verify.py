"""Verify a database file by reading all of it."""
from __future__ import annotations

from pathlib import Path

import duckdb

from f1_pipelines.tables.catalog import BY_NAME
from f1_pipelines.warehouse.database import attach
from f1_pipelines.warehouse.duckdb_file import DamagedFile, verify_file
from f1_pipelines.warehouse.guard import first_line
from f1_pipelines.warehouse.migrate import stored_version


def verify_database(path: Path) -> int:
    """Check every block of a database file, then read every row.

    Args:
        path: A file that no process is writing.

    Returns:
        Number of rows in all tables.

    Raises:
        DamagedFile: A block is damaged, a table can't be read, or a primary key occurs twice.
        WrongSchema: Another version of this project, or another program, wrote the file.
    """
    verify_file(path)
    try:
        with duckdb.connect() as connection:
            attach(connection, path)
            if not stored_version(connection, path):
                raise DamagedFile(f"{path.name} holds no tables")
            return sum(_read_table(connection, name, path) for name in BY_NAME)
    except duckdb.Error as problem:
        raise DamagedFile(f"{path.name} can't be read: {first_line(problem)}") from problem


def _read_table(connection: duckdb.DuckDBPyConnection, name: str, path: Path) -> int:
    schema, table = name.split(".")
    if not connection.execute("SELECT 1 FROM duckdb_tables() WHERE schema_name = ? AND table_name = ?",
                              [schema, table]).fetchall():
        return 0  # an older file lacks the table until the next write
    key = ", ".join(f'"{column}"' for column in BY_NAME[name].key)
    # The hash makes DuckDB read every column of every row.
    ((rows, keys, _),) = connection.execute(
        f"SELECT count(*), count(DISTINCT ({key})), bit_xor(hash(stored)) FROM {name} AS stored").fetchall()
    if rows != keys:
        raise DamagedFile(f"{path.name}: {name} holds {rows - keys} rows with a duplicate key ({key})")
    return rows
