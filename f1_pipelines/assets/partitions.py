"""Weekends as Dagster partitions.

Keys are static, so that the CLI knows every weekend without an instance or a daemon. They come from the embedded
calendars and the refreshed one that `race_calendar` writes beside the warehouse: a weekend added in mid-season becomes
a partition when the code location is reloaded.
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
    """The context of the running asset check; None if the check is called as a plain function."""
    try:
        return dg.AssetCheckExecutionContext.get()
    except dg.DagsterInvariantViolationError:
        return None


def weekends_of_check() -> list[str] | None:
    """Weekends of the run that executes a check, in race order. None if it has none, which checks the whole table: a
    run of unpartitioned assets, a check executed alone or called as a plain function.

    A check has no partitions of its own, and `partition_keys` of its context works only if all assets of the run have
    the same partitions, unlike in the demo and `post_race`.
    """
    context = check_context()
    if context is None:
        return None
    if context.has_partition_key:
        return [context.partition_key]
    if context.has_partition_key_range:
        return list(race_weekends.get_partition_keys_in_range(context.partition_key_range))
    return None
