"""Refreshed calendar files: merging with the embedded calendar, writing, and refusal of invalid files."""
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from f1_pipelines.identity import weekends as calendar
from f1_pipelines.identity.weekends import (
    InvalidCalendar,
    known_weekends,
    season_weekends,
    weekend,
    weekend_of_round,
    write_refreshed,
)


def test_a_refreshed_file_corrects_and_adds_but_never_removes(tmp_path):
    moved = replace(weekend("2026-abu-dhabi"), sessions={"race": datetime(2026, 12, 13, 13, tzinfo=UTC)}, round=24)
    madrid = replace(weekend("2026-spain"), key="2027-spain", season=2027, round=1,
                     sessions={"race": datetime(2027, 3, 7, 13, tzinfo=UTC)})
    path = tmp_path / "state" / "calendar.csv"
    write_refreshed(path, [madrid, moved])
    assert weekend("2026-abu-dhabi", path) == moved
    assert season_weekends(2027, path) == (madrid,)
    assert {w.key for w in known_weekends(path)} == {w.key for w in known_weekends()} | {"2027-spain"}
    assert known_weekends(tmp_path / "none.csv") == known_weekends()
    assert list(path.parent.iterdir()) == [path]
    write_refreshed(path, [])
    assert weekend("2026-abu-dhabi", path).round == 23, "a changed file is read again, not cached"


def test_the_calendar_survives_the_round_trip_through_a_file(tmp_path):
    path = tmp_path / "calendar.csv"
    write_refreshed(path, reversed(known_weekends()))
    assert path.read_bytes() == calendar._EMBEDDED.read_bytes()
    assert known_weekends(path) == known_weekends()


def test_a_round_given_to_another_weekend_is_removed_from_the_first(tmp_path):
    path = tmp_path / "calendar.csv"
    write_refreshed(path, [replace(weekend("2026-saudi-arabia"), planned="scheduled", round=4)])
    assert weekend_of_round(2026, 4, path).key == "2026-saudi-arabia"
    assert weekend("2026-miami", path).round is None


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "calendar.csv"
    write_refreshed(path, [weekend("2026-monaco")])
    before = path.read_bytes()
    with pytest.raises(AttributeError):
        write_refreshed(path, ["not a weekend"])
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(("old", "new", "message"), [
    ("2026-06-07T13:00:00Z", "soon", 'line 2: race_start is "soon"; wanted a time like'),
    ("2026-06-07T13:00:00Z", "2026-06-07T13:00:00", "line 2: race starts at .* without a time zone"),
    ("2026-06-07T13:00:00Z", "", "line 2: race_start is empty"),
    ("2026-06-07,", "2026-06-05,", "line 2: 2026-monaco races on 2026-06-05 at the circuit, but race_start is 2 days"),
    ("conventional", "normal", 'line 2: format is "normal"; wanted one of conventional'),
    ("scheduled", "maybe", 'line 2: planned is "maybe"'),
    ("2026-monaco,2026", "2026-monaco,2025", 'line 2: weekend is "2026-monaco" in season 2025'),
    ("2026-monaco", "2026-Monte Carlo", 'line 2: weekend is "2026-Monte Carlo"'),
    (",78,", ",many,", 'line 2: race_laps is "many"; wanted a whole number'),
    ("monaco-6", "", "line 2: 2026-monaco lacks its layout"),
    ("race_start", "start", "lacks the columns race_start"),
    ("\n2026", "\n2026-monaco\n2026", "line 2: season is"),
])
def test_an_invalid_file_is_refused_with_line_and_reason(tmp_path, old, new, message):
    path = tmp_path / "calendar.csv"
    write_refreshed(path, [weekend("2026-monaco")])
    path.write_text(path.read_text(encoding="utf-8").replace(old, new, 1), encoding="utf-8")
    with pytest.raises(InvalidCalendar, match=message):
        known_weekends(path)


def test_a_duplicate_key_or_round_is_refused(tmp_path):
    path = tmp_path / "calendar.csv"
    write_refreshed(path, [weekend("2026-monaco"), weekend("2026-monaco")])
    with pytest.raises(InvalidCalendar, match="has the weekend 2026-monaco more than once"):
        known_weekends(path)
    write_refreshed(path, [weekend("2026-monaco"), replace(weekend("2026-austria"), round=6)])
    with pytest.raises(InvalidCalendar, match="has the round 2026 R6 more than once"):
        known_weekends(path)


def test_a_file_that_is_not_text_is_refused(tmp_path):
    (tmp_path / "calendar.csv").write_bytes(b"\xff\xfe\x00weekend")
    with pytest.raises(InvalidCalendar, match="is not a CSV file in UTF-8"):
        known_weekends(tmp_path / "calendar.csv")


def test_a_start_without_a_zone_is_refused():
    with pytest.raises(InvalidCalendar, match="without a time zone"):
        replace(weekend("2026-monaco"), sessions={"race": datetime(2026, 6, 7, 13)})
