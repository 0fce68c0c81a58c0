import ast
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from f1_pipelines.identity import weekends as calendar
from f1_pipelines.identity.circuits import circuit_of, circuits, timezone_of
from f1_pipelines.identity.weekend import SESSION_KIND, SESSIONS_OF_FORMAT
from f1_pipelines.identity.weekends import (
    InvalidCalendar,
    UnknownSeason,
    UnknownSession,
    UnknownWeekend,
    fastf1_session_name,
    known_weekends,
    season_weekends,
    session_kind,
    weekend,
    weekend_of_round,
    write_refreshed,
)
from f1_pipelines.tables.race import FORMATS, SESSIONS

TWELVE_HOURS = timedelta(hours=12)
# f1db 2026.12 has the original date of this race, which moved to a week later when Singapore was cancelled.
WRONG_IN_F1DB = {"2021-turkey": date(2021, 10, 10)}


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


# Contents of the calendar


def test_every_f1db_race_is_one_weekend(f1db):
    races = f1db("races")
    for race in races:
        ours = weekend_of_round(int(race["year"]), int(race["round"]))
        assert (ours.slug, ours.circuit, ours.layout) == \
            (race["grandPrixId"], race["circuitId"], race["circuitLayoutId"]), ours.key
        day = WRONG_IN_F1DB.get(ours.key, date.fromisoformat(race["date"]))
        assert day in (ours.race_start.date(), ours.race_date_local), ours.key
        assert ours.race_laps == int(race["laps"])
    assert len(races) == sum(w.round is not None for w in known_weekends())


def test_starts_agree_with_f1db_within_12_hours(f1db):
    columns = {"practice_1": "freePractice1", "practice_2": "freePractice2", "practice_3": "freePractice3",
               "sprint_qualifying": "sprintQualifying", "sprint": "sprintRace", "qualifying": "qualifying"}
    compared = 0
    for race in f1db("races"):
        ours = weekend_of_round(int(race["year"]), int(race["round"]))
        theirs = {name: (race[f"{column}Date"], race[f"{column}Time"]) for name, column in columns.items()}
        theirs["race"] = (race["date"], race["time"])
        for name, (day, time) in theirs.items():
            if day and time:
                assert abs(ours.sessions[name] - utc(f"{day}T{time}")) < TWELVE_HOURS, (ours.key, name)
                compared += 1
    assert compared > 300


def test_starts_agree_with_the_schedules_within_12_hours(recorded_responses):
    compared = 0
    for season, rows in schedules(recorded_responses):
        for row in rows:
            ours = weekend_of_round(season, row["round_number"])
            held = {fastf1_session_name(ours, name): name for name in ours.session_names}
            for slot in range(1, 6):
                name, start = row[f"session{slot}"], row[f"session{slot}_date"]
                if name:
                    theirs = datetime.fromisoformat(f"{start}{row['gmt_offset']}")
                    assert abs(ours.sessions[held.pop(name)] - theirs) < TWELVE_HOURS, (ours.key, name)
                    compared += 1
            assert not held, f"{ours.key}: FastF1 has no {held}"
    assert compared == 5 * 196 - 2


def test_instants_are_aware_and_fit_the_local_date():
    written = (line.split(",") for line in calendar._EMBEDDED.read_text(encoding="utf-8").splitlines()[1:])
    local_dates = {cells[0]: cells[9] for cells in written}
    for w in known_weekends():
        assert all(start.utcoffset() == timedelta(0) for start in w.sessions.values()), w.key
        local = w.race_start.astimezone(timezone_of(w.circuit, w.layout))
        assert local_dates[w.key] == local.date().isoformat()
        assert 9 <= local.hour <= 23, f"{w.key} starts at {local}"
        assert list(w.sessions.values()) == sorted(w.sessions.values())
        assert list(w.sessions)[-1] == "race"


def test_the_calendar_is_chronological_and_keys_are_unique():
    known = known_weekends()
    assert [w.race_start for w in known] == sorted(w.race_start for w in known)
    assert len({w.key for w in known}) == len(known)
    for season in range(2018, 2027):
        rounds = [w.round for w in season_weekends(season) if w.round]
        assert rounds == list(range(1, len(rounds) + 1))


def test_las_vegas_is_not_a_day_early():
    las_vegas = weekend("2025-las-vegas")
    assert las_vegas.round == 22
    assert las_vegas.race_start == utc("2025-11-23T04:00")
    assert las_vegas.sessions["qualifying"] == utc("2025-11-22T04:00")
    assert las_vegas.race_date_local == date(2025, 11, 22)


def test_sao_paulo_2024_is_as_run():
    sessions = weekend("2024-sao-paulo").sessions
    assert (sessions["qualifying"], sessions["race"]) == (utc("2024-11-03T10:30"), utc("2024-11-03T15:30"))


def test_a_start_before_the_clock_change_has_the_offset_of_its_own_day():
    """FastF1 puts the race day's offset on the whole weekend: qualifying in Melbourne was not at 06:00Z."""
    assert weekend("2023-australia").sessions["qualifying"] == utc("2023-04-01T05:00")
    assert weekend("2019-mexico").sessions["qualifying"] == utc("2019-10-26T18:00")


def test_no_weekday_or_slot_is_assumed():
    assert weekend("2020-emilia-romagna").session_names == ("practice_1", "qualifying", "race")
    assert weekend("2021-great-britain").sessions["qualifying"].strftime("%a") == "Fri"
    baku = weekend("2026-azerbaijan")
    assert (baku.round, baku.race_start.strftime("%a %d %b")) == (15, "Sat 26 Sep")


def test_races_that_share_a_name_or_a_track_stay_apart():
    def track(key: str) -> tuple[str, str]:
        return weekend(key).circuit, weekend(key).layout

    assert track("2020-great-britain") == track("2020-70th-anniversary")
    assert (weekend("2020-great-britain").round, weekend("2020-70th-anniversary").round) == (4, 5)
    assert track("2021-styria") == track("2021-austria")
    assert weekend("2020-bahrain").circuit == weekend("2020-sakhir").circuit
    assert track("2020-bahrain") != track("2020-sakhir")
    assert track("2025-spain") == track("2026-barcelona-catalunya") != track("2026-spain")
    assert track("2026-bahrain") == ("sepang", "sepang-1")


def test_nothing_is_joined_or_looked_up_by_an_event_name():
    """The Spanish Grand Prix moved from Barcelona to Madrid in 2026: a name is displayed, never a key."""
    package, keyed = Path(calendar.__file__).parents[1], []
    calls = {"merge", "merge_asof", "join", "groupby", "set_index", "pivot", "pivot_table", "isin", "drop_duplicates",
             "duplicated", "sort_values"}
    in_text = re.compile(r"(using\s*\(|group by|partition by|join[^)]*\bon\b|where|query\()[^)]*event_?name"
                         "|get_event_by_name", re.IGNORECASE)
    named = re.compile(r"^event_?name$", re.IGNORECASE)
    for path in [*package.rglob("*.py"), *(package.parent / "warehouse" / "queries").glob("*.sql")]:
        text = path.read_text(encoding="utf-8")
        keyed += [(path.name, match[0]) for match in in_text.finditer(text)]
        for node in ast.walk(ast.parse(text)) if path.suffix == ".py" else ():
            if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in calls:
                texts = [arg for part in (*node.args, *node.keywords) for arg in ast.walk(part)]
            elif isinstance(node, ast.Compare):
                texts = list(ast.walk(node))
            else:
                continue
            keyed += [(path.name, node.lineno) for part in texts
                      if named.match(str(getattr(part, "value", "")) if isinstance(part, ast.Constant)
                                     else getattr(part, "attr", ""))]
    assert keyed == []


def test_cancelled_weekends_stay():
    cancelled = {w.key for w in known_weekends() if w.planned == "cancelled"}
    assert {"2020-australia", "2020-vietnam", "2020-monaco", "2021-canada", "2022-russia", "2023-emilia-romagna",
            "2026-saudi-arabia"} <= cancelled
    assert len([key for key in cancelled if key.startswith("2020")]) == 13
    for key in cancelled:
        assert weekend(key).round is None
        assert list(weekend(key).sessions) == ["race"]
        assert weekend(key).session_names == SESSIONS_OF_FORMAT["conventional"]


def test_testing_is_no_weekend(recorded_responses):
    names = {w.event_name for w in known_weekends()}
    assert all(name.endswith("Grand Prix") for name in names)
    all_rows = [row for _, rows in schedules(recorded_responses, testing=True) for row in rows]
    testing = [row for row in all_rows if not row["round_number"]]
    assert len(testing) > 2
    assert not names & {row["event_name"] for row in testing}


def test_every_track_is_known():
    for w in known_weekends():
        assert circuit_of(w.circuit, w.layout).timezone
    assert len(circuits()) == len({(w.circuit, w.layout) for w in known_weekends()})
    assert timezone_of("silverstone", "silverstone-99") == timezone_of("silverstone", "silverstone-8")
    with pytest.raises(ValueError, match='"nowhere" with layout "x" is not in circuits.csv'):
        timezone_of("nowhere", "x")


# Sessions


def test_formats_and_sessions_are_those_of_the_tables():
    assert tuple(SESSIONS_OF_FORMAT) == FORMATS
    assert tuple(SESSION_KIND) == SESSIONS
    seasons = {form: {w.season for w in known_weekends() if w.format == form} for form in FORMATS[1:]}
    assert seasons == {"sprint": {2021, 2022}, "sprint_shootout": {2023}, "sprint_qualifying": {2024, 2025, 2026}}


def test_session_names_follow_the_format():
    assert weekend("2022-austria").session_names == ("practice_1", "qualifying", "practice_2", "sprint", "race")
    assert weekend("2023-austria").session_names == \
        ("practice_1", "qualifying", "sprint_qualifying", "sprint", "race")
    assert weekend("2024-austria").session_names == \
        ("practice_1", "sprint_qualifying", "sprint", "qualifying", "race")


def test_a_sprint_is_like_a_race_and_its_shootout_like_a_qualifying():
    assert [session_kind(name) for name in SESSIONS] == ["practice"] * 3 + ["qualifying", "race", "qualifying", "race"]
    with pytest.raises(UnknownSession, match='"SQ" is no session'):
        session_kind("SQ")


def test_fastf1_names_depend_on_the_season():
    assert fastf1_session_name(weekend("2021-great-britain"), "sprint") == "Sprint"
    assert fastf1_session_name(weekend("2023-azerbaijan"), "sprint_qualifying") == "Sprint Shootout"
    assert fastf1_session_name(weekend("2024-china"), "sprint_qualifying") == "Sprint Qualifying"
    with pytest.raises(UnknownSession, match='2021-great-britain has no "sprint_qualifying"; it has practice_1'):
        fastf1_session_name(weekend("2021-great-britain"), "sprint_qualifying")


# Unknown keys


@pytest.mark.parametrize(("key", "suggested"), [
    ("2024-11", "2024-austria"), ("2024-brazil", "2024-sao-paulo"), ("2024-Mexico City", "2024-mexico"),
    ("2024-imola", "2024-emilia-romagna"), ("2024-monacco", "2024-monaco"), ("monaco", "2026-monaco"),
])
def test_an_unknown_key_gets_a_suggestion(key, suggested):
    with pytest.raises(UnknownWeekend, match=f'"{key}" is not a known weekend; keys read .* {suggested}'):
        weekend(key)


def test_unknown_seasons_and_rounds_are_refused():
    with pytest.raises(UnknownSeason, match="season 2017 is not in the calendar, which covers 2018 to 2026"):
        season_weekends(2017)
    with pytest.raises(UnknownWeekend, match="season 2020 has no round 18; it has rounds 1 to 17"):
        weekend_of_round(2020, 18)


# The refreshed file


def test_a_refreshed_file_corrects_and_adds_but_never_removes(tmp_path):
    moved = replace(weekend("2026-abu-dhabi"), sessions={"race": utc("2026-12-13T13:00")}, round=24)
    madrid = replace(weekend("2026-spain"), key="2027-spain", season=2027, round=1,
                     sessions={"race": utc("2027-03-07T13:00")})
    path = tmp_path / "state" / "calendar.csv"
    write_refreshed(path, [madrid, moved])
    assert weekend("2026-abu-dhabi", path) == moved
    assert season_weekends(2027, path) == (madrid,)
    assert {w.key for w in known_weekends(path)} == {w.key for w in known_weekends()} | {"2027-spain"}
    assert known_weekends(tmp_path / "none.csv") == known_weekends()
    assert list(path.parent.iterdir()) == [path]
    write_refreshed(path, [])
    assert weekend("2026-abu-dhabi", path).round == 23, "a second refresh is read again, not cached"


def test_the_calendar_survives_being_written_and_read(tmp_path):
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
def test_a_bad_file_says_where_and_why(tmp_path, old, new, message):
    path = tmp_path / "calendar.csv"
    write_refreshed(path, [weekend("2026-monaco")])
    path.write_text(path.read_text(encoding="utf-8").replace(old, new, 1), encoding="utf-8")
    with pytest.raises(InvalidCalendar, match=message):
        known_weekends(path)


def test_a_key_or_round_given_twice_is_refused(tmp_path):
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


def test_the_calendar_needs_the_standard_library_only():
    code = ("import sys; from f1_pipelines.identity.weekends import known_weekends; known_weekends(); "
            "print(*sorted({'pandas', 'numpy', 'dagster', 'fastf1', 'duckdb'} & set(sys.modules)))")
    root = Path(__file__).resolve().parents[2]
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                             env=os.environ | {"PYTHONPATH": str(root)})
    assert process.stdout.strip() == ""


def schedules(recorded_responses, testing=False):
    """(season, rows) of the recorded FastF1 schedules."""
    for url, body in recorded_responses.items():
        if "schedule_" in url:
            columns = json.loads(body)
            rows = [{name: columns[name][index] for name in columns} for index in columns["round_number"]]
            yield int(url[-9:-5]), [row for row in rows if testing or row["round_number"]]
