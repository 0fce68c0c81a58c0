"""Which weekend is to be run next, in which phase, and why not the others."""
from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from f1_pipelines.automation.attempts import Attempt, is_running, phase_status, short
from f1_pipelines.identity.weekends import Weekend
from f1_pipelines.sources.updates import Phase, SourceUpdate

NEXT_PREDICTION = "next_prediction"
PHASES = ("pre_race", "post_race", NEXT_PREDICTION)
QUALIFYING_LASTS = timedelta(hours=1)
# Without a start of qualifying in the calendar: from then on it may be over.
_QUALIFYING_BEFORE_RACE = timedelta(hours=22)
# Results are amended for days: so long a stored one is looked at again.
RECENT = timedelta(days=14)
# Somebody waits for the result: so long after the race it is asked for often.
EXPECTED_WITHIN = timedelta(days=2)
# A forecast is worthless once the race is on: so long before it, it waits for no other run, and the last minutes are
# too short for one.
URGENT, TOO_LATE = timedelta(hours=2), timedelta(minutes=5)


@dataclass(frozen=True)
class RunRequest:
    """A run to ask for: once for each version of a weekend's data."""

    weekend: str
    phase: str
    version: str


@dataclass
class Schedule:
    """What a tick comes to: one run at most, and a sentence for each weekend that is not run though it might be."""

    ask: RunRequest | None = None
    reasons: list[str] = field(default_factory=list)
    looked_at: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class WeekendState:
    """What a decision goes by.

    `weekends`: by race start. `stored`: version (`content_hash`) of the official results in the warehouse, by weekend.
    `tries`: our runs, the newest first. `partitions`: weekends that can be run by the code as loaded.
    """

    weekends: Sequence[Weekend]
    stored: Mapping[str, str]
    tries: Sequence[Attempt]
    partitions: Collection[str]
    now: datetime

    def of(self, weekend: str, *phases: str) -> list[Attempt]:
        return [one for one in self.tries if one.weekend == weekend and one.phase in phases]


def decide(known: WeekendState, news: Callable[[Weekend, Phase, bool], SourceUpdate]) -> Schedule:
    """The first weekend in race order that something is to be done about.

    One run at a time: each learns from the one before. A later weekend waits for an earlier one that is under way or
    will be tried again, not for one that was given up or has no data. Before a race, the forecast waits for runs that
    are under way and, from `URGENT` on, for nothing.

    Args:
        known: The state of things.
        news: Asks what the source has of a phase of a weekend; the last argument says that it may come any moment.
    """
    decision, now = Schedule(), known.now
    under_way = next((one for one in known.tries if is_running(one, now)), None)
    blocking = f"{under_way.phase} of {under_way.weekend} (run {short(under_way)})" if under_way else None
    retried = None
    for weekend in candidates(known):
        phase: Phase = "post_race" if weekend.race_start <= now else "pre_race"
        decision.looked_at.append(f"{weekend.key} {phase}")

        def say(why: str, weekend: Weekend = weekend, phase: str = phase) -> None:
            decision.reasons.append(f"{weekend.key} {phase}: {why}")

        if why := _not_now(weekend, phase, known):
            say(why)
            continue
        own = known.of(weekend.key, phase)
        if under_way in own:
            say(f"run {short(under_way)} is on it")
            continue
        waits_for = blocking or (retried if phase == "post_race" else None)
        if waits_for and not (phase == "pre_race" and weekend.race_start - now <= URGENT):
            say(f"waits for {waits_for}")
            continue
        update = news(weekend, phase, phase == "pre_race" or now - weekend.race_start <= EXPECTED_WITHIN)
        if update.version is None:
            say(f"nothing to go by yet ({update.lacks})")
            continue
        status = phase_status(own, update.version, known.stored.get(weekend.key) if phase == "post_race" else None, now)
        if status.state == "ready":
            decision.ask = decision.ask or RunRequest(weekend.key, phase, update.version)
            blocking = blocking or f"{phase} of {weekend.key}, asked for now"
        elif status.state == "waiting":
            retried = retried or f"{phase} of {weekend.key}, which is tried again"
        say({"done": "up to date", "ready": "asked for now"}.get(status.state, status.why))
    _next_prediction(known, decision, blocking)
    return decision


def candidates(known: WeekendState) -> list[Weekend]:
    """Weekends to look at, in race order.

    Those without results since the first stored ones of the last stored season (what is older is a backfill, and a
    person's), the recent ones, which may be amended, those whose last run failed, and the next one to come.
    """
    stored = [weekend for weekend in known.weekends if weekend.key in known.stored]
    if not stored:
        return []
    since = next(weekend.race_start for weekend in stored if weekend.season == stored[-1].season)
    last = {one.weekend: one.outcome for one in reversed(known.tries) if one.phase == "post_race"}
    past = [weekend for weekend in known.weekends if since <= weekend.race_start <= known.now and (
        (weekend.key not in known.stored and weekend.planned == "scheduled")
        or known.now - weekend.race_start <= RECENT or last.get(weekend.key, "succeeded") != "succeeded")]
    coming = [weekend for weekend in known.weekends if weekend.race_start > known.now]
    first = next((at for at, weekend in enumerate(coming) if weekend.planned == "scheduled"), -1)
    return past + coming[:first + 1]


def _not_now(weekend: Weekend, phase: Phase, known: WeekendState) -> str | None:
    """Why a weekend is out of the question, whatever the source has."""
    if weekend.planned != "scheduled":
        return weekend.planned
    if weekend.key not in known.partitions:
        return ("the calendar has it and the loaded code does not: reload the code location (in the UI: Deployment, "
                "Reload), which makes it a partition")
    if phase == "pre_race":
        qualifying = weekend.sessions.get("qualifying")
        over_at = qualifying + QUALIFYING_LASTS if qualifying else weekend.race_start - _QUALIFYING_BEFORE_RACE
        if known.now < over_at:
            return f"qualifying is over at {over_at:%Y-%m-%d %H:%M} UTC"
        if weekend.race_start - known.now < TOO_LATE:
            return "the race is about to begin: too late for a forecast"
    return None


def _next_prediction(known: WeekendState, decision: Schedule, blocking: str | None) -> None:
    """Predict the weekend that was next when `post_race` last succeeded, unless it was predicted since or has begun."""
    learnt = next((one for one in known.tries if one.phase == "post_race" and one.outcome == "succeeded"), None)
    if learnt is None:
        return
    coming = next((weekend for weekend in known.weekends
                   if weekend.race_start > learnt.asked_at and weekend.planned == "scheduled"), None)
    since = known.tries[:known.tries.index(learnt)]
    if (coming is None or coming.race_start <= known.now or coming.key not in known.partitions
            or any(one.weekend == coming.key and one.outcome == "succeeded" for one in since)):
        return
    status = phase_status(known.of(coming.key, NEXT_PREDICTION), learnt.run_id, None, known.now)
    if status.state == "ready" and blocking is None:
        decision.ask = RunRequest(coming.key, NEXT_PREDICTION, learnt.run_id)
    why = status.why or (f"waits for {blocking}" if blocking else "asked for now")
    decision.reasons.append(f"{coming.key} {NEXT_PREDICTION}: {why}")
