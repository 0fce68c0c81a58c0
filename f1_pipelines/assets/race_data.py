"""Ingest of race weekends: calendar, practice, qualifying, results, laps."""
from collections.abc import Callable
from typing import Any, Literal, TypeVar

import dagster as dg

from f1_pipelines.assets.checks import keys_are_unique, no_rows_check
from f1_pipelines.assets.metadata import bar_plot, described, listing, preview, weekends_materialized
from f1_pipelines.assets.partitions import race_weekends, weekends_of_run
from f1_pipelines.identity.weekends import add_refreshed, known_weekends
from f1_pipelines.resources.race_data import Clock, RaceData
from f1_pipelines.resources.warehouse import Warehouse
from f1_pipelines.settings import settings
from f1_pipelines.sources.base import Fetched, SourceError, SourceUnavailable
from f1_pipelines.sources.calendar import calendar_rows, calendar_updates, moved_starts, overlay, with_states
from f1_pipelines.tables import race, race_faults
from f1_pipelines.warehouse.ingest import refuse_mixture, store, stored_weekends, weekends_of
from f1_pipelines.warehouse.replace import replace_slices

_COMMON: dict[str, Any] = {
    "partitions_def": race_weekends, "backfill_policy": dg.BackfillPolicy.single_run(), "group_name": "race_data",
    "owners": ["team:race-data"], "kinds": {"python", "duckdb"}, "code_version": "1",
}


T = TypeVar("T")
UNATTENDED_JOBS = ("pre_race", "post_race", "next_prediction")
# Timing that may stay unavailable (F1's feed needs an account): an unattended run continues without, others fail.
_OPTIONAL = ("practice", "laps")


class IngestConfig(dg.Config):
    """Safety checks that an operator may turn off."""

    accept_fewer_rows: bool = False


@dg.asset(**_COMMON, metadata=described(race.CALENDAR))
def race_calendar(context: dg.AssetExecutionContext, warehouse: Warehouse, race_data: RaceData,
                  clock: Clock) -> dg.MaterializeResult[None]:
    """Every Grand Prix weekend with its current state, cancelled ones too. One row per weekend.

    Overlays the embedded calendar with the source's data of these seasons. Weekends that only the source has are added;
    they become partitions when the code location is reloaded. Weekends missing from the source are kept.
    """
    weekends = weekends_of_run(context)
    seasons = sorted({weekend.season for weekend in weekends})
    fetched = _fetch(context, lambda: race_data.open(clock).calendar(seasons))
    all_weekends = known_weekends(settings().calendar_path)
    known = calendar_rows([weekend for weekend in all_weekends if weekend.season in seasons], clock.now())
    moved = moved_starts(known, fetched)
    merged = overlay(known, fetched, clock.now())
    added = sorted(set(merged["weekend"]) - set(known["weekend"]))
    with warehouse.write(f"race_calendar {context.partition_keys[-1]}") as connection:
        finished = stored_weekends(connection, race.RESULTS.qualified)
        merged = with_states(merged, finished, clock.now())
        rows = merged[merged["weekend"].isin({weekend.key for weekend in weekends} | set(added))]
        refuse_mixture(connection, rows)
        replace_slices(connection, race.CALENDAR, rows)
        # The sample's calendar is the embedded one; it must not overwrite a real source's.
        if race_data.source != "sample" and (updates := calendar_updates(all_weekends, merged, clock.now())):
            add_refreshed(settings().calendar_path, updates)
    return weekends_materialized(context, len(rows), {"states": rows["state"].value_counts().to_dict()}, {
        "added": listing(added), "moved": listing(moved),
        "preview": preview(rows[["weekend", "round", "event_name", "layout", "format", "state", "race_start"]].tail(8)),
    })


@dg.asset(**_COMMON, deps=[race_calendar], metadata=described(race.PRACTICE))
def practice_results(context: dg.AssetExecutionContext, config: IngestConfig, warehouse: Warehouse,
                     race_data: RaceData, clock: Clock) -> dg.MaterializeResult[None]:
    """Best lap of each driver in each practice session. One row per (weekend, session, driver)."""
    return _ingest(context, config, warehouse, race_data, clock, "practice")


@dg.asset(**_COMMON, deps=[race_calendar], metadata=described(race.QUALIFYING))
def qualifying_results(context: dg.AssetExecutionContext, config: IngestConfig, warehouse: Warehouse,
                       race_data: RaceData, clock: Clock) -> dg.MaterializeResult[None]:
    """Qualifying and sprint qualifying with segments, and the starting grid. One row per (weekend, session, driver)."""
    return _ingest(context, config, warehouse, race_data, clock, "qualifying")


@dg.asset(**_COMMON, deps=[race_calendar], metadata=described(race.RESULTS))
def race_results(context: dg.AssetExecutionContext, config: IngestConfig, warehouse: Warehouse,
                 race_data: RaceData, clock: Clock) -> dg.MaterializeResult[None]:
    """Classification of the Grand Prix and the sprint, and pit stops. One row per (weekend, driver, version).

    Keeps all versions of a result; `race.current_results` has the current one.
    """
    return _ingest(context, config, warehouse, race_data, clock, "results")


@dg.asset(**_COMMON, deps=[race_calendar], metadata=described(race.LAPS))
def race_laps(context: dg.AssetExecutionContext, config: IngestConfig, warehouse: Warehouse,
              race_data: RaceData, clock: Clock) -> dg.MaterializeResult[None]:
    """Every lap of the Grand Prix, with tyres and track status. One row per (weekend, driver, lap).

    Also loads weather and race control messages. f1db has no laps: then there are no rows and the metadata says so.
    """
    return _ingest(context, config, warehouse, race_data, clock, "laps")


def _fetch(context: dg.AssetExecutionContext, request: Callable[[], T]) -> T:
    """Request data from the source.

    Unattended jobs retry an unreachable source after 2, 4, 8 and 16 minutes. Other runs, and errors that waiting can't
    fix, fail at once.
    """
    try:
        return request()
    except SourceUnavailable as problem:
        if context.run.job_name in UNATTENDED_JOBS:
            raise dg.RetryRequested(max_retries=4, seconds_to_wait=120 * 2**context.retry_number) from problem
        raise dg.Failure(str(problem), allow_retries=False) from problem
    except SourceError as problem:
        raise dg.Failure(str(problem), allow_retries=False) from problem


def _ingest(context: dg.AssetExecutionContext, config: IngestConfig, warehouse: Warehouse, race_data: RaceData,
            clock: Clock, kind: Literal["practice", "qualifying", "results", "laps"]) -> dg.MaterializeResult[None]:
    """Store all complete sessions of this run's weekends and list the refused ones.

    Fails, without changing stored rows, if an expected session was refused and none can be stored. Unattended jobs
    continue without practice or laps, with a warning.
    """
    weekends = weekends_of_run(context)
    source = _fetch(context, lambda: race_data.open(clock))
    fetched: Fetched = _fetch(context, lambda: getattr(source, kind)(weekends))
    has_rows = any(len(frame) for frame in fetched.tables.values())
    faults = [refusal for refusal in fetched.refused if not refusal.expected]
    optional = kind in _OPTIONAL and context.run.job_name in UNATTENDED_JOBS
    if not has_rows and faults and not optional:
        raise dg.Failure(
            description=f"nothing could be loaded from {source.name}: {faults[0]}"
                        + (f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""),
            metadata={"refused": listing([str(refusal) for refusal in faults])},
            allow_retries=False)
    name = context.asset_key.to_user_string()
    written: dict[str, int] = {}
    if has_rows:
        span = weekends[0].key if len(weekends) == 1 else f"{weekends[0].key}...{weekends[-1].key}"
        with warehouse.write(f"{name} {span}") as connection:
            written = store(connection, fetched, config.accept_fewer_rows)
    if faults:
        context.log.warning("%d sessions refused; first: %s", len(faults), faults[0])
    pictures: dict[str, Any] = {"refused": listing([str(refusal) for refusal in fetched.refused])}
    main = next(iter(fetched.tables.values()), None)
    if main is not None and len(main):
        pictures["preview"] = preview(main[[column for column in main.columns if column not in _PROVENANCE]])
        by_season = main["weekend"].str[:4].value_counts().sort_index()
        if len(by_season) > 1:
            pictures["rows_by_season"] = bar_plot(by_season.to_dict(), f"{name}: rows by season", "rows")
    return weekends_materialized(context, sum(written.values()), {
        "rows_by_table": written, "weekends_with_rows": len(weekends_of(fetched)), "source": source.name,
        "sessions_refused": len(faults)}, pictures)


_PROVENANCE = ("content_hash", "source_version", "fetched_at")

_LAPS_WITH_GAPS = """
    SELECT weekend, driver, count(*) AS laps, max(lap) AS last_lap FROM race.laps
    GROUP BY ALL HAVING count(*) <> max(lap)
"""

race_data_checks = [
    keys_are_unique(race_calendar, race.CALENDAR),
    keys_are_unique(practice_results, race.PRACTICE),
    keys_are_unique(qualifying_results, race.QUALIFYING, race.GRID),
    keys_are_unique(race_results, race.RESULTS, race.SPRINT_RESULTS, race.PIT_STOPS),
    keys_are_unique(race_laps, race.LAPS, race.SESSION_LAPS, race.WEATHER, race.RACE_CONTROL),
    no_rows_check(race_results, "classifications_are_permutations",
                  "A duplicate or missing place would teach the ranker a wrong order.",
                  race_faults.BROKEN_ORDER),
    no_rows_check(race_results, "sprint_classifications_are_permutations",
                  "A duplicate or missing place shows a wrong order; nothing is learnt from sprints.",
                  race_faults.BROKEN_SPRINT_ORDER, blocking=False),
    no_rows_check(qualifying_results, "places_are_permutations",
                  "A duplicate or missing place would distort all features that rank the field.",
                  race_faults.BROKEN_QUALIFYING),
    no_rows_check(qualifying_results, "sprint_places_are_permutations",
                  "A duplicate or missing place shows a wrong order; no feature uses sprint qualifying.",
                  race_faults.BROKEN_SPRINT_QUALIFYING, blocking=False),
    no_rows_check(race_results, "grid_has_no_sentinels",
                  "Grid 0, -1 or one value for all is a placeholder; it must never sort ahead of pole.",
                  race_faults.any_of(race_faults.IMPOSSIBLE_GRID, race_faults.INCOMPLETE_GRID)),
    no_rows_check(race_results, "qualifying_covers_the_starters",
                  "A race without qualifying data of a fifth of the field would train on missing values.",
                  race_faults.QUALIFYING_INCOMPLETE),
    no_rows_check(race_laps, "laps_have_no_holes",
                  "A missing lap shifts a driver's stints; such races stay out of the fits.", _LAPS_WITH_GAPS,
                  blocking=False),
]
