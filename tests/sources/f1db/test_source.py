"""The real f1db release through the source: what it holds and what it refuses."""
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pytest

from f1_pipelines.identity.weekends import known_weekends, season_weekends, weekend, write_refreshed
from f1_pipelines.sources.classification import started
from f1_pipelines.sources.f1db.release import F1dbRelease
from f1_pipelines.sources.f1db.source import F1dbSource

NOW = datetime(2026, 8, 22, 6, 0, tzinfo=UTC)


@pytest.fixture(scope="module")
def all_weekends(f1db):
    return f1db.results(known_weekends())


@pytest.fixture(scope="module")
def results(all_weekends) -> pd.DataFrame:
    return all_weekends.tables["race.results"]


def car(results: pd.DataFrame, key: str, driver: str) -> pd.Series:
    return results[(results["weekend"] == key) & (results["driver"] == driver)].iloc[0]


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def test_all_184_races_of_2018_to_2026_are_there(results):
    assert results["weekend"].nunique() == 184
    assert len(results) == 3701
    assert set(results["result_status"]) == {"official"}


def test_fields_of_18_to_22_cars_are_taken_as_they_are(results):
    starters = results[started(results["status"])].groupby("weekend").size()
    assert (starters.min(), starters.max()) == (18, 22)
    assert len(results[results["weekend"] == "2026-australia"]) == 22
    assert len(results[results["weekend"] == "2024-australia"]) == 19


def test_a_withdrawn_car_stays_in_the_entry_list_and_did_not_start(results):
    stroll = car(results, "2023-singapore", "lance-stroll")
    assert (stroll["status"], stroll["grid_status"]) == ("not_started", "not_started")
    assert pd.isna(stroll["grid_position"])
    assert not stroll["classified"]


def test_a_pit_lane_start_is_the_last_slot(results):
    russell = car(results, "2024-united-states", "george-russell")
    assert (russell["grid_status"], russell["grid_position"]) == ("pit_lane", 20)


def test_the_slots_of_pit_lane_starters_do_not_reveal_the_result(results):
    """Without another grid they are an input of the ranker, and the sheet is in the order of the result."""
    in_lane = results[results["grid_status"] == "pit_lane"].sort_values("grid_position")
    orders = [cars["official_order"].is_monotonic_increasing for _, cars in in_lane.groupby("weekend") if len(cars) > 1]
    assert 0 < sum(orders) < len(orders)
    assert all(cars["car_number"].is_monotonic_increasing for _, cars in in_lane.groupby("weekend"))


def test_a_disqualified_car_is_last_of_those_who_started(results):
    russell = car(results, "2024-belgium", "george-russell")
    assert (russell["status"], russell["classified"], russell["official_order"]) == ("disqualified", False, 20)
    assert car(results, "2024-belgium", "lewis-hamilton")["finish_position"] == 1


def test_a_retired_car_can_be_classified(results):
    """2024 round 3, car 63: stopped on the last lap, but classified 17th."""
    russell = car(results, "2024-australia", "george-russell")
    assert (russell["status"], russell["classified"], russell["finish_position"]) == ("retired", True, 17)


def test_half_points_and_a_race_without_a_racing_lap(results):
    belgium = results[results["weekend"] == "2021-belgium"]
    assert belgium["points"].max() == 12.5
    assert belgium["fastest_lap_s"].isna().all()


def test_a_car_number_does_not_identify_a_driver(results):
    drivers = results[results["car_number"] == 1].groupby(results["weekend"].str[:4])["driver"].unique()
    assert drivers["2022"].tolist() == ["max-verstappen"]
    assert drivers["2026"].tolist() == ["lando-norris"]


def test_a_renamed_constructor_has_the_id_of_its_season(results):
    teams = results.groupby(results["weekend"].str[:4])["constructor"].agg(set)
    assert teams["2024"] >= {"rb", "kick-sauber"}
    assert teams["2026"] >= {"racing-bulls", "audi", "cadillac"}


def test_future_and_cancelled_weekends_are_refused_with_the_reason(all_weekends):
    reasons = {refusal.weekend: refusal for refusal in all_weekends.refused if refusal.session == "race"}
    assert reasons["2023-emilia-romagna"].reason == "the weekend was cancelled"
    assert reasons["2023-emilia-romagna"].expected
    assert reasons["2026-netherlands"].reason == "not held yet (starts 2026-08-23 13:00 UTC)"
    assert reasons["2026-netherlands"].retry
    assert len(reasons) == 22 + 12


def test_practice_that_was_never_held_is_no_fault(f1db):
    fetched = f1db.practice([weekend("2020-eifel")])
    assert [(r.session, r.expected) for r in fetched.refused] == [("practice_1", True), ("practice_2", True)]
    assert set(fetched.tables["race.practice"]["session"]) == {"practice_3"}


def test_qualifying_has_segments_and_sprint_qualifying_its_own_rows(f1db):
    rows = f1db.qualifying([weekend("2024-china")]).tables["race.qualifying"]
    assert rows.groupby("session").size().to_dict() == {"qualifying": 20, "sprint_qualifying": 20}
    pole = rows[(rows["session"] == "qualifying") & (rows["position"] == 1)].iloc[0]
    assert (pole["driver"], pole["q3_s"]) == ("max-verstappen", 93.66)
    assert rows.loc[rows["session"].eq("qualifying"), ["q1_s", "q2_s", "q3_s"]].notna().sum().tolist() == [20, 15, 10]


def test_a_car_excluded_from_qualifying_is_one_row_without_a_place(f1db):
    """2023 Great Britain: f1db lists Bottas twice, with his times and as DSQ."""
    rows = f1db.qualifying([weekend("2023-great-britain")]).tables["race.qualifying"]
    bottas = rows[rows["driver"] == "valtteri-bottas"]
    assert len(rows) == 20
    assert (len(bottas), bottas["q1_s"].iloc[0], bottas["position"].isna().iloc[0]) == (1, 89.798, True)


def test_a_swapped_driver_is_resolved_session_by_session(f1db):
    """2024 Saudi Arabia: Sainz drove first practice, Bearman the rest, in the same team."""
    saudi = weekend("2024-saudi-arabia")
    practice = f1db.practice([saudi]).tables["race.practice"]
    ferrari = practice[practice["constructor"] == "ferrari"].groupby("session")["driver"].agg(set).to_dict()
    assert "carlos-sainz-jr" in ferrari["practice_1"]
    assert "oliver-bearman" in ferrari["practice_3"]
    results = f1db.results([saudi]).tables["race.results"]
    assert len(results) == 20
    assert "carlos-sainz-jr" not in set(results["driver"])


def test_the_calendar_has_starts_of_sessions_and_no_weekend_is_done(f1db):
    calendar = f1db.calendar([2026]).set_index("weekend")
    assert len(calendar) == 23
    assert set(calendar["state"]) == {"upcoming"}
    assert calendar.loc["2026-bahrain", "layout"] == "sepang-1"
    assert calendar.loc["2026-netherlands", "sprint_start"] == datetime(2026, 8, 22, 10, 0, tzinfo=UTC)


def test_a_race_without_a_time_of_day_takes_that_of_the_refreshed_calendar(f1db, f1db_folder, tmp_path):
    later = utc("2019-05-26T14:10")
    write_refreshed(tmp_path / "calendar.csv", [replace(weekend("2019-monaco"), sessions={"race": later})])
    refreshed = F1dbSource(F1dbRelease(f1db_folder), lambda: datetime.now(UTC), calendar_path=tmp_path / "calendar.csv")
    starts = [source.calendar([2019]).set_index("weekend").loc["2019-monaco", "race_start"]
              for source in (f1db, refreshed)]
    assert starts == [utc("2019-05-26T13:10"), later]


def test_a_zip_reads_like_the_folder(f1db_folder: Path, tmp_path: Path, zip_release):
    archive = zip_release(f1db_folder, tmp_path / "f1db-csv.zip")
    from_zip, from_folder = (
        F1dbSource(F1dbRelease(path), lambda: NOW).results(season_weekends(2026)).tables["race.results"]
        for path in (archive, f1db_folder))
    assert len(from_zip) == 242
    pd.testing.assert_frame_equal(from_zip.drop(columns="fetched_at"), from_folder.drop(columns="fetched_at"))
