"""Events are matched by round, date and place, never by name; sessions by name, never by slot."""
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from f1_pipelines.identity.weekends import season_weekends, weekend
from f1_pipelines.sources.base import SourceUnavailable
from f1_pipelines.sources.fastf1_source import loading, schedule

pytestmark = pytest.mark.xdist_group("fastf1-0")
SEASONS = range(2018, 2027)
NOW = datetime(2026, 11, 29, tzinfo=UTC)


@pytest.fixture(scope="module")
def schedules(replay):
    return {season: loading.load_schedule(season) for season in SEASONS}


def keys(events, weekends, season):
    return [row["weekend"] for row in schedule.calendar_rows(events, season, weekends, NOW)]


@pytest.mark.parametrize("season", SEASONS)
def test_every_event_is_one_of_our_weekends(schedules, season):
    held = [w.key for w in season_weekends(season) if w.planned != "cancelled"]
    assert sorted(keys(schedules[season], season_weekends(season), season)) == sorted(held)


def test_the_calendar_is_a_valid_table(source):
    rows = source.calendar([2020, 2024]).set_index("weekend")
    assert len(rows) == 17 + 24
    assert rows.loc["2024-sao-paulo", "format"] == "sprint_qualifying"
    assert rows.loc["2024-las-vegas", "race_start"] == datetime(2024, 11, 24, 6, tzinfo=UTC)


def test_an_empty_slot_shifts_nothing(source):
    imola = source.calendar([2020]).set_index("weekend").loc["2020-emilia-romagna"]
    assert imola[["practice_2_start", "practice_3_start"]].isna().all()
    assert imola["qualifying_start"] == datetime(2020, 10, 31, 13, tzinfo=UTC)


def test_a_name_moves_to_another_track(source):
    rows = source.calendar([2026]).set_index("weekend")
    assert rows.loc["2026-spain", ["circuit", "event_name"]].tolist() == ["madring", "Spanish Grand Prix"]
    assert rows.loc["2026-barcelona-catalunya", ["circuit", "event_name"]].tolist() == [
        "catalunya", "Barcelona Grand Prix"]


def test_a_sprint_weekend_of_2021_has_no_sprint_qualifying(source):
    british = source.calendar([2021]).set_index("weekend").loc["2021-great-britain"]
    assert british["sprint_start"] == datetime(2021, 7, 17, 15, 30, tzinfo=UTC)
    assert british[["sprint_qualifying_start", "practice_3_start"]].isna().all()


def test_renumbered_rounds_are_found_by_date(schedules):
    moved = schedules[2024].copy()
    moved["RoundNumber"] += 1
    assert keys(moved, season_weekends(2024), 2024) == keys(schedules[2024], season_weekends(2024), 2024)


def test_a_moved_race_is_found_by_its_place(schedules):
    weekends = [w for w in season_weekends(2024) if w.key != "2024-monaco"]
    moved = replace(weekend("2024-monaco"), round=None, sessions={"race": datetime(2024, 12, 20, tzinfo=UTC)})
    assert "2024-monaco" in keys(schedules[2024], [*weekends, moved], 2024)


def test_twin_races_stay_apart(schedules):
    events = schedule.events_by_weekend(schedules[2020], season_weekends(2020))
    assert events["2020-austria"]["EventName"] == "Austrian Grand Prix"
    assert events["2020-styria"]["EventName"] == "Styrian Grand Prix"


def test_an_unknown_event_becomes_a_weekend(schedules):
    known = [w for w in season_weekends(2026) if w.key != "2026-barcelona-catalunya"]
    rows = {row["weekend"]: row for row in schedule.calendar_rows(schedules[2026], 2026, known, NOW)}
    assert set(rows) - {w.key for w in known} == {"2026-barcelona"}
    assert rows["2026-barcelona"]["circuit"] == "barcelona"  # circuits.csv has Montmeló as its place


def test_a_partial_schedule_gives_partial_rows(schedules):
    assert len(keys(schedules[2024].iloc[9:], season_weekends(2024), 2024)) == 15


def test_a_weekend_that_the_schedule_lacks_is_refused(source, monkeypatch, schedules):
    monkeypatch.setattr(loading, "load_schedule", lambda season: schedules[season].iloc[9:])
    [refusal] = source.laps([weekend("2024-bahrain")]).refused
    assert "does not list this weekend" in refusal.reason


def test_a_session_in_the_future_is_refused_without_a_request(replay, source_at):
    source = source_at(now=datetime(2026, 12, 4, 10, tzinfo=UTC))
    requests = len(replay.adapter.served) + len(replay.adapter.refused)
    for fetch in (source.laps, source.results):
        refused = fetch([weekend("2026-abu-dhabi")]).refused
        assert [(r.reason, r.retry) for r in refused] == [
            ("has not been held yet (starts 2026-12-06 13:00 UTC)", True)]
    assert len(replay.adapter.served) + len(replay.adapter.refused) == requests


@pytest.mark.parametrize(("hour", "not_yet"), [
    (9, {"qualifying", "race"}), (13, {"race"}), (18, set())])
def test_on_a_sunday_with_qualifying_and_race_each_waits_for_its_own_start(replay, source_at, hour, not_yet):
    source, sao_paulo = source_at(now=datetime(2024, 11, 3, hour, tzinfo=UTC)), [weekend("2024-sao-paulo")]
    refused = [*source.qualifying(sao_paulo).refused, *source.results(sao_paulo).refused]
    assert {r.session for r in refused if "has not been held yet" in r.reason} == not_yet
    assert all(r.retry for r in refused)


def test_a_cancelled_weekend_is_refused_as_expected(source):
    assert [(r.session, r.expected) for r in source.laps([weekend("2026-saudi-arabia")]).refused] == [("race", True)]


def test_missing_data_are_retried_for_a_week(replay, source_at):
    def retry(now):
        return {r.session: r.retry for r in source_at(now=now).practice([weekend("2026-qatar")]).refused}

    assert retry(datetime(2026, 11, 29, tzinfo=UTC)) == {"practice_1": True, "practice_2": True, "practice_3": True}
    assert retry(datetime(2026, 12, 30, tzinfo=UTC)) == {"practice_1": False, "practice_2": False, "practice_3": False}


def test_a_session_loaded_too_early_is_removed_from_the_cache(replay, source_at):
    now = datetime(2025, 3, 16, 9, tzinfo=UTC)  # 2025-australia is recorded with driver list and status, without timing
    [refusal] = source_at(now=now).laps([weekend("2025-australia")]).refused
    assert refusal.retry
    assert list(replay.cache_dir.glob("2025/*Australian*/*Race/*.ff1pkl")) == []


def test_no_schedule_from_any_server(replay_tool, source_at, tmp_path):
    (tmp_path / "empty").mkdir()
    with replay_tool.install(http_dir=tmp_path / "empty", pickle_dir=None):
        source = source_at()
        with pytest.raises(SourceUnavailable, match="schedule of 2024: FastF1 got none .* the stored calendar stays"):
            source.calendar([2024])
        with pytest.raises(SourceUnavailable, match="schedule of 2024"):
            source.results([weekend("2024-bahrain")])


def test_importing_the_source_does_not_import_fastf1():
    code = "import sys, f1_pipelines.sources.fastf1_source; sys.exit('fastf1' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
