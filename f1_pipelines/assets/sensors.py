"""The calendar sensor: requests runs after each qualifying and each race."""
from datetime import datetime

import dagster as dg

from f1_pipelines.assets.jobs import next_prediction, post_race, pre_race
from f1_pipelines.assets.partitions import race_weekends
from f1_pipelines.automation.attempts import Attempt, Outcome
from f1_pipelines.automation.decide import PHASES, WeekendState, decide
from f1_pipelines.automation.sensor_cursor import SensorCursor
from f1_pipelines.identity.weekends import Weekend, add_refreshed, known_weekends
from f1_pipelines.resources.race_data import Clock, RaceData
from f1_pipelines.resources.warehouse import Warehouse
from f1_pipelines.runs.dead_runs import end_lost_runs
from f1_pipelines.settings import settings
from f1_pipelines.sources.base import RaceDataSource, SourceError
from f1_pipelines.sources.calendar import calendar_rows, calendar_updates, overlay
from f1_pipelines.sources.updates import Phase, SourceUpdate
from f1_pipelines.warehouse.database import WarehouseError, WrongSchema

VERSION_TAG, REQUESTED_AT_TAG = "f1/data_version", "f1/asked_at"
_PARTITION_TAG = "dagster/partition"
# Timeout of one request to the source [s]: a tick must end within five seconds.
_SOURCE_TIMEOUT_S = 3.0
_FAILED = (dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED)


@dg.sensor(jobs=[pre_race, post_race, next_prediction], minimum_interval_seconds=120,
           # Off by default: opening the UI for the first time must not start downloads and training.
           default_status=dg.DefaultSensorStatus.STOPPED)
def weekend_sensor(context: dg.SensorEvaluationContext, warehouse: Warehouse, race_data: RaceData,
                   clock: Clock) -> dg.SensorResult:
    """Requests `pre_race` once qualifying is over and `post_race` once the official result is out.

    Requests one weekend at a time, in race order, once per version of the data, with up to three attempts. Reads past
    runs from Dagster and stored results from the warehouse, so it continues after any downtime. Starts with the season
    of the last stored result; older seasons need a backfill.
    """
    _end_lost_runs(context)
    now, cursor = clock.now(), SensorCursor.of(context.cursor)
    try:
        with warehouse.read() as connection:
            stored = dict(connection.execute(
                "SELECT weekend, any_value(content_hash) FROM race.current_results "
                "WHERE result_status <> 'provisional' GROUP BY weekend").fetchall())
    except (WarehouseError, WrongSchema) as problem:
        return dg.SensorResult(skip_reason=str(problem), cursor=context.cursor)
    if not stored:
        return dg.SensorResult(cursor=context.cursor, skip_reason="no official result is stored yet: load results with"
                               " `make demo` or a range of weekends; the sensor then keeps them up to date")
    source_opener = _SourceOpener(race_data, clock)
    if race_data.source != "sample" and cursor.calendar_is_old(now):
        _refresh_calendar(source_opener, cursor, range(int(max(stored)[:4]), now.year + 1), now)
    weekends = known_weekends(settings().calendar_path)
    state = WeekendState(weekends=weekends, stored=stored,
                         attempts=attempts_of(context.instance, [weekend.key for weekend in weekends]),
                         partitions=race_weekends.get_partition_keys(), now=now)

    def latest_update(weekend: Weekend, phase: Phase, urgent: bool) -> SourceUpdate:
        return cursor.latest_update(f"{weekend.key} {phase}", now, urgent,
                                    lambda: source_opener.source.news(weekend, phase))

    schedule = decide(state, latest_update)
    cursor.forget_all_but(schedule.examined)
    outage = [f"{race_data.source} can't be reached: {cursor.outage}"] if cursor.outage else []
    why = "; ".join([*outage, *schedule.reasons]) or "no weekend is left in the calendar"
    if schedule.request is None:
        return dg.SensorResult(skip_reason=why, cursor=cursor.to_json())
    context.log.info(why)
    return dg.SensorResult(cursor=cursor.to_json(), run_requests=[dg.RunRequest(
        job_name=schedule.request.phase, partition_key=schedule.request.weekend,
        tags={VERSION_TAG: schedule.request.version, REQUESTED_AT_TAG: now.isoformat()})])


def _end_lost_runs(context: dg.SensorEvaluationContext) -> None:
    """End runs without a process; otherwise the sensor waits for them, and they hold the GPU pool, for hours."""
    try:
        instance = context.instance
    except dg.DagsterInvariantViolationError:  # evaluated without an instance, which a daemon never does
        return
    for run in end_lost_runs(instance, guess_host=False):
        context.log.warning("%s: ended, its pool slots freed", run)


class _SourceOpener:
    """The source, opened on first use: most ticks need none."""

    def __init__(self, race_data: RaceData, clock: Clock):
        self._race_data, self._clock = race_data, clock
        self._open: RaceDataSource | None = None

    @property
    def source(self) -> RaceDataSource:
        if self._open is None:
            self._open = self._race_data.open(self._clock, timeout_s=_SOURCE_TIMEOUT_S)
        return self._open


def attempts_of(instance: dg.DagsterInstance, weekends: list[str]) -> list[Attempt]:
    """Get the runs of our jobs for these weekends, newest first, including runs started by hand."""
    records = [record for phase in PHASES for record in instance.get_run_records(
        dg.RunsFilter(job_name=phase, tags={_PARTITION_TAG: weekends}))]
    return [_as_attempt(record) for record in sorted(records, key=lambda record: record.storage_id, reverse=True)]


def _as_attempt(record: dg.RunRecord) -> Attempt:
    run = record.dagster_run
    outcome: Outcome = "succeeded" if run.is_success else "failed" if run.status in _FAILED else "running"
    return Attempt(run_id=run.run_id, weekend=run.tags[_PARTITION_TAG], phase=run.job_name,
                   version=run.tags.get(VERSION_TAG), outcome=outcome, requested_at=_requested_at(record))


def _requested_at(record: dg.RunRecord) -> datetime:
    """Time of the request by the sensor's clock, which tests and replays set; for manual runs, Dagster's.

    A re-execution copies the tags of its parent run, so its creation time counts.
    """
    run, created_at = record.dagster_run, record.create_timestamp
    if REQUESTED_AT_TAG not in run.tags:
        return created_at
    tagged = datetime.fromisoformat(run.tags[REQUESTED_AT_TAG])
    return max(tagged, created_at) if run.parent_run_id else tagged


def _refresh_calendar(source_opener: _SourceOpener, cursor: SensorCursor, seasons: range, now: datetime) -> None:
    """Write weekends that the source has changed to the refreshed calendar, as `race_calendar` does."""
    all_weekends = known_weekends(settings().calendar_path)
    try:
        fetched = source_opener.source.calendar(seasons)
    except SourceError as problem:
        cursor.outage = str(problem)
        return
    known = calendar_rows([weekend for weekend in all_weekends if weekend.season in seasons], now)
    if updates := calendar_updates(all_weekends, overlay(known, fetched, now), now):
        add_refreshed(settings().calendar_path, updates)
    cursor.calendar_fetched_at = now
