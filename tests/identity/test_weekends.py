"""The embedded calendar: contents, sessions, and errors for unknown keys."""
from datetime import UTC, date, datetime, timedelta

import pytest

from f1_pipelines.identity import weekends as calendar
from f1_pipelines.identity.circuits import circuit_of, circuits, timezone_of
from f1_pipelines.identity.weekend import SESSION_KIND, SESSIONS_OF_FORMAT
from f1_pipelines.identity.weekends import (
    UnknownSeason,
    UnknownSession,
    UnknownWeekend,
    fastf1_session_name,
    known_weekends,
    season_weekends,
    session_kind,
    weekend,
    weekend_of_round,
)
from f1_pipelines.tables.race import FORMATS, SESSIONS


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def test_instants_are_aware_and_fit_the_local_date():
    rows = (line.split(",") for line in calendar._EMBEDDED.read_text(encoding="utf-8").splitlines()[1:])
    local_dates = {cells[0]: cells[9] for cells in rows}
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


def test_sao_paulo_2024_has_the_actual_session_times():
    sessions = weekend("2024-sao-paulo").sessions
    assert (sessions["qualifying"], sessions["race"]) == (utc("2024-11-03T10:30"), utc("2024-11-03T15:30"))


def test_a_start_before_the_clock_change_has_the_offset_of_its_own_day():
    """FastF1 applies the race day's offset to the whole weekend: qualifying in Melbourne was not at 06:00Z."""
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


def test_cancelled_weekends_stay_in_the_calendar():
    cancelled = {w.key for w in known_weekends() if w.planned == "cancelled"}
    assert {"2020-australia", "2020-vietnam", "2020-monaco", "2021-canada", "2022-russia", "2023-emilia-romagna",
            "2026-saudi-arabia"} <= cancelled
    assert len([key for key in cancelled if key.startswith("2020")]) == 13
    for key in cancelled:
        assert weekend(key).round is None
        assert list(weekend(key).sessions) == ["race"]
        assert weekend(key).session_names == SESSIONS_OF_FORMAT["conventional"]


def test_every_track_is_known():
    for w in known_weekends():
        assert circuit_of(w.circuit, w.layout).timezone
    assert len(circuits()) == len({(w.circuit, w.layout) for w in known_weekends()})
    assert timezone_of("silverstone", "silverstone-99") == timezone_of("silverstone", "silverstone-8")
    with pytest.raises(ValueError, match='"nowhere" with layout "x" is not in circuits.csv'):
        timezone_of("nowhere", "x")


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
