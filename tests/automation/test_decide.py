"""The next requested run: in race order, once per version of the data, with a limited number of attempts."""
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from f1_pipelines.automation.attempts import LOST_AFTER, MAX_ATTEMPTS, WAITS, Attempt, phase_status
from f1_pipelines.automation.decide import RunRequest, WeekendState, decide
from f1_pipelines.automation.sensor_cursor import SensorCursor
from f1_pipelines.identity.weekends import known_weekends
from f1_pipelines.sources.base import SourceUnavailable
from f1_pipelines.sources.updates import SourceUpdate

WEEKENDS = known_weekends()
STORED = {weekend.key: "v1" for weekend in WEEKENDS if weekend.key < "2026" and weekend.planned == "scheduled"}
AFTER_CHINA = datetime(2026, 3, 16, 12, tzinfo=UTC)


def attempt(weekend: str, phase: str, outcome: str, requested_at: datetime = AFTER_CHINA, version: str | None = "v1",
            run_id: str = "0123456789") -> Attempt:
    return Attempt(run_id, weekend, phase, version, requested_at, outcome)


def state(now: datetime = AFTER_CHINA, stored: dict[str, str] | None = None, attempts: list[Attempt] | None = None,
          weekends=WEEKENDS, partitions=None) -> WeekendState:
    """State after the first two races of 2026, with results through 2025 stored; `attempts`: newest first."""
    return WeekendState(weekends, {**STORED, **(stored or {})}, attempts or [],
                        {weekend.key for weekend in weekends} if partitions is None else partitions, now)


def published(*weekends: str, version: str = "v1"):
    """A source that has data of these weekends."""
    return lambda weekend, phase, urgent: (
        SourceUpdate(version) if weekend.key in weekends else SourceUpdate(None, "no sheet yet"))


def reason_of(schedule, weekend: str) -> str:
    [reason] = [reason for reason in schedule.reasons if reason.startswith(weekend)]
    return reason


def test_the_first_race_comes_first_and_the_next_waits():
    schedule = decide(state(), published("2026-australia", "2026-china"))
    assert schedule.request == RunRequest("2026-australia", "post_race", "v1")
    assert "waits for post_race of 2026-australia, requested now" in reason_of(schedule, "2026-china")
    schedule = decide(state(stored={"2026-australia": "v1"}), published("2026-australia", "2026-china"))
    assert schedule.request == RunRequest("2026-china", "post_race", "v1")


def test_stored_and_succeeded_versions_are_not_requested_again():
    both = {"2026-australia": "v1", "2026-china": "v1"}
    assert decide(state(stored=both), published("2026-australia", "2026-china")).request is None
    # The source's version may differ from the stored one; the success for the source's version counts.
    success = [attempt("2026-china", "post_race", "succeeded", version="other", run_id="ran")]
    schedule = decide(state(stored=both, attempts=success), lambda weekend, phase, urgent: SourceUpdate(
        "other" if weekend.key == "2026-china" else "v1"))
    assert schedule.request == RunRequest("2026-japan", "next_prediction", "ran")
    assert reason_of(schedule, "2026-china").endswith("up to date")


def test_data_stored_by_a_failed_run_are_not_done():
    failed = [attempt("2026-china", "post_race", "failed", AFTER_CHINA - timedelta(days=1))]
    schedule = decide(state(stored={"2026-australia": "v1", "2026-china": "v1"}, attempts=failed),
                      published("2026-australia", "2026-china"))
    assert schedule.request == RunRequest("2026-china", "post_race", "v1")


def test_an_amended_result_is_requested_again_but_not_an_old_one():
    stored = {"2026-australia": "v1", "2026-china": "v1"}
    assert decide(state(stored=stored), published("2026-australia", version="v2")).request == RunRequest(
        "2026-australia", "post_race", "v2")
    later = state(datetime(2026, 4, 3, tzinfo=UTC), {**stored, "2026-japan": "v1"})
    assert decide(later, published("2026-australia", version="v2")).request is None


def test_a_sheet_that_is_amended_and_restored_runs_each_time():
    attempts = [attempt("2026-china", "post_race", "succeeded", version="v2"),
                attempt("2026-china", "post_race", "succeeded")]
    amended = state(stored={"2026-australia": "v1", "2026-china": "v2"}, attempts=attempts)
    schedule = decide(amended, published("2026-australia", "2026-china"))
    assert schedule.request == RunRequest("2026-china", "post_race", "v1")


def test_a_weekend_without_data_blocks_no_other():
    schedule = decide(state(), published("2026-china"))
    assert schedule.request == RunRequest("2026-china", "post_race", "v1")
    assert "no usable data yet (no sheet yet)" in reason_of(schedule, "2026-australia")


def test_a_failed_run_is_retried_with_growing_delays_and_then_given_up():
    attempts: list[Attempt] = []
    now, requested_after = AFTER_CHINA, []
    for _ in range(200):
        schedule = decide(state(now, {"2026-australia": "v1"}, attempts), published("2026-australia", "2026-china"))
        if schedule.request:
            attempts.insert(0, attempt("2026-china", schedule.request.phase, "failed", now))
            requested_after.append(now - AFTER_CHINA)
        now += timedelta(minutes=5)
    assert requested_after == [timedelta(0), WAITS[0], WAITS[0] + WAITS[1]]
    assert len(requested_after) == MAX_ATTEMPTS
    assert "GIVEN UP after 3 attempts, run 01234567 failed" in reason_of(schedule, "2026-china")
    # Another version of the data is run, and any success counts.
    given_up = state(now, {"2026-australia": "v1"}, attempts)
    schedule = decide(given_up, published("2026-china", version="v2"))
    assert schedule.request == RunRequest("2026-china", "post_race", "v2")
    succeeded = [attempt("2026-china", "post_race", "succeeded"), *attempts]
    assert reason_of(decide(state(now, {"2026-australia": "v1", "2026-china": "v1"}, succeeded),
                          published("2026-australia", "2026-china")), "2026-china").endswith("up to date")


def test_a_later_weekend_waits_only_until_the_earlier_one_is_given_up():
    failed = attempt("2026-australia", "post_race", "failed")
    source = published("2026-australia", "2026-china")
    schedule = decide(state(attempts=[failed]), source)
    assert schedule.request is None
    assert "attempt 2 of 3 at 2026-03-16 12:15 UTC" in reason_of(schedule, "2026-australia")
    assert "waits for post_race of 2026-australia, which is retried" in reason_of(schedule, "2026-china")
    assert decide(state(attempts=[failed] * 3), source).request == RunRequest("2026-china", "post_race", "v1")


def test_one_run_at_a_time_unless_a_race_is_about_to_start():
    running = [attempt("2026-australia", "post_race", "running", datetime(2026, 3, 15, 4, tzinfo=UTC))]
    source = published("2026-australia", "2026-china")
    schedule = decide(state(datetime(2026, 3, 15, 4, 30, tzinfo=UTC), attempts=running), source)
    assert schedule.request is None
    assert "waits for post_race of 2026-australia (run 01234567)" in reason_of(schedule, "2026-china pre_race")
    schedule = decide(state(datetime(2026, 3, 15, 5, 30, tzinfo=UTC), attempts=running), source)
    assert schedule.request == RunRequest("2026-china", "pre_race", "v1")


def test_a_run_without_a_process_counts_as_failed_after_three_hours():
    running = [attempt("2026-australia", "post_race", "running")]
    source = published("2026-australia", "2026-china")
    assert decide(state(AFTER_CHINA + LOST_AFTER - timedelta(minutes=1), attempts=running), source).request is None
    assert decide(state(AFTER_CHINA + LOST_AFTER, attempts=running), source).request == RunRequest(
        "2026-australia", "post_race", "v1")
    assert "was lost" in phase_status(running * 3, "v1", None, AFTER_CHINA + LOST_AFTER).why


@pytest.mark.parametrize(("time", "phase"), [
    ("2026-03-14T07:59:00+00:00", None), ("2026-03-14T08:00:00+00:00", "pre_race"),
    ("2026-03-15T06:54:00+00:00", "pre_race"), ("2026-03-15T06:56:00+00:00", None),
    ("2026-03-15T07:00:00+00:00", "post_race"),
])
def test_a_forecast_is_requested_between_qualifying_and_the_start(time, phase):
    schedule = decide(state(datetime.fromisoformat(time), {"2026-australia": "v1"}),
                      published("2026-australia", "2026-china"))
    assert schedule.request == (RunRequest("2026-china", phase, "v1") if phase else None)


def test_times_are_compared_across_utc_offsets():
    melbourne = datetime.fromisoformat("2026-03-14T19:00:00+11:00")
    schedule = decide(state(melbourne, {"2026-australia": "v1"}), published("2026-australia", "2026-china"))
    assert schedule.request == RunRequest("2026-china", "pre_race", "v1")


def test_the_next_weekend_is_predicted_once_after_every_update_of_the_ranker():
    stored = {"2026-australia": "v1", "2026-china": "v1"}
    learnt = attempt("2026-china", "post_race", "succeeded", run_id="learnt")
    source = published("2026-australia", "2026-china")
    assert decide(state(stored=stored, attempts=[learnt]), source).request == RunRequest(
        "2026-japan", "next_prediction", "learnt")
    predicted = attempt("2026-japan", "next_prediction", "succeeded", version="learnt")
    assert decide(state(stored=stored, attempts=[predicted, learnt]), source).request is None
    amended = attempt("2026-australia", "post_race", "succeeded", version="v2", run_id="amended")
    assert decide(state(stored=stored, attempts=[amended, predicted, learnt]), source).request == RunRequest(
        "2026-japan", "next_prediction", "amended")


def test_a_cancelled_race_is_skipped():
    stored = {"2026-australia": "v1", "2026-china": "v1", "2026-japan": "v1"}
    schedule = decide(state(datetime(2026, 4, 15, tzinfo=UTC), stored), published())
    assert reason_of(schedule, "2026-saudi-arabia").endswith("cancelled")
    assert "qualifying ends at 2026-05-02 21:00 UTC" in reason_of(schedule, "2026-miami")


def test_a_weekend_that_is_no_partition_yet_is_named_and_blocks_no_other():
    known = state(partitions={weekend.key for weekend in WEEKENDS} - {"2026-australia"})
    schedule = decide(known, published("2026-australia", "2026-china"))
    assert schedule.request == RunRequest("2026-china", "post_race", "v1")
    assert "reload the code location" in reason_of(schedule, "2026-australia")


def test_seasons_before_the_stored_ones_are_not_requested():
    known = replace(state(), stored={"2026-china": "v1"})
    assert decide(known, lambda weekend, phase, urgent: SourceUpdate("v1")).request is None
    assert decide(replace(known, stored={"2026-australia": "v1"}), published("2026-china")).request == RunRequest(
        "2026-china", "post_race", "v1")


class Source:
    """Returns an update, or is unavailable without one; counts its requests."""

    def __init__(self, update: SourceUpdate | None):
        self.requests, self.update = 0, update

    def __call__(self) -> SourceUpdate:
        self.requests += 1
        if self.update is None:
            raise SourceUnavailable("no answer")
        return self.update


@pytest.mark.parametrize(("update", "urgent", "requests_in_two_hours"), [
    (SourceUpdate(None), True, 24), (SourceUpdate(None), False, 2), (SourceUpdate("v1"), True, 2)])
def test_a_source_is_asked_often_only_for_an_urgent_missing_update(update, urgent, requests_in_two_hours):
    cursor, source = SensorCursor(), Source(update)
    for minute in range(120):
        cursor.latest_update("2026-china post_race", AFTER_CHINA + timedelta(minutes=minute), urgent, source)
        cursor = SensorCursor.of(cursor.to_json())
    assert source.requests == requests_in_two_hours


def test_an_outage_is_reported_and_stops_requests_in_its_tick():
    cursor, source = SensorCursor(), Source(None)
    assert cursor.latest_update("2026-australia post_race", AFTER_CHINA, True, source).version is None
    assert cursor.latest_update("2026-china post_race", AFTER_CHINA, True, source).version is None
    assert (source.requests, cursor.outage) == (1, "no answer")
    later, source = SensorCursor.of(cursor.to_json()), Source(SourceUpdate("v1"))
    assert later.latest_update("2026-china post_race", AFTER_CHINA, True, source).version == "v1"


@pytest.mark.parametrize("cursor", [None, "", "no json", "[]", '{"updates": 3}',
                                    '{"updates": {"x": ["yesterday", 1, 2]}}'])
def test_a_lost_or_unreadable_cursor_becomes_an_empty_one(cursor):
    assert SensorCursor.of(cursor) == SensorCursor()


def test_a_clock_that_was_ahead_does_not_stop_requests():
    cursor, source = SensorCursor(), Source(SourceUpdate(None))
    cursor.latest_update("2026-china post_race", AFTER_CHINA + timedelta(days=400), True, source)
    cursor.latest_update("2026-china post_race", AFTER_CHINA, True, source)
    assert source.requests == 2
