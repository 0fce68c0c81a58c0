"""The real f1db release through the source: what it holds, what it refuses, what faulty copies say."""
import csv
import io
import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pytest

from f1_pipelines.identity.weekends import known_weekends, season_weekends, weekend, write_refreshed
from f1_pipelines.sources.base import SourceError
from f1_pipelines.sources.classification import started
from f1_pipelines.sources.f1db.release import F1dbRelease
from f1_pipelines.sources.f1db.source import F1dbSource

NOW = datetime(2026, 8, 22, 6, 0, tzinfo=UTC)


@pytest.fixture(scope="module")
def everything(f1db):
    return f1db.results(known_weekends())


@pytest.fixture(scope="module")
def results(everything) -> pd.DataFrame:
    return everything.tables["race.results"]


def car(results: pd.DataFrame, key: str, driver: str) -> pd.Series:
    return results[(results["weekend"] == key) & (results["driver"] == driver)].iloc[0]


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


def test_the_slots_of_pit_lane_starters_tell_nothing_of_the_result(results):
    """Where there is no other grid they are an input of the ranker, and the sheet is in the order of the result."""
    behind = results[results["grid_status"] == "pit_lane"].sort_values("grid_position")
    orders = [cars["official_order"].is_monotonic_increasing for _, cars in behind.groupby("weekend") if len(cars) > 1]
    assert 0 < sum(orders) < len(orders)
    assert all(cars["car_number"].is_monotonic_increasing for _, cars in behind.groupby("weekend"))


def test_a_disqualified_car_is_last_of_those_who_started(results):
    russell = car(results, "2024-belgium", "george-russell")
    assert (russell["status"], russell["classified"], russell["official_order"]) == ("disqualified", False, 20)
    assert car(results, "2024-belgium", "lewis-hamilton")["finish_position"] == 1


def test_a_retired_car_can_be_classified(results):
    """2024 round 3, car 63: stopped on the last lap, classified 17th all the same."""
    russell = car(results, "2024-australia", "george-russell")
    assert (russell["status"], russell["classified"], russell["finish_position"]) == ("retired", True, 17)


def test_half_points_and_a_race_without_a_racing_lap(results):
    belgium = results[results["weekend"] == "2021-belgium"]
    assert belgium["points"].max() == 12.5
    assert belgium["fastest_lap_s"].isna().all()


def test_a_car_number_is_no_driver(results):
    drivers = results[results["car_number"] == 1].groupby(results["weekend"].str[:4])["driver"].unique()
    assert drivers["2022"].tolist() == ["max-verstappen"]
    assert drivers["2026"].tolist() == ["lando-norris"]


def test_the_source_knows_the_renamed_constructor_by_season(results):
    teams = results.groupby(results["weekend"].str[:4])["constructor"].agg(set)
    assert teams["2024"] >= {"rb", "kick-sauber"}
    assert teams["2026"] >= {"racing-bulls", "audi", "cadillac"}


def test_weekends_to_come_and_cancelled_ones_are_refused_with_the_reason(everything):
    reasons = {refusal.weekend: refusal for refusal in everything.refused if refusal.session == "race"}
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
    """2023 Britain: f1db lists Bottas twice, once with his times and once as DSQ."""
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


def test_the_calendar_says_when_sessions_start_and_leaves_done_to_the_stored_results(f1db):
    calendar = f1db.calendar([2026]).set_index("weekend")
    assert len(calendar) == 23
    assert set(calendar["state"]) == {"upcoming"}
    assert calendar.loc["2026-bahrain", "layout"] == "sepang-1"
    assert calendar.loc["2026-netherlands", "sprint_start"] == datetime(2026, 8, 22, 10, 0, tzinfo=UTC)


def test_a_race_without_a_time_of_day_starts_as_the_refreshed_calendar_says(f1db, f1db_folder, tmp_path):
    later = utc("2019-05-26T14:10")
    write_refreshed(tmp_path / "calendar.csv", [replace(weekend("2019-monaco"), sessions={"race": later})])
    told = F1dbSource(F1dbRelease(f1db_folder), lambda: datetime.now(UTC), calendar_path=tmp_path / "calendar.csv")
    starts = [source.calendar([2019]).set_index("weekend").loc["2019-monaco", "race_start"] for source in (f1db, told)]
    assert starts == [utc("2019-05-26T13:10"), later]


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def test_a_zip_reads_like_the_folder(f1db_folder: Path, tmp_path: Path, zipped):
    archive = zipped(f1db_folder, tmp_path / "f1db-csv.zip")
    wanted = season_weekends(2026)
    from_zip = F1dbSource(F1dbRelease(archive), lambda: datetime.now(UTC)).results(wanted).tables["race.results"]
    from_folder = F1dbSource(F1dbRelease(f1db_folder), lambda: datetime.now(UTC)).results(wanted).tables["race.results"]
    assert len(from_zip) == 242
    pd.testing.assert_frame_equal(from_zip.drop(columns="fetched_at"), from_folder.drop(columns="fetched_at"))


def edit(copy: Path, name: str, change) -> F1dbSource:
    file = copy / f"f1db-{name}.csv"
    file.write_text(change(file.read_text(encoding="utf-8")), encoding="utf-8")
    return F1dbSource(F1dbRelease(copy), lambda: datetime.now(UTC))


def test_a_missing_column_is_named(copy):
    source = edit(copy, "races-race-results", lambda text: text.replace('"positionDisplayOrder"', '"displayOrder"', 1))
    with pytest.raises(SourceError, match=r"races-race-results.csv lacks the columns \['positionDisplayOrder'\]"):
        source.results([weekend("2024-monaco")])


def test_a_value_of_the_wrong_type_is_named(copy):
    source = edit(copy, "races-qualifying-results", lambda text: text.replace(",82824,", ",fast,", 1))
    with pytest.raises(SourceError, match=r"column q1Millis: wanted Float64, got .*fast"):
        source.qualifying([weekend("2024-monaco")])


def test_a_driver_twice_in_a_race_refuses_that_race_alone(copy):
    """2023 United States: after two disqualifications one car stood there twice and another not at all."""
    def twice(text: str) -> str:
        lines = text.splitlines(keepends=True)
        at = next(i for i, line in enumerate(lines)
                  if line.split(",")[1:3] == ["2023", "18"] and '"lewis-hamilton"' in line)
        return "".join([*lines[:at], lines[at].replace("lewis-hamilton", "george-russell"), *lines[at + 1:]])
    fetched = edit(copy, "races-race-results", twice).results(season_weekends(2023))
    assert "2023-united-states" not in set(fetched.tables["race.results"]["weekend"])
    assert fetched.tables["race.results"]["weekend"].nunique() == 21
    assert [r.reason for r in fetched.refused if not r.expected] == ["entered twice: george-russell (f1db)"]


def changed(name: str, race: tuple[str, str], driver: str, column: str, value: str, again: bool = False):
    """A change of one field of one car's row in a race (season, round); with `again` the row is there a second time."""
    def change(text: str) -> str:
        rows = list(csv.reader(text.splitlines()))
        at = next(i for i, row in enumerate(rows) if tuple(row[1:3]) == race and driver in row)
        if again:
            rows.insert(at, list(rows[at]))
        else:
            rows[at][rows[0].index(column)] = value
        target = io.StringIO()
        csv.writer(target, lineterminator="\n").writerows(rows)
        return target.getvalue()
    return change


@pytest.mark.parametrize(("name", "column", "value", "table", "told"), [
    ("races-race-results", "positionText", "??", "race.results",
     r"lewis-hamilton: status code '\?\?' with text None is unknown"),
    ("races-race-results", "gridPositionNumber", "0", "race.results",
     "race.results.grid_position: wanted 1 to .* 'driver': 'lewis-hamilton'.* 0"),
    ("races-race-results", "points", "-3", "race.results", "race.results.points: wanted .*'lewis-hamilton'.*-3"),
    ("races-race-results", "driverId", "", "race.results", "a car without a driver"),
    ("races-pit-stops", "timeMillis", "-5", "race.pit_stops", "race.pit_stops.pit_lane_time_s: wanted .*hamilton"),
    ("races-pit-stops", "", None, "race.pit_stops", "race.pit_stops: 2 rows share a key"),
    ("races-starting-grid-positions", "", None, "race.grid", "entered twice: lewis-hamilton"),
    ("races-starting-grid-positions", "positionNumber", "0", "race.grid", "race.grid.grid_position: .*hamilton.* 0"),
    ("races-qualifying-results", "q1Millis", "-1", "race.qualifying", "race.qualifying.q1_s: wanted .*hamilton"),
    ("races-free-practice-2-results", "laps", "-1", "race.practice", "race.practice.laps: wanted .*hamilton"),
])
def test_a_faulty_value_refuses_that_session_alone_and_is_named(copy, name, column, value, table, told):
    """2024 round 8 is Monaco. Its other sessions and every other weekend come whole, and in the same order."""
    ask = {"race.results": "results", "race.pit_stops": "results", "race.practice": "practice"}.get(table, "qualifying")
    whole = getattr(F1dbSource(F1dbRelease(copy), lambda: NOW), ask)(season_weekends(2024))
    source = edit(copy, name, changed(name, ("2024", "8"), "lewis-hamilton", column, value, again=value is None))
    fetched = getattr(source, ask)(season_weekends(2024))
    [refusal] = [refusal for refusal in fetched.refused if not refusal.expected]
    assert (refusal.weekend, refusal.reason.endswith("(f1db)")) == ("2024-monaco", True)
    assert re.match(told, refusal.reason), refusal.reason
    for other, frame in whole.tables.items():
        left = frame
        if other == table or (table, other) == ("race.results", "race.pit_stops"):
            faulty = frame["weekend"] == "2024-monaco"
            left = frame[~(faulty & (frame["session"] == refusal.session) if "session" in frame else faulty)]
            assert len(left) < len(frame)
        drop = ["fetched_at", "source_version"]
        pd.testing.assert_frame_equal(fetched.tables[other].drop(columns=drop), left.drop(columns=drop).reset_index(
            drop=True))


def test_a_fault_in_another_weekend_is_no_business_of_this_one(copy):
    source = edit(copy, "races-race-results",
                  changed("races-race-results", ("2018", "3"), "lewis-hamilton", "positionText", "??"))
    fetched = source.results([weekend("2024-monaco")])
    assert len(fetched.tables["race.results"]) == 20
    assert [refusal for refusal in fetched.refused if not refusal.expected] == []


@pytest.mark.parametrize("value", ["1.5", "99999999999"])
def test_a_number_is_never_cut_to_fit(copy, value):
    source = edit(copy, "races-race-results",
                  changed("races-race-results", ("2024", "8"), "lewis-hamilton", "laps", value))
    with pytest.raises(SourceError, match=f"column laps: wanted Int32, got '{value}'"):
        source.results([weekend("2024-monaco")])


@pytest.mark.parametrize("name", ["races-pit-stops", "races-race-results", "races"])
def test_a_file_that_is_not_there_is_named(copy, name):
    source = F1dbSource(F1dbRelease(copy), lambda: datetime.now(UTC))
    (copy / f"f1db-{name}.csv").unlink()
    for ask in (source.results, source.practice) if name != "races-pit-stops" else (source.results,):
        with pytest.raises(SourceError, match=f"lacks f1db-{name}.csv"):
            ask([weekend("2024-monaco")])


def test_files_without_rows_give_no_rows_and_the_reason(copy):
    def header(text: str) -> str:
        return text.splitlines(keepends=True)[0]

    results = [file.stem.removeprefix("f1db-") for file in copy.glob("f1db-races-*.csv")]
    assert len(results) == 11
    for name in results:
        source = edit(copy, name, header)
    monaco = [weekend("2024-monaco")]
    for fetched in (source.results(monaco), source.qualifying(monaco), source.practice(monaco)):
        assert all(frame.empty for frame in fetched.tables.values())
        assert fetched.refused


def test_an_empty_file_is_named(copy):
    source = edit(copy, "races-race-results", lambda text: "")
    with pytest.raises(SourceError, match="races-race-results.csv can't be read as CSV"):
        source.results([weekend("2024-monaco")])


def test_a_race_twice_in_the_calendar_is_named(copy):
    def twice(text: str) -> str:
        row = next(line for line in text.splitlines(keepends=True) if line.split(",")[1] == "2024")
        return text + row

    with pytest.raises(SourceError, match=r"f1db-races.csv has 2024-\w+ more than once"):
        edit(copy, "races", twice).results([weekend("2024-monaco")])


@pytest.mark.parametrize(("make", "told"), [
    (lambda path: None, "no f1db release at"),
    (lambda path: path.mkdir(), "holds no f1db-races.csv"),
    (lambda path: path.write_bytes(b"<html>504 Gateway Time-out</html>"), "is no whole zip"),
])
def test_a_path_without_a_release_says_what_to_do(tmp_path, make, told):
    path = tmp_path / "release"
    make(path)
    with pytest.raises(SourceError, match=told):
        F1dbRelease(path)


def test_a_truncated_zip_is_refused(f1db_folder, tmp_path, zipped):
    archive = zipped(f1db_folder, tmp_path / "f1db-csv.zip")
    archive.write_bytes(archive.read_bytes()[:-5000])
    with pytest.raises(SourceError, match="download the release again"):
        F1dbRelease(archive)
