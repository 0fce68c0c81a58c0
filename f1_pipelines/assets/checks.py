"""A check is a query for rows that should not be there."""
import dagster as dg

from f1_pipelines.resources.warehouse import Warehouse
from f1_pipelines.tables.schema import Table


def no_rows_check(asset: dg.AssetsDefinition, name: str, why: str, sql: str,
                  blocking: bool = True) -> dg.AssetChecksDefinition:
    """A check that passes when `sql` finds nothing, and shows what it finds otherwise.

    Args:
        asset: The asset that is checked.
        name: What holds when it passes, as a Dagster name.
        why: What would go wrong downstream; shown in the UI.
        sql: Selects the offending rows from the published warehouse.
        blocking: Stop everything downstream. Without it a finding is a warning.
    """
    @dg.asset_check(asset=asset, name=name, description=why, blocking=blocking)
    def check(warehouse: Warehouse) -> dg.AssetCheckResult:
        with warehouse.read() as connection:
            found = connection.sql(sql).df()
        shown = [dg.TableRecord({str(k): str(v) for k, v in row.items()}) for row in found.head(10).to_dict("records")]
        metadata: dict[str, object] = {"rows_found": len(found)}
        if shown:
            metadata["rows"] = dg.MetadataValue.table(records=shown)
        severity = dg.AssetCheckSeverity.ERROR if blocking else dg.AssetCheckSeverity.WARN
        return dg.AssetCheckResult(passed=found.empty, severity=severity, metadata=metadata)

    return check


def keys_are_unique(asset: dg.AssetsDefinition, *tables: Table) -> dg.AssetChecksDefinition:
    """Each key of the asset's tables is there once: the primary keys verified, not trusted."""
    counts = " UNION ALL ".join(
        f"SELECT '{table.qualified}' AS \"table\", concat_ws(' ', {', '.join(table.key)}) AS key, count(*) AS times "
        f"FROM {table.qualified} GROUP BY {', '.join(table.key)} HAVING count(*) > 1" for table in tables)
    return no_rows_check(asset, "keys_are_unique", "A row twice would count twice, and rank a driver against himself.",
                         counts)
