"""Weekends as Dagster partitions.

Static keys, so that the CLI knows every weekend on a fresh home, without an instance or a daemon. They are the embedded
calendars plus the refreshed one that `race_calendar` keeps beside the warehouse: a weekend added in mid-season is a
partition as soon as the code location is loaded again.
"""
import dagster as dg

from f1_pipelines.identity.weekends import Weekend, known_weekends, weekend
from f1_pipelines.settings import settings

race_weekends = dg.StaticPartitionsDefinition([known.key for known in known_weekends(settings().calendar_path)])


def weekends_of_run(context: dg.AssetExecutionContext) -> list[Weekend]:
    """The weekends of this run's partition or range, in race order."""
    extra = settings().calendar_path
    return [weekend(key, extra) for key in context.partition_keys]


def check_context() -> dg.AssetCheckExecutionContext | None:
    """The context of the asset check that is being executed; None where one is called as a plain function."""
    try:
        return dg.AssetCheckExecutionContext.get()
    except dg.DagsterInvariantViolationError:
        return None


def weekends_of_check() -> list[str] | None:
    """Weekends of the run that executes a check, in race order; None where it has none, and the whole table is looked
    at: a run of assets without partitions, a check that is executed by itself, or called as a plain function.

    A check has no partitions of its own: `partition_keys` of its context knows them only where all assets of the run
    are partitioned alike, which those of a demo or of `post_race` are not.
    """
    context = check_context()
    if context is None:
        return None
    if context.has_partition_key:
        return [context.partition_key]
    if context.has_partition_key_range:
        return list(race_weekends.get_partition_keys_in_range(context.partition_key_range))
    return None
