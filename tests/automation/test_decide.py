"""What is asked for next: in race order, once for each version of the data, with bounded patience."""
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


def tried(weekend: str, phase: str, outcome: str, asked_at: datetime = AFTER_CHINA, version: str | None = "v1",
          run_id: str = "0123456789") -> Attempt:
    return Attempt(run_id, weekend, phase, version, asked_at, outcome)


def state(now: datetime = AFTER_CHINA, stored: dict[str, str] | None = None, tries: list[Attempt] | None = None,
          weekends=WEEKENDS, partitions=None) -> WeekendState:
    """After the first two races of 2026, those of 2025 and before stored; `tries`: the newest first."""
    return WeekendState(weekends, {**STORED, **(stored or {})}, tries or [],
                        {weekend.key for weekend in weekends} if partitions is None else partitions, now)


def out(*weekends: str, version: str = "v1"):
    """A source that has what is due of these weekends."""
    return lambda weekend, phase, soon: (
        SourceUpdate(version) if weekend.key in weekends else SourceUpdate(None, "no sheet yet"))


def because(decision, weekend: str) -> str:
    [why] = [reason for reason in decision.reasons if reason.startswith(weekend)]
    return why


def test_the_first_race_comes_first_and_the_next_waits():
    decision = decide(state(), out("2026-australia", "2026-china"))
    assert decision.ask == RunRequest("2026-australia", "post_race", "v1")
    assert "waits for post_race of 2026-australia, asked for now" in because(decision, "2026-china")
    decision = decide(state(stored={"2026-australia": "v1"}), out("2026-australia", "2026-china"))
    assert decision.ask == RunRequest("2026-china", "post_race", "v1")


def test_what_is_stored_or_ran_is_not_asked_for_again():
    both = {"2026-australia": "v1", "2026-china": "v1"}
    assert decide(state(stored=both), out("2026-australia", "2026-china")).ask is None
    # The source's version of a stored result may be another than ours; that it ran for this one is what counts.
    ran = [tried("2026-china", "post_race", "succeeded", version="other", run_id="ran")]
    decision = decide(state(stored=both, tries=ran), lambda weekend, phase, soon: SourceUpdate(
        "other" if weekend.key == "2026-china" else "v1"))
    assert decision.ask == RunRequest("2026-japan", "next_prediction", "ran")
    assert because(decision, "2026-china").endswith("up to date")


def test_what_a_failed_run_has_stored_is_not_done():
    failed = [tried("2026-china", "post_race", "failed", AFTER_CHINA - timedelta(days=1))]
    decision = decide(state(stored={"2026-australia": "v1", "2026-china": "v1"}, tries=failed),
                      out("2026-australia", "2026-china"))
    assert decision.ask == RunRequest("2026-china", "post_race", "v1")


def test_an_amended_result_is_asked_for_again_but_not_an_old_one():
    stored = {"2026-australia": "v1", "2026-china": "v1"}
    assert decide(state(stored=stored), out("2026-australia", version="v2")).ask == RunRequest(
        "2026-australia", "post_race", "v2")
    later = state(datetime(2026, 4, 3, tzinfo=UTC), {**stored, "2026-japan": "v1"})
    assert decide(later, out("2026-australia", version="v2")).ask is None


def test_a_sheet_that_is_amended_and_restored_runs_each_time():
    tries = [tried("2026-china", "post_race", "succeeded", version="v2"), tried("2026-china", "post_race", "succeeded")]
    known = state(stored={"2026-australia": "v1", "2026-china": "v2"}, tries=tries)
    assert decide(known, out("2026-australia", "2026-china")).ask == RunRequest("2026-china", "post_race", "v1")


def test_a_weekend_without_data_holds_nobody_up():
    decision = decide(state(), out("2026-china"))
    assert decision.ask == RunRequest("2026-china", "post_race", "v1")
    assert "nothing to go by yet (no sheet yet)" in because(decision, "2026-australia")


def test_a_failed_run_is_tried_again_with_growing_waits_and_then_given_up():
    tries: list[Attempt] = []
    at, asked = AFTER_CHINA, []
    for _ in range(200):
        decision = decide(state(at, {"2026-australia": "v1"}, tries), out("2026-australia", "2026-china"))
        if decision.ask:
            tries.insert(0, tried("2026-china", decision.ask.phase, "failed", at))
            asked.append(at - AFTER_CHINA)
        at += timedelta(minutes=5)
    assert asked == [timedelta(0), WAITS[0], WAITS[0] + WAITS[1]]
    assert len(asked) == MAX_ATTEMPTS
    assert "GIVEN UP after 3 tries, run 01234567 failed" in because(decision, "2026-china")
    # Other data are another matter, and so is a success of whoever ran it.
    again = state(at, {"2026-australia": "v1"}, tries)
    assert decide(again, out("2026-china", version="v2")).ask == RunRequest("2026-china", "post_race", "v2")
    mended = [tried("2026-china", "post_race", "succeeded"), *tries]
    assert because(decide(state(at, {"2026-australia": "v1", "2026-china": "v1"}, mended),
                          out("2026-australia", "2026-china")), "2026-china").endswith("up to date")


def test_a_later_weekend_waits_for_the_tries_of_the_earlier_one_and_no_longer():
    failed = tried("2026-australia", "post_race", "failed")
    news = out("2026-australia", "2026-china")
    decision = decide(state(tries=[failed]), news)
    assert decision.ask is None
    assert "try 2 of 3 at 2026-03-16 12:15 UTC" in because(decision, "2026-australia")
    assert "waits for post_race of 2026-australia, which is tried again" in because(decision, "2026-china")
    assert decide(state(tries=[failed] * 3), news).ask == RunRequest("2026-china", "post_race", "v1")


def test_nothing_runs_beside_another_run_unless_a_race_is_about_to_start():
    running = [tried("2026-australia", "post_race", "running", datetime(2026, 3, 15, 4, tzinfo=UTC))]
    news = out("2026-australia", "2026-china")
    decision = decide(state(datetime(2026, 3, 15, 4, 30, tzinfo=UTC), tries=running), news)
    assert decision.ask is None
    assert "waits for post_race of 2026-australia (run 01234567)" in because(decision, "2026-china pre_race")
    decision = decide(state(datetime(2026, 3, 15, 5, 30, tzinfo=UTC), tries=running), news)
    assert decision.ask == RunRequest("2026-china", "pre_race", "v1")


def test_a_run_whose_process_is_gone_counts_as_failed_after_a_while():
    running = [tried("2026-australia", "post_race", "running")]
    news = out("2026-australia", "2026-china")
    assert decide(state(AFTER_CHINA + LOST_AFTER - timedelta(minutes=1), tries=running), news).ask is None
    assert decide(state(AFTER_CHINA + LOST_AFTER, tries=running), news).ask == RunRequest(
        "2026-australia", "post_race", "v1")
    assert "was lost" in phase_status(running * 3, "v1", None, AFTER_CHINA + LOST_AFTER).why


@pytest.mark.parametrize(("at", "asks"), [
    ("2026-03-14T07:59:00+00:00", None), ("2026-03-14T08:00:00+00:00", "pre_race"),
    ("2026-03-15T06:54:00+00:00", "pre_race"), ("2026-03-15T06:56:00+00:00", None),
    ("2026-03-15T07:00:00+00:00", "post_race"),
])
def test_a_forecast_is_made_between_qualifying_and_the_start(at, asks):
    decision = decide(state(datetime.fromisoformat(at), {"2026-australia": "v1"}), out("2026-australia", "2026-china"))
    assert decision.ask == (RunRequest("2026-china", asks, "v1") if asks else None)


def test_instants_are_compared_whatever_their_offset():
    melbourne = datetime.fromisoformat("2026-03-14T19:00:00+11:00")
    assert decide(state(melbourne, {"2026-australia": "v1"}), out("2026-australia", "2026-china")).ask == RunRequest(
        "2026-china", "pre_race", "v1")


def test_after_every_learning_the_next_weekend_is_predicted_once():
    stored = {"2026-australia": "v1", "2026-china": "v1"}
    learnt = tried("2026-china", "post_race", "succeeded", run_id="learnt")
    news = out("2026-australia", "2026-china")
    assert decide(state(stored=stored, tries=[learnt]), news).ask == RunRequest("2026-japan", "next_prediction",
                                                                                "learnt")
    predicted = tried("2026-japan", "next_prediction", "succeeded", version="learnt")
    assert decide(state(stored=stored, tries=[predicted, learnt]), news).ask is None
    amended = tried("2026-australia", "post_race", "succeeded", version="v2", run_id="amended")
    assert decide(state(stored=stored, tries=[amended, predicted, learnt]), news).ask == RunRequest(
        "2026-japan", "next_prediction", "amended")


def test_a_cancelled_race_is_passed_over_and_the_one_after_it_is_next():
    moment = datetime(2026, 4, 15, tzinfo=UTC)
    stored = {"2026-australia": "v1", "2026-china": "v1", "2026-japan": "v1"}
    decision = decide(state(moment, stored), out())
    assert because(decision, "2026-saudi-arabia").endswith("cancelled")
    assert "qualifying is over at 2026-05-02 21:00 UTC" in because(decision, "2026-miami")


def test_a_weekend_that_is_no_partition_yet_is_named_and_holds_nobody_up():
    known = state(partitions={weekend.key for weekend in WEEKENDS} - {"2026-australia"})
    decision = decide(known, out("2026-australia", "2026-china"))
    assert decision.ask == RunRequest("2026-china", "post_race", "v1")
    assert "reload the code location" in because(decision, "2026-australia")


def test_years_that_nobody_loaded_stay_a_backfill():
    known = replace(state(), stored={"2026-china": "v1"})
    assert decide(known, lambda weekend, phase, soon: SourceUpdate("v1")).ask is None
    assert decide(replace(known, stored={"2026-australia": "v1"}), out("2026-china")).ask == RunRequest(
        "2026-china", "post_race", "v1")


class Source:
    """Answers, or does not, and counts."""

    def __init__(self, news: SourceUpdate | None):
        self.asked, self.told = 0, news

    def __call__(self) -> SourceUpdate:
        self.asked += 1
        if self.told is None:
            raise SourceUnavailable("nobody answers")
        return self.told


def test_a_source_is_asked_often_only_while_something_may_come():
    for news, soon, hours, asked in ((SourceUpdate(None), True, 2, 24), (SourceUpdate(None), False, 2, 2),
                                     (SourceUpdate("v1"), True, 2, 2)):
        memory, source = SensorCursor(), Source(news)
        for minute in range(60 * hours):
            memory.news("2026-china post_race", AFTER_CHINA + timedelta(minutes=minute), soon, source)
            memory = SensorCursor.of(memory.cursor())
        assert source.asked == asked, (news, soon)


def test_an_outage_is_told_and_asks_nobody_else_in_that_tick():
    memory, source = SensorCursor(), Source(None)
    assert memory.news("2026-australia post_race", AFTER_CHINA, True, source).version is None
    assert memory.news("2026-china post_race", AFTER_CHINA, True, source).version is None
    assert (source.asked, memory.outage) == (1, "nobody answers")
    after = SensorCursor.of(memory.cursor())
    assert after.news("2026-china post_race", AFTER_CHINA, True, Source(SourceUpdate("v1"))).version == "v1"


@pytest.mark.parametrize("cursor", [None, "", "no json", "[]", '{"told": 3}', '{"told": {"x": ["yesterday", 1, 2]}}'])
def test_a_cursor_that_is_lost_or_spoilt_costs_a_question_only(cursor):
    assert SensorCursor.of(cursor) == SensorCursor()


def test_a_clock_that_was_ahead_does_not_silence_the_sensor():
    memory, source = SensorCursor(), Source(SourceUpdate(None))
    memory.news("2026-china post_race", AFTER_CHINA + timedelta(days=400), True, source)
    memory.news("2026-china post_race", AFTER_CHINA, True, source)
    assert source.asked == 2
