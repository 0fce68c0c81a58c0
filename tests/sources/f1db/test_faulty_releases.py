"""Damaged copies of the f1db release: each fault is named, and refuses only the sessions concerned."""
import csv
import io
import re
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pytest

from f1_pipelines.identity.weekends import season_weekends, weekend
from f1_pipelines.sources.base import SourceError
from f1_pipelines.sources.f1db.release import F1dbRelease
from f1_pipelines.sources.f1db.source import F1dbSource

NOW = datetime(2026, 8, 22, 6, 0, tzinfo=UTC)


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


def test_a_driver_twice_in_a_race_refuses_only_that_race(copy):
    """2023 United States: after two disqualifications the sheet had one car twice and lacked another."""
    def twice(text: str) -> str:
        lines = text.splitlines(keepends=True)
        at = next(i for i, line in enumerate(lines)
                  if line.split(",")[1:3] == ["2023", "18"] and '"lewis-hamilton"' in line)
        return "".join([*lines[:at], lines[at].replace("lewis-hamilton", "george-russell"), *lines[at + 1:]])
    fetched = edit(copy, "races-race-results", twice).results(season_weekends(2023))
    assert "2023-united-states" not in set(fetched.tables["race.results"]["weekend"])
    assert fetched.tables["race.results"]["weekend"].nunique() == 21
    assert [r.reason for r in fetched.refused if not r.expected] == ["entered twice: george-russell (f1db)"]


def change_row(race: tuple[str, str], driver: str, column: str, value: str | None):
    """A change of one field of a driver's row in a race (season, round); with `value` None the row is repeated."""
    def change(text: str) -> str:
        rows = list(csv.reader(text.splitlines()))
        at = next(i for i, row in enumerate(rows) if tuple(row[1:3]) == race and driver in row)
        if value is None:
            rows.insert(at, list(rows[at]))
        else:
            rows[at][rows[0].index(column)] = value
        target = io.StringIO()
        csv.writer(target, lineterminator="\n").writerows(rows)
        return target.getvalue()
    return change


@pytest.mark.parametrize(("name", "column", "value", "table", "message"), [
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
def test_a_faulty_value_refuses_only_that_session_and_is_named(copy, name, column, value, table, message):
    """2024 round 8 is Monaco. Its other sessions and all other weekends are complete and in the same order."""
    method = {"race.results": "results", "race.pit_stops": "results", "race.practice": "practice"}.get(
        table, "qualifying")
    complete = getattr(F1dbSource(F1dbRelease(copy), lambda: NOW), method)(season_weekends(2024))
    source = edit(copy, name, change_row(("2024", "8"), "lewis-hamilton", column, value))
    fetched = getattr(source, method)(season_weekends(2024))
    [refusal] = [refusal for refusal in fetched.refused if not refusal.expected]
    assert (refusal.weekend, refusal.reason.endswith("(f1db)")) == ("2024-monaco", True)
    assert re.match(message, refusal.reason), refusal.reason
    for other, frame in complete.tables.items():
        expected = frame
        if other == table or (table, other) == ("race.results", "race.pit_stops"):
            faulty = frame["weekend"] == "2024-monaco"
            expected = frame[~(faulty & (frame["session"] == refusal.session) if "session" in frame else faulty)]
            assert len(expected) < len(frame)
        drop = ["fetched_at", "source_version"]
        pd.testing.assert_frame_equal(fetched.tables[other].drop(columns=drop),
                                      expected.drop(columns=drop).reset_index(drop=True))


def test_a_fault_in_another_weekend_changes_nothing(copy):
    source = edit(copy, "races-race-results", change_row(("2018", "3"), "lewis-hamilton", "positionText", "??"))
    fetched = source.results([weekend("2024-monaco")])
    assert len(fetched.tables["race.results"]) == 20
    assert [refusal for refusal in fetched.refused if not refusal.expected] == []


@pytest.mark.parametrize("value", ["1.5", "99999999999"])
def test_a_number_is_never_truncated(copy, value):
    source = edit(copy, "races-race-results", change_row(("2024", "8"), "lewis-hamilton", "laps", value))
    with pytest.raises(SourceError, match=f"column laps: wanted Int32, got '{value}'"):
        source.results([weekend("2024-monaco")])


@pytest.mark.parametrize("name", ["races-pit-stops", "races-race-results", "races"])
def test_a_missing_file_is_named(copy, name):
    source = F1dbSource(F1dbRelease(copy), lambda: datetime.now(UTC))
    (copy / f"f1db-{name}.csv").unlink()
    for fetch in (source.results, source.practice) if name != "races-pit-stops" else (source.results,):
        with pytest.raises(SourceError, match=f"lacks f1db-{name}.csv"):
            fetch([weekend("2024-monaco")])


def test_files_without_rows_give_no_rows_and_the_reason(copy):
    def header(text: str) -> str:
        return text.splitlines(keepends=True)[0]

    names = [file.stem.removeprefix("f1db-") for file in copy.glob("f1db-races-*.csv")]
    assert len(names) == 11
    for name in names:
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


@pytest.mark.parametrize(("make", "message"), [
    (lambda path: None, "no f1db release at"),
    (lambda path: path.mkdir(), "holds no f1db-races.csv"),
    (lambda path: path.write_bytes(b"<html>504 Gateway Time-out</html>"), "is not a complete zip"),
])
def test_a_path_without_a_release_says_what_to_do(tmp_path, make, message):
    path = tmp_path / "release"
    make(path)
    with pytest.raises(SourceError, match=message):
        F1dbRelease(path)


def test_a_truncated_zip_is_refused(f1db_folder, tmp_path, zip_release):
    archive = zip_release(f1db_folder, tmp_path / "f1db-csv.zip")
    archive.write_bytes(archive.read_bytes()[:-5000])
    with pytest.raises(SourceError, match="download the release again"):
        F1dbRelease(archive)
