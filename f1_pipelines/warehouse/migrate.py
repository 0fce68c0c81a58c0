"""Create, migrate and extend the declared tables in a file; refuse a file that is not a warehouse of this project."""
from __future__ import annotations

from pathlib import Path

import duckdb

from f1_pipelines.tables.catalog import SCHEMA_VERSION, SCHEMAS, TABLES, VIEWS
from f1_pipelines.tables.schema import Table
from f1_pipelines.warehouse.migrations import migrate


class WrongSchema(RuntimeError):
    """This code can't use the file's tables."""


def stored_version(connection: duckdb.DuckDBPyConnection, path: Path) -> int:
    """Read the file's schema version; 0 for an empty file.

    Raises:
        WrongSchema: The file has a later version, or is not a warehouse of this project.
    """
    try:
        ((version,),) = connection.execute("SELECT max(version)::INTEGER FROM main.schema_version").fetchall()
    except (duckdb.CatalogException, duckdb.BinderException, duckdb.ConversionException):
        version = None
    if version is not None and 1 <= version <= SCHEMA_VERSION:
        return int(version)
    if version is not None:
        raise WrongSchema(f"{path} holds schema version {version}, this code writes version {SCHEMA_VERSION}; use the "
                          "release that wrote it, or name another file in F1_WAREHOUSE and fill it")
    stored = connection.execute("SELECT schema_name || '.' || table_name FROM duckdb_tables() WHERE NOT internal "
                                "UNION ALL SELECT schema_name || '.' || view_name FROM duckdb_views() "
                                "WHERE NOT internal ORDER BY 1 LIMIT 1").fetchall()
    if stored:
        raise WrongSchema(f"{path} holds {stored[0][0]} but no schema version, so it is not a warehouse of this "
                          "project and stays unchanged; name another file in F1_WAREHOUSE")
    return 0


def bring_up_to_date(connection: duckdb.DuckDBPyConnection, path: Path, version: int) -> None:
    """Create, migrate or extend tables and views inside the caller's transaction. Up-to-date tables are skipped.

    Args:
        connection: To the file, in a transaction.
        path: The file, for messages.
        version: Its `stored_version`, read before the transaction: reading it in an empty file aborts a transaction.

    Raises:
        WrongSchema: A column has another type, or a table another primary key, than declared.
    """
    if not version:
        connection.execute("CREATE TABLE main.schema_version (version INTEGER NOT NULL)")
        connection.execute("INSERT INTO main.schema_version VALUES (?)", [SCHEMA_VERSION])
    elif version < SCHEMA_VERSION:
        migrate(connection, version, SCHEMA_VERSION)
    for schema in SCHEMAS:
        connection.execute(f'CREATE SCHEMA IF NOT EXISTS "{schema}"')
    stored, keys = _stored_columns(connection), _stored_keys(connection)
    for table in TABLES:
        types = stored.get(table.qualified)
        if types is None:
            connection.execute(table.ddl())
            _comment(connection, table)
            continue
        if keys.get(table.qualified, ()) != table.key:
            raise WrongSchema(f"{path}: {table.qualified} has the key ({', '.join(keys.get(table.qualified, ()))}), "
                              f"declared ({', '.join(table.key)}); fill a new file")
        if types != {column.name: _stored_type(column.type) for column in table.columns}:
            _extend(connection, table, types, path)
    # Replaced on every write, so that changed SQL reaches existing files.
    for view in VIEWS:
        connection.execute(f"CREATE OR REPLACE VIEW {view.qualified} AS {view.sql}")
        connection.execute(f"COMMENT ON VIEW {view.qualified} IS {_quoted(view.comment)}")


def _stored_columns(connection: duckdb.DuckDBPyConnection) -> dict[str, dict[str, str]]:
    stored: dict[str, dict[str, str]] = {}
    for table, column, sql_type in connection.execute(
            "SELECT schema_name || '.' || table_name, column_name, data_type FROM duckdb_columns()").fetchall():
        stored.setdefault(table, {})[column] = sql_type
    return stored


def _stored_keys(connection: duckdb.DuckDBPyConnection) -> dict[str, tuple[str, ...]]:
    return {table: tuple(columns) for table, columns in connection.execute(
        "SELECT schema_name || '.' || table_name, constraint_column_names FROM duckdb_constraints() "
        "WHERE constraint_type = 'PRIMARY KEY'").fetchall()}


def _extend(connection: duckdb.DuckDBPyConnection, table: Table, types: dict[str, str], path: Path) -> None:
    """Add missing optional columns to a stored table. `types` are its stored types by column."""
    for column in table.columns:
        if column.name not in types:
            if column.required:
                raise WrongSchema(f"{path}: {table.qualified} lacks the required column {column.name}, which can't be "
                                  "added to existing rows; fill a new file")
            connection.execute(f"ALTER TABLE {table.qualified} ADD COLUMN {column.ddl()}")
        elif types[column.name] != _stored_type(column.type):
            raise WrongSchema(f"{path}: {table.qualified}.{column.name} is {types[column.name]}, declared "
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
