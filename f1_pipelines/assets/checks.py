"""Asset checks as SQL queries for invalid rows.

A check covers the weekends of its run: their invalid rows block downstream assets, those of other weekends only warn
and are named. So a bad race stops its own run and no other.
"""
from dataclasses import dataclass
from typing import Any

import dagster as dg
import duckdb
import pandas as pd

from f1_pipelines.assets.metadata import listing
from f1_pipelines.assets.partitions import check_context, weekends_of_check
from f1_pipelines.resources.warehouse import Warehouse
from f1_pipelines.tables.catalog import BY_NAME
from f1_pipelines.tables.schema import Table

_ROWS_SHOWN = 10


@dataclass(frozen=True)
class Verdict:
    """What invalid rows mean for a run.

    Attributes:
        blocks: Nothing downstream may run.
        own: Weekends of the run with invalid rows.
        others: Other weekends with invalid rows.
        message: Both as text; empty without invalid rows.
    """

    blocks: bool
    own: list[str]
    others: list[str]
    message: str


def verdict(rows: pd.DataFrame, weekends: list[str] | None, stored: set[str], stops_range: bool) -> Verdict:
    """Decide by their weekends whether invalid rows block a run.

    A row without a weekend concerns the whole table and blocks every run. Downstream assets leave out the invalid
    weekends of a range, so these block only if no valid one is left.

    Args:
        rows: Invalid rows, with a column `weekend` if the table has one.
        weekends: Weekends of the run; None checks the whole table.
        stored: Weekends with rows in the checked table.
        stops_range: Downstream assets can't leave out an invalid weekend: one blocks the whole range.
    """
    if rows.empty:
        return Verdict(False, [], [], "")
    if weekends is None or "weekend" not in rows.columns:
        return Verdict(True, [], [], f"{len(rows)} invalid rows")
    invalid = rows["weekend"]
    own = sorted(set(invalid.dropna()) & set(weekends), key=weekends.index)
    others = sorted(set(invalid.dropna()) - set(weekends))
    valid = (stored & set(weekends)) - set(own)
    without_weekend = int(invalid.isna().sum())
    blocks = bool(without_weekend or (own and (stops_range or not valid)))
    phrases = [f"{without_weekend} invalid rows without a weekend"] if without_weekend else []
    if own:
        rest = "" if blocks else f"; the run continues with its {len(valid)} valid weekends"
        phrases.append(f"in this run: {_named(own)}{rest}")
    if others:
        phrases.append(f"in other weekends, which don't stop this run: {_named(others)}")
    return Verdict(blocks, own, others, "; ".join(phrases))


def no_rows_check(asset: dg.AssetsDefinition, name: str, why: str, sql: str, blocking: bool = True,
                  stops_range: bool = False) -> dg.AssetChecksDefinition:
    """Define a check that passes if `sql` returns no rows, and shows the rows otherwise.

    Args:
        asset: The checked asset.
        name: What holds when the check passes, as a Dagster name.
        why: What would go wrong downstream; shown in the UI.
        sql: Selects invalid rows from the published warehouse, with their `weekend` if they have one: only those of the
            run's weekends block. The variable `dagster_run` is the id of the run.
        blocking: Invalid rows block everything downstream; otherwise they are a warning.
        stops_range: One invalid weekend blocks a run over a range of weekends. False blocks only if all are invalid:
            for faults that downstream assets leave out (`race.unlearnable_weekends`) or never read.
    """
    @dg.asset_check(asset=asset, name=name, description=why, blocking=blocking)
    def check(warehouse: Warehouse) -> dg.AssetCheckResult:
        context = check_context()
        with warehouse.read() as connection:
            if context is not None:
                connection.execute(f"SET VARIABLE dagster_run = '{context.run.run_id}'")
            rows = connection.sql(sql).df()
            stored = _stored_weekends(connection, asset) if len(rows) else set()
        result = verdict(rows, weekends_of_check(), stored, stops_range)
        blocks = blocking and result.blocks
        description = f"{result.message}. {_first(rows, result)}" if len(rows) else None
        if context is not None and blocking and description:
            log = context.log.error if blocks else context.log.warning
            log(f"{name}: {description}")
        warns = not blocking or (len(rows) and not blocks)
        return dg.AssetCheckResult(
            passed=rows.empty, metadata=_metadata(rows, result), description=description,
            severity=dg.AssetCheckSeverity.WARN if warns else dg.AssetCheckSeverity.ERROR)

    return check


def keys_are_unique(asset: dg.AssetsDefinition, *tables: Table) -> dg.AssetChecksDefinition:
    """Define a check that verifies the primary keys of the asset's tables.

    Downstream assets can't leave out a duplicate row, so one blocks a whole range.
    """
    return no_rows_check(asset, "keys_are_unique", "A duplicate row counts twice and ranks a driver against itself.",
                         " UNION ALL BY NAME ".join(_repeated_keys(table) for table in tables), stops_range=True)


def _repeated_keys(table: Table) -> str:
    weekends = ", unnest(list(DISTINCT weekend)) AS weekend" if "weekend" in table.column_names else ""
    return (f"SELECT '{table.qualified}' AS \"table\", concat_ws(' ', {', '.join(table.key)}) AS key, "
            f"count(*) AS times{weekends} FROM {table.qualified} GROUP BY {', '.join(table.key)} HAVING count(*) > 1")


def _stored_weekends(connection: duckdb.DuckDBPyConnection, asset: dg.AssetsDefinition) -> set[str]:
    """Weekends with rows in the asset's table; empty if the table has no weekends."""
    [spec] = asset.specs
    table = BY_NAME[spec.metadata["dagster/table_name"]]
    if "weekend" not in table.column_names:
        return set()
    return {key for (key,) in connection.sql(f"SELECT DISTINCT weekend FROM {table.qualified}").fetchall()}


def _metadata(rows: pd.DataFrame, result: Verdict) -> dict[str, Any]:
    """Row count, weekends and the first rows; the run's own rows come first."""
    metadata: dict[str, Any] = {"rows_found": len(rows)}
    if result.own:
        metadata["weekends_of_this_run"] = listing(result.own)
    if result.others:
        metadata["other_weekends"] = listing(result.others)
    if len(rows):
        metadata["rows"] = dg.MetadataValue.table(records=[
            dg.TableRecord({str(k): str(v) for k, v in row.items()})
            for row in _own_first(rows, result).head(_ROWS_SHOWN).to_dict("records")])
    return metadata


def _own_first(rows: pd.DataFrame, result: Verdict) -> pd.DataFrame:
    if "weekend" not in rows.columns:
        return rows
    return rows.loc[rows["weekend"].isin(result.others).sort_values(kind="stable").index]


def _first(rows: pd.DataFrame, result: Verdict) -> str:
    """The first row as one line."""
    first = _own_first(rows, result).iloc[0]
    if "detail" in rows.columns:
        return f"{first['weekend']}: {first['detail']}"
    return "First row: " + ", ".join(f"{name} {value}" for name, value in first.items())


def _named(weekends: list[str], limit: int = 5) -> str:
    more = f" and {len(weekends) - limit} more" if len(weekends) > limit else ""
    return ", ".join(weekends[:limit]) + more
