"""The embedded calendar overlaid with a source's: nothing is lost, states follow the clock and the results."""
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pandas as pd
import pytest

from f1_pipelines.identity.weekends import add_refreshed, known_weekends, season_weekends, weekend, weekend_of_round
from f1_pipelines.sources.calendar import (
    calendar_rows,
    calendar_updates,
    moved_starts,
    overlay,
    to_weekends,
    with_states,
)

NOW = datetime(2026, 4, 12, 18, 0, tzinfo=UTC)


@pytest.fixture
def known() -> pd.DataFrame:
    return calendar_rows(season_weekends(2026), NOW)


def states(calendar: pd.DataFrame, finished: set[str], now: datetime) -> dict[str, str]:
    return with_states(calendar, finished, now).set_index("weekend")["state"].to_dict()


def test_a_cancelled_weekend_stays_and_stays_cancelled(known):
    """Saudi Arabia 2026 was on the calendar for 19 April and was not run."""
    assert states(known, set(), datetime(2026, 4, 19, 18, 0, tzinfo=UTC))["2026-saudi-arabia"] == "cancelled"
    assert pd.isna(known.set_index("weekend").loc["2026-saudi-arabia", "round"])


def test_a_schedule_from_before_the_cancellation_makes_no_race_of_it(known):
    """An old copy still lists it: it is overdue after its time, and never done."""
    saudi = known["weekend"] == "2026-saudi-arabia"
    merged = overlay(known, known.assign(state=known["state"].mask(saudi, "upcoming")), NOW)
    for hour, state in ((16, "upcoming"), (18, "live"), (22, "overdue")):
        assert states(merged, set(), datetime(2026, 4, 19, hour, tzinfo=UTC))["2026-saudi-arabia"] == state


def test_a_race_start_a_day_early_is_reported_and_never_done():
    """Las Vegas 2025 starts on 23 November at 04:00 UTC; a local date with a UTC time makes it a day earlier."""
    known = calendar_rows(season_weekends(2025), NOW)
    vegas = known["weekend"] == "2025-las-vegas"
    fetched = known.assign(race_start=known["race_start"].mask(vegas, pd.Timestamp("2025-11-22T04:00Z")))
    assert moved_starts(known, fetched) == [
        "2025-las-vegas: known start 2025-11-23 04:00 UTC, start in the source 2025-11-22 04:00 UTC"]
    saturday = datetime(2025, 11, 22, 9, tzinfo=UTC)
    assert states(overlay(known, fetched, saturday), set(), saturday)["2025-las-vegas"] == "overdue"


def test_a_race_is_done_by_its_results_never_by_the_clock(known):
    finish = datetime(2026, 3, 8, 8, 0, tzinfo=UTC)
    before, during = datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 3, 8, 5, 0, tzinfo=UTC)
    assert states(known, set(), before)["2026-australia"] == "upcoming"
    assert states(known, set(), during)["2026-australia"] == "live"
    assert states(known, set(), finish.replace(hour=9))["2026-australia"] == "overdue"
    assert states(known, {"2026-australia"}, finish)["2026-australia"] == "done"
    assert states(known.assign(state="done"), set(), finish.replace(hour=9))["2026-australia"] == "overdue"


def test_a_shorter_schedule_removes_nothing(known):
    merged = overlay(known, known.tail(3), NOW)
    assert set(merged["weekend"]) == set(known["weekend"])


def test_a_moved_start_is_used_and_reported(known):
    """São Paulo 2024: qualifying moved to Sunday morning, the race 90 minutes earlier, published the evening before."""
    monday = pd.Timestamp("2026-06-08T13:00Z")
    moved = known.assign(race_start=known["race_start"].mask(known["weekend"] == "2026-monaco", monday))
    assert overlay(known, moved, NOW).set_index("weekend").loc["2026-monaco", "race_start"] == monday
    assert [line.split(":")[0] for line in moved_starts(known, moved)] == ["2026-monaco"]


def test_a_weekend_that_only_the_source_has_is_added_to_the_refreshed_calendar(known, tmp_path):
    rwanda = known[known["weekend"] == "2026-qatar"].assign(
        weekend="2026-rwanda", round=24, event_name="Rwanda Grand Prix", circuit="bugesera", layout="bugesera-1",
        race_start=pd.Timestamp("2026-12-13T13:00Z"))
    merged = overlay(known, rwanda, NOW)
    file = tmp_path / "calendar.csv"
    add_refreshed(file, calendar_updates(known_weekends(), merged, NOW))
    assert [w.key for w in known_weekends(file)][-1] == "2026-rwanda"
    assert len(known_weekends(file)) == len(known_weekends()) + 1


def test_a_moved_future_session_is_an_update_and_a_past_race_keeps_its_reviewed_start(known, tmp_path):
    """2026 Miami: three hours earlier, published on the day."""
    file, miami = tmp_path / "calendar.csv", "2026-miami"
    earlier = known["race_start"].mask(known["weekend"] == miami, pd.Timestamp("2026-05-03T14:00Z"))
    fetched = known.assign(race_start=earlier, qualifying_start=known["qualifying_start"] + timedelta(hours=1))
    race_day = datetime(2026, 5, 3, 12, tzinfo=UTC)
    add_refreshed(file, calendar_updates(known_weekends(), overlay(known, fetched, NOW), race_day))
    assert weekend(miami, file).race_start == datetime(2026, 5, 3, 14, tzinfo=UTC)
    assert weekend("2026-monaco", file).sessions["qualifying"] - weekend("2026-monaco").sessions["qualifying"] == \
        timedelta(hours=1)
    assert weekend("2026-australia", file) == weekend("2026-australia")
    assert calendar_updates(known_weekends(file), overlay(known, fetched, NOW), race_day) == []


def test_a_round_that_moved_to_another_weekend_is_unique(known, tmp_path):
    """A race is cancelled and later ones move up, while the refreshed calendar has an earlier correction of it."""
    file = tmp_path / "calendar.csv"
    add_refreshed(file, [replace(weekend("2026-monaco"), race_laps=77)])
    renumbered = known[known["round"] > 6].assign(round=known["round"] - 1)
    merged = overlay(known, renumbered, NOW)
    assert not merged.dropna(subset="round").duplicated(["season", "round"]).any()
    add_refreshed(file, calendar_updates(known_weekends(file), merged, NOW))
    assert weekend_of_round(2026, 6, file).key == "2026-barcelona-catalunya"
    assert weekend("2026-monaco", file).round is None


def test_a_weekend_that_the_source_cancels_loses_its_round(known, tmp_path):
    """The source still lists it, without a round, and later rounds are one less."""
    fetched = known[known["round"].isna() | (known["round"] >= 16)].copy()
    bahrain = fetched["weekend"] == "2026-bahrain"
    fetched["round"] = (fetched["round"] - 1).mask(bahrain)
    merged = overlay(known, fetched.assign(state=fetched["state"].mask(bahrain, "cancelled")), NOW)
    rounds = merged.set_index("weekend")["round"]
    assert pd.isna(rounds["2026-bahrain"]) and rounds["2026-singapore"] == 16
    add_refreshed(tmp_path / "f1.calendar.csv", calendar_updates(known_weekends(), merged, NOW))
    assert weekend("2026-bahrain", tmp_path / "f1.calendar.csv").planned == "cancelled"


def test_a_renumbered_round_keeps_its_key(known):
    merged = overlay(known, known.assign(round=known["round"] + 1), NOW).set_index("weekend")
    assert merged.loc["2026-monaco", "round"] == known.set_index("weekend").loc["2026-monaco", "round"] + 1


def test_a_changed_format_drops_sessions_that_are_no_longer_held(known):
    """A conventional weekend that becomes a sprint loses second and third practice."""
    fetched = known[known["weekend"] == "2026-monaco"].assign(format="sprint_qualifying", practice_2_start=pd.NaT,
                                                              practice_3_start=pd.NaT)
    merged = overlay(known, fetched, NOW)
    row = merged.set_index("weekend").loc["2026-monaco"]
    assert pd.isna(row["practice_2_start"])
    assert pd.isna(row["practice_3_start"])
    assert [w.format for w in to_weekends(merged) if w.key == "2026-monaco"] == ["sprint_qualifying"]


def test_a_race_that_is_over_keeps_its_reviewed_starts(known):
    """FastF1's starts before a clock change are an hour off, for example 2023-australia."""
    an_hour_off = known.assign(practice_1_start=known["practice_1_start"] + pd.Timedelta(hours=1))
    merged, reviewed, fetched = (frame.set_index("weekend")["practice_1_start"]
                                 for frame in (overlay(known, an_hour_off, NOW), known, an_hour_off))
    assert merged["2026-australia"] == reviewed["2026-australia"]
    assert merged["2026-monaco"] == fetched["2026-monaco"]


def test_a_race_postponed_on_the_day_takes_its_new_start(known):
    fetched = known.assign(race_start=known["race_start"].mask(
        known["weekend"] == "2026-australia", pd.Timestamp("2026-04-13T05:00Z")))
    assert overlay(known, fetched, NOW).set_index("weekend").loc["2026-australia", "race_start"] > NOW
