"""Choose the next weekend and phase to run, and give the reasons for the others."""
from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from f1_pipelines.automation.attempts import Attempt, is_running, phase_status, short_id
from f1_pipelines.identity.weekends import Weekend
from f1_pipelines.sources.updates import Phase, SourceUpdate

NEXT_PREDICTION = "next_prediction"
PHASES = ("pre_race", "post_race", NEXT_PREDICTION)
QUALIFYING_LASTS = timedelta(hours=1)
# Assumed end of qualifying before the race, if the calendar has no start of qualifying.
_QUALIFYING_BEFORE_RACE = timedelta(hours=22)
# Stored results are checked again for this long, because results are amended for days.
RECENT = timedelta(days=14)
# The source is asked often for this long after a race.
EXPECTED_WITHIN = timedelta(days=2)
# A forecast is useless after the start. From URGENT before the race it waits for no other run; TOO_LATE is too short
# for a run.
URGENT, TOO_LATE = timedelta(hours=2), timedelta(minutes=5)


@dataclass(frozen=True)
class RunRequest:
    """A run to request, once per version of a weekend's data."""

    weekend: str
    phase: str
    version: str


@dataclass
class Schedule:
    """Result of a tick: at most one run, a reason for each candidate weekend, and the examined weekends and phases."""

    request: RunRequest | None = None
    reasons: list[str] = field(default_factory=list)
    examined: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class WeekendState:
    """Input of a decision.

    `weekends`: by race start. `stored`: version (`content_hash`) of the official results in the warehouse, by weekend.
    `attempts`: runs of our jobs, newest first. `partitions`: weekends that the loaded code can run.
    """

    weekends: Sequence[Weekend]
    stored: Mapping[str, str]
    attempts: Sequence[Attempt]
    partitions: Collection[str]
    now: datetime

    def attempts_at(self, weekend: str, phase: str) -> list[Attempt]:
        return [attempt for attempt in self.attempts if attempt.weekend == weekend and attempt.phase == phase]


def decide(state: WeekendState, latest_update: Callable[[Weekend, Phase, bool], SourceUpdate]) -> Schedule:
    """Choose the first weekend in race order that needs a run.

    One run at a time: each learns from the previous one. A later weekend waits for an earlier one that is running or
    will be retried, but not for one that was given up or has no data. A forecast before a race waits for running runs,
    and from `URGENT` on for none.

    Args:
        state: Calendar, stored results and past runs.
        latest_update: Gets the source's update on a phase of a weekend; the last argument is True if it may change
            any moment.
    """
    schedule, now = Schedule(), state.now
    running = next((attempt for attempt in state.attempts if is_running(attempt, now)), None)
    blocker = f"{running.phase} of {running.weekend} (run {short_id(running)})" if running else None
    retry = None
    for weekend in candidates(state):
        phase: Phase = "post_race" if weekend.race_start <= now else "pre_race"
        schedule.examined.append(f"{weekend.key} {phase}")

        def add_reason(why: str, weekend: Weekend = weekend, phase: str = phase) -> None:
            schedule.reasons.append(f"{weekend.key} {phase}: {why}")

        if why := _why_not_now(weekend, phase, state):
            add_reason(why)
            continue
        attempts = state.attempts_at(weekend.key, phase)
        if running in attempts:
            add_reason(f"run {short_id(running)} is running")
            continue
        waits_for = blocker or (retry if phase == "post_race" else None)
        if waits_for and not (phase == "pre_race" and weekend.race_start - now <= URGENT):
            add_reason(f"waits for {waits_for}")
            continue
        update = latest_update(weekend, phase, phase == "pre_race" or now - weekend.race_start <= EXPECTED_WITHIN)
        if update.version is None:
            add_reason(f"no usable data yet ({update.lacks})")
            continue
        stored = state.stored.get(weekend.key) if phase == "post_race" else None
        status = phase_status(attempts, update.version, stored, now)
        if status.state == "ready":
            schedule.request = schedule.request or RunRequest(weekend.key, phase, update.version)
            blocker = blocker or f"{phase} of {weekend.key}, requested now"
        elif status.state == "waiting":
            retry = retry or f"{phase} of {weekend.key}, which is retried"
        add_reason({"done": "up to date", "ready": "requested now"}.get(status.state, status.why))
    _schedule_next_prediction(state, schedule, blocker)
    return schedule


def candidates(state: WeekendState) -> list[Weekend]:
    """List the weekends to examine, in race order.

    These are weekends without results since the first stored race of the last stored season (older ones need a
    backfill), recent ones, whose results may be amended, those whose last run failed, and the next weekend.
    """
    stored = [weekend for weekend in state.weekends if weekend.key in state.stored]
    if not stored:
        return []
    since = next(weekend.race_start for weekend in stored if weekend.season == stored[-1].season)
    last_outcome = {attempt.weekend: attempt.outcome for attempt in reversed(state.attempts)
                    if attempt.phase == "post_race"}
    past = [weekend for weekend in state.weekends if since <= weekend.race_start <= state.now and (
        (weekend.key not in state.stored and weekend.planned == "scheduled")
        or state.now - weekend.race_start <= RECENT or last_outcome.get(weekend.key, "succeeded") != "succeeded")]
    future = [weekend for weekend in state.weekends if weekend.race_start > state.now]
    first = next((at for at, weekend in enumerate(future) if weekend.planned == "scheduled"), -1)
    return past + future[:first + 1]


def _why_not_now(weekend: Weekend, phase: Phase, state: WeekendState) -> str | None:
    """Why a weekend can't run now, whatever data the source has; None if it can."""
    if weekend.planned != "scheduled":
        return weekend.planned
    if weekend.key not in state.partitions:
        return ("in the calendar but not yet a partition: reload the code location (in the UI: Deployment, Reload)")
    if phase == "pre_race":
        qualifying = weekend.sessions.get("qualifying")
        end = qualifying + QUALIFYING_LASTS if qualifying else weekend.race_start - _QUALIFYING_BEFORE_RACE
        if state.now < end:
            return f"qualifying ends at {end:%Y-%m-%d %H:%M} UTC"
        if weekend.race_start - state.now < TOO_LATE:
            return "the race is about to start: too late for a forecast"
    return None


def _schedule_next_prediction(state: WeekendState, schedule: Schedule, blocker: str | None) -> None:
    """Predict the weekend after the last `post_race` success, unless predicted since or already raced."""
    success = next((attempt for attempt in state.attempts
                    if attempt.phase == "post_race" and attempt.outcome == "succeeded"), None)
    if success is None:
        return
    upcoming = next((weekend for weekend in state.weekends
                     if weekend.race_start > success.requested_at and weekend.planned == "scheduled"), None)
    later_attempts = state.attempts[:state.attempts.index(success)]
    if (upcoming is None or upcoming.race_start <= state.now or upcoming.key not in state.partitions
            or any(attempt.weekend == upcoming.key and attempt.outcome == "succeeded" for attempt in later_attempts)):
        return
    status = phase_status(state.attempts_at(upcoming.key, NEXT_PREDICTION), success.run_id, None, state.now)
    if status.state == "ready" and blocker is None:
        schedule.request = RunRequest(upcoming.key, NEXT_PREDICTION, success.run_id)
    why = status.why or (f"waits for {blocker}" if blocker else "requested now")
    schedule.reasons.append(f"{upcoming.key} {NEXT_PREDICTION}: {why}")
