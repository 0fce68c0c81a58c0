"""The calendar sensor: after every qualifying and every race it asks for what is to be run, and runs nothing itself."""
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

VERSION_TAG, ASKED_AT_TAG = "f1/data_version", "f1/asked_at"
_PARTITION_TAG = "dagster/partition"
# All that a server gets of a tick, which must end within five seconds.
_SOURCE_ANSWERS_WITHIN_S = 3.0
_FAILED = (dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED)


@dg.sensor(jobs=[pre_race, post_race, next_prediction], minimum_interval_seconds=120,
           # Who opens the UI for the first time should not find it fetching and training: one click turns it on.
           default_status=dg.DefaultSensorStatus.STOPPED)
def weekend_sensor(context: dg.SensorEvaluationContext, warehouse: Warehouse, race_data: RaceData,
                   clock: Clock) -> dg.SensorResult:
    """Asks for `pre_race` once qualifying is over and for `post_race` once the official result is out.

    One weekend at a time, in race order, once for each version of the data; a failed run is tried three times. What ran
    is read from Dagster's runs and their tags, what is stored from the warehouse: after any time off it goes on where
    it was. It starts from the season of the last stored result; what is older is a backfill.
    """
    _end_lost_runs(context)
    now, memory = clock.now(), SensorCursor.of(context.cursor)
    try:
        with warehouse.read() as connection:
            stored = dict(connection.execute(
                "SELECT weekend, any_value(content_hash) FROM race.current_results "
                "WHERE result_status <> 'provisional' GROUP BY weekend").fetchall())
    except (WarehouseError, WrongSchema) as problem:
        return dg.SensorResult(skip_reason=str(problem), cursor=context.cursor)
    if not stored:
        return dg.SensorResult(cursor=context.cursor, skip_reason="no official result is stored yet: fill the warehouse"
                               " with `make demo` or a range of weekends; from then on this keeps it up to date")
    ask = _Source(race_data, clock)
    if race_data.source != "sample" and memory.calendar_is_old(now):
        _refresh_calendar(ask, memory, range(int(max(stored)[:4]), now.year + 1), now)
    weekends = known_weekends(settings().calendar_path)
    known = WeekendState(weekends=weekends, stored=stored, tries=attempts_of(context.instance,
                                                                             [w.key for w in weekends]),
                         partitions=race_weekends.get_partition_keys(), now=now)

    def update_of(weekend: Weekend, phase: Phase, soon: bool) -> SourceUpdate:
        return memory.news(f"{weekend.key} {phase}", now, soon, lambda: ask.source.news(weekend, phase))

    decision = decide(known, update_of)
    memory.forget_all_but(decision.looked_at)
    outage = [f"{race_data.source} can't be asked: {memory.outage}"] if memory.outage else []
    why = "; ".join([*outage, *decision.reasons]) or "no weekend is left in the calendar"
    if decision.ask is None:
        return dg.SensorResult(skip_reason=why, cursor=memory.cursor())
    context.log.info(why)
    return dg.SensorResult(cursor=memory.cursor(), run_requests=[dg.RunRequest(
        job_name=decision.ask.phase, partition_key=decision.ask.weekend,
        tags={VERSION_TAG: decision.ask.version, ASKED_AT_TAG: now.isoformat()})])


def _end_lost_runs(context: dg.SensorEvaluationContext) -> None:
    """A run that lost its process would be waited for, and keep the GPU's pool, for hours."""
    try:
        instance = context.instance
    except dg.DagsterInvariantViolationError:  # evaluated without one, which a daemon never does
        return
    for ended in end_lost_runs(instance, guess_host=False):
        context.log.warning("%s: ended, its pool slots freed", ended)


class _Source:
    """The source, opened when the first question is put: most ticks have none."""

    def __init__(self, race_data: RaceData, clock: Clock):
        self._race_data, self._clock = race_data, clock
        self._open: RaceDataSource | None = None

    @property
    def source(self) -> RaceDataSource:
        if self._open is None:
            self._open = self._race_data.open(self._clock, timeout_s=_SOURCE_ANSWERS_WITHIN_S)
        return self._open


def attempts_of(instance: dg.DagsterInstance, weekends: list[str]) -> list[Attempt]:
    """The runs of our jobs for these weekends, the newest first, whoever started them."""
    records = [record for phase in PHASES for record in instance.get_run_records(
        dg.RunsFilter(job_name=phase, tags={_PARTITION_TAG: weekends}))]
    return [_as_attempt(record) for record in sorted(records, key=lambda record: record.storage_id, reverse=True)]


def _as_attempt(record: dg.RunRecord) -> Attempt:
    run = record.dagster_run
    outcome: Outcome = "succeeded" if run.is_success else "failed" if run.status in _FAILED else "running"
    return Attempt(run_id=run.run_id, weekend=run.tags[_PARTITION_TAG], phase=run.job_name,
                   version=run.tags.get(VERSION_TAG), outcome=outcome, asked_at=_asked_at(record))


def _asked_at(record: dg.RunRecord) -> datetime:
    """By the sensor's clock, which tests and replays set; a run that a person started has Dagster's.

    A re-execution takes the tags of the run before along: its own instant is the one at which it was made.
    """
    run, made_at = record.dagster_run, record.create_timestamp
    if ASKED_AT_TAG not in run.tags:
        return made_at
    tagged = datetime.fromisoformat(run.tags[ASKED_AT_TAG])
    return max(tagged, made_at) if run.parent_run_id else tagged


def _refresh_calendar(ask: _Source, memory: SensorCursor, seasons: range, now: datetime) -> None:
    """Write weekends that the source tells otherwise to the refreshed calendar, as `race_calendar` does."""
    everything = known_weekends(settings().calendar_path)
    try:
        fetched = ask.source.calendar(seasons)
    except SourceError as problem:
        memory.outage = str(problem)
        return
    known = calendar_rows([weekend for weekend in everything if weekend.season in seasons], now)
    if fresh := calendar_updates(everything, overlay(known, fetched, now), now):
        add_refreshed(settings().calendar_path, fresh)
    memory.calendar_asked_at = now
