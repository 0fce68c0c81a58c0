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
