"""A check is a query for rows that should not be there.

It answers for the weekends of the run that executes it: their rows stop what comes after, rows of other weekends are a
warning that names them. So a bad race stops its own run and no other.
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
    """What offending rows mean for a run.

    Attributes:
        blocks: Nothing downstream may run.
        own: Weekends of the run that have offending rows.
        others: Other weekends that have some.
        message: Both in words; empty where there are no rows.
    """

    blocks: bool
    own: list[str]
    others: list[str]
    message: str


def verdict(rows: pd.DataFrame, weekends: list[str] | None, stored: set[str], stops_range: bool) -> Verdict:
    """Judge offending rows by the weekends that they belong to.

    A row without a weekend speaks of the table as a whole, and blocks whatever the run. In a range of weekends the
    faulty ones are left out downstream, so they block only if no sound one is left.

    Args:
        rows: Offending rows, with a column `weekend` where the table has one.
        weekends: Those of the run; None: the whole table is looked at.
        stored: Weekends that the checked table has rows of.
        stops_range: Downstream can't leave out a faulty weekend: one stops the whole range.
    """
    if rows.empty:
        return Verdict(False, [], [], "")
    if weekends is None or "weekend" not in rows.columns:
        return Verdict(True, [], [], f"{len(rows)} rows that should not be there")
    of = rows["weekend"]
    own = sorted(set(of.dropna()) & set(weekends), key=weekends.index)
    others = sorted(set(of.dropna()) - set(weekends))
    sound = (stored & set(weekends)) - set(own)
    homeless = int(of.isna().sum())
    blocks = bool(homeless or (own and (stops_range or not sound)))
    sentences = [f"{homeless} rows that belong to no weekend"] if homeless else []
    if own:
        rest = "" if blocks else f"; the run goes on with its {len(sound)} sound weekends"
        sentences.append(f"in this run: {_named(own)}{rest}")
    if others:
        sentences.append(f"in other weekends, which doesn't stop this run: {_named(others)}")
    return Verdict(blocks, own, others, "; ".join(sentences))


def no_rows_check(asset: dg.AssetsDefinition, name: str, why: str, sql: str, blocking: bool = True,
                  stops_range: bool = False) -> dg.AssetChecksDefinition:
    """A check that passes when `sql` finds nothing, and shows what it finds otherwise.

    Args:
        asset: The asset that is checked.
        name: What holds when it passes, as a Dagster name.
        why: What would go wrong downstream; shown in the UI.
        sql: Selects the offending rows from the published warehouse, with their `weekend` where they have one: only
            those of the run's own weekends block. The variable `dagster_run` is the id of the run.
        blocking: Stop everything downstream. Without it a finding is a warning.
        stops_range: In a run over a range of weekends, one faulty weekend blocks too. Otherwise that takes all of them:
            for faults that downstream leaves out (`race.unlearnable_weekends`), or that nothing downstream reads.
    """
    @dg.asset_check(asset=asset, name=name, description=why, blocking=blocking)
    def check(warehouse: Warehouse) -> dg.AssetCheckResult:
        context = check_context()
        with warehouse.read() as connection:
            if context is not None:
                connection.execute(f"SET VARIABLE dagster_run = '{context.run.run_id}'")
            rows = connection.sql(sql).df()
            stored = _stored_weekends(connection, asset) if len(rows) else set()
        judged = verdict(rows, weekends_of_check(), stored, stops_range)
        blocks = blocking and judged.blocks
        description = f"{judged.message}. {_first(rows, judged)}" if len(rows) else None
        if context is not None and blocking and description:
            log = context.log.error if blocks else context.log.warning
            log(f"{name}: {description}")
        warns = not blocking or (len(rows) and not blocks)
        return dg.AssetCheckResult(
            passed=rows.empty, metadata=_metadata(rows, judged), description=description,
            severity=dg.AssetCheckSeverity.WARN if warns else dg.AssetCheckSeverity.ERROR)

    return check


def keys_are_unique(asset: dg.AssetsDefinition, *tables: Table) -> dg.AssetChecksDefinition:
    """Each key of the asset's tables is there once: the primary keys verified, not trusted.

    A row twice can't be left out of what is computed from the table, so one stops a whole range.
    """
    return no_rows_check(asset, "keys_are_unique", "A row twice would count twice, and rank a driver against himself.",
                         " UNION ALL BY NAME ".join(_repeated_keys(table) for table in tables), stops_range=True)


def _repeated_keys(table: Table) -> str:
    weekends = ", unnest(list(DISTINCT weekend)) AS weekend" if "weekend" in table.column_names else ""
    return (f"SELECT '{table.qualified}' AS \"table\", concat_ws(' ', {', '.join(table.key)}) AS key, "
            f"count(*) AS times{weekends} FROM {table.qualified} GROUP BY {', '.join(table.key)} HAVING count(*) > 1")


def _stored_weekends(connection: duckdb.DuckDBPyConnection, asset: dg.AssetsDefinition) -> set[str]:
    """Weekends that the asset's table has rows of; none where it knows no weekends."""
    [spec] = asset.specs
    table = BY_NAME[spec.metadata["dagster/table_name"]]
    if "weekend" not in table.column_names:
        return set()
    return {key for (key,) in connection.sql(f"SELECT DISTINCT weekend FROM {table.qualified}").fetchall()}


def _metadata(rows: pd.DataFrame, judged: Verdict) -> dict[str, Any]:
    """Count, weekends and the first rows, those of the run first."""
    metadata: dict[str, Any] = {"rows_found": len(rows)}
    if judged.own:
        metadata["weekends_of_this_run"] = listing(judged.own)
    if judged.others:
        metadata["other_weekends"] = listing(judged.others)
    if len(rows):
        metadata["rows"] = dg.MetadataValue.table(records=[
            dg.TableRecord({str(k): str(v) for k, v in row.items()})
            for row in _own_first(rows, judged).head(_ROWS_SHOWN).to_dict("records")])
    return metadata


def _own_first(rows: pd.DataFrame, judged: Verdict) -> pd.DataFrame:
    if "weekend" not in rows.columns:
        return rows
    return rows.loc[rows["weekend"].isin(judged.others).sort_values(kind="stable").index]


def _first(rows: pd.DataFrame, judged: Verdict) -> str:
    """The first row in one line."""
    first = _own_first(rows, judged).iloc[0]
    if "detail" in rows.columns:
        return f"{first['weekend']}: {first['detail']}"
    return "The first: " + ", ".join(f"{name} {value}" for name, value in first.items())


def _named(weekends: list[str], most: int = 5) -> str:
    more = f" and {len(weekends) - most} more" if len(weekends) > most else ""
    return ", ".join(weekends[:most]) + more
