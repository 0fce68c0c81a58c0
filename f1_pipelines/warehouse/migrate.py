"""Make a file hold the declared tables: create what lacks, add new columns, refuse what can't be followed."""
from __future__ import annotations

from pathlib import Path

import duckdb

from f1_pipelines.tables.catalog import SCHEMA_VERSION, SCHEMAS, TABLES, VIEWS
from f1_pipelines.tables.schema import Table


class WrongSchema(RuntimeError):
    """The file's tables are of another version than this code."""


def bring_up_to_date(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    """Create or extend tables and views inside the caller's transaction. A file that is up to date costs two look-ups.

    Raises:
        WrongSchema: The file says another version, or a column has another type or key than declared.
    """
    _check_version(connection, path)
    for schema in SCHEMAS:
        connection.execute(f'CREATE SCHEMA IF NOT EXISTS "{schema}"')
    stored = _stored_columns(connection)
    changed = False
    for table in TABLES:
        have = stored.get(table.qualified)
        if have is None:
            connection.execute(table.ddl())
            _comment(connection, table)
            changed = True
        elif set(have) != set(table.column_names) or any(have[c.name] != _stored_type(c.type) for c in table.columns):
            _extend(connection, table, have, path)
            changed = True
    stored_views = dict(connection.execute(
        "SELECT schema_name || '.' || view_name, comment FROM duckdb_views() WHERE NOT internal").fetchall())
    for view in VIEWS:
        if changed or view.qualified not in stored_views:
            connection.execute(f"CREATE OR REPLACE VIEW {view.qualified} AS {view.sql}")
            connection.execute(f"COMMENT ON VIEW {view.qualified} IS {_quoted(view.comment)}")


def _check_version(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    connection.execute("CREATE TABLE IF NOT EXISTS main.schema_version (version INTEGER NOT NULL)")
    ((version,),) = connection.execute("SELECT max(version) FROM main.schema_version").fetchall()
    if version is None:
        connection.execute("INSERT INTO main.schema_version VALUES (?)", [SCHEMA_VERSION])
    elif version != SCHEMA_VERSION:
        raise WrongSchema(f"{path} holds schema version {version}, this code writes version {SCHEMA_VERSION}; use the "
                          "release that made it, or name another file in F1_WAREHOUSE and fill that")


def _stored_columns(connection: duckdb.DuckDBPyConnection) -> dict[str, dict[str, str]]:
    stored: dict[str, dict[str, str]] = {}
    for table, column, kind in connection.execute(
            "SELECT schema_name || '.' || table_name, column_name, data_type FROM duckdb_columns()").fetchall():
        stored.setdefault(table, {})[column] = kind
    return stored


def _extend(connection: duckdb.DuckDBPyConnection, table: Table, have: dict[str, str], path: Path) -> None:
    for column in table.columns:
        if column.name not in have:
            if column.required:
                raise WrongSchema(f"{path}: {table.qualified} lacks the required column {column.name}, which can't be "
                                  "added to rows that exist; fill a new file")
            connection.execute(f"ALTER TABLE {table.qualified} ADD COLUMN {column.ddl()}")
        elif have[column.name] != _stored_type(column.type):
            raise WrongSchema(f"{path}: {table.qualified}.{column.name} is {have[column.name]}, declared "
                              f"{column.type}; fill a new file")
    _comment(connection, table)


def _stored_type(declared: str) -> str:
    return {"TIMESTAMPTZ": "TIMESTAMP WITH TIME ZONE"}.get(declared, declared)


def _comment(connection: duckdb.DuckDBPyConnection, table: Table) -> None:
    connection.execute(f"COMMENT ON TABLE {table.qualified} IS {_quoted(table.comment)}")
    for column in table.columns:
        connection.execute(f'COMMENT ON COLUMN {table.qualified}."{column.name}" IS {_quoted(column.comment)}')


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
