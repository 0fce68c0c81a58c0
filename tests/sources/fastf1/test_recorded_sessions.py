"""Every recorded session has the rows counted in shared/data/fastf1-http/README.md, or is refused with a reason."""
import re

import pytest

from f1_pipelines.identity.weekends import session_kind, weekend_of_round
from f1_pipelines.settings import PROJECT_ROOT

# season, round, session, laps, drivers, weather, messages
COMPLETE = [
    (2018, 4, "race", 848, 20, 0, 109),
    (2019, 14, "qualifying", 275, 20, 95, 40),
    (2020, 3, "practice_2", 109, 20, 0, 13),
    (2020, 5, "practice_2", 535, 20, 100, 21),
    (2021, 14, "practice_2", 482, 20, 79, 29),
    (2021, 18, "qualifying", 311, 20, 104, 40),
    (2022, 2, "qualifying", 327, 20, 0, 0),
    (2022, 10, "practice_1", 80, 20, 0, 19),
    (2023, 1, "race", 1056, 20, 161, 73),
    (2023, 4, "qualifying", 356, 20, 0, 61),
    (2023, 4, "sprint", 308, 19, 0, 0),
    (2023, 4, "sprint_qualifying", 233, 20, 0, 58),
    (2024, 1, "qualifying", 267, 20, 77, 14),
    (2024, 1, "race", 1129, 20, 157, 69),
    (2024, 5, "sprint_qualifying", 218, 20, 0, 62),
    (2024, 10, "qualifying", 257, 20, 0, 19),
    (2024, 12, "practice_1", 459, 20, 81, 20),
    (2025, 6, "sprint", 331, 19, 0, 107),
]
INCOMPLETE = [
    (2020, 7, "race", "TimingData"), (2020, 8, "race", "TimingData"), (2020, 12, "race", "TimingData"),
    (2021, 1, "practice_3", "DriverList"), (2021, 1, "race", "SessionStatus"), (2021, 10, "race", "TimingData"),
    (2021, 21, "race", "TimingData"), (2022, 1, "race", "TimingData"), (2022, 2, "race", "TimingData"),
    (2023, 1, "practice_1", "SessionStatus"), (2023, 5, "race", "TimingData"), (2023, 10, "race", "SessionStatus"),
    (2023, 11, "practice_1", "SessionStatus"), (2024, 2, "practice_2", "TrackStatus"),
    (2024, 2, "practice_3", "TrackStatus"), (2024, 10, "race", "SessionStatus"), (2025, 1, "race", "TimingData"),
    (2025, 2, "race", "SessionStatus"), (2025, 4, "race", "TimingData"), (2025, 12, "race", "TimingData"),
    (2025, 16, "practice_1", "TrackStatus"), (2026, 2, "race", "TimingData"),
]
RACE_SHEETS = [(2018, 4), (2020, 7), (2020, 8), (2020, 12), (2021, 1), (2021, 10), (2021, 14), (2021, 21), (2022, 1),
               (2022, 2), (2022, 10), (2023, 1), (2023, 5), (2024, 2), (2024, 12), (2025, 1), (2025, 4), (2025, 12),
               (2025, 16), (2026, 2)]
SPRINT_SHEETS = [(2023, 4), (2025, 6)]
# FastF1's data of a session change with its version: it is locked, and in every row.
LOCKED_VERSION = re.search(r"^fastf1==(\S+)$", (PROJECT_ROOT / "requirements.lock").read_text(), re.MULTILINE)[1]
METHODS = {"practice": "practice", "qualifying": "qualifying", "race": "laps"}


def grouped(rows):
    """Sessions of a season share a worker, and with it FastF1's cache."""
    return [pytest.param(*row, marks=pytest.mark.xdist_group(f"fastf1-{row[0] % 3}")) for row in rows]


def rows_of(fetched, table, weekend, session=None):
    frame = fetched.tables.get(table)
    if frame is None:
        return []
    frame = frame[frame["weekend"] == weekend.key]
    return frame[frame["session"] == session] if session and "session" in frame else frame


def fetch(source, weekend, session):
    return getattr(source, METHODS[session_kind(session)])([weekend])


@pytest.mark.parametrize(("season", "number", "session", "laps", "drivers", "weather", "messages"), grouped(COMPLETE))
def test_a_complete_session_has_every_lap(source, season, number, session, laps, drivers, weather, messages):
    weekend = weekend_of_round(season, number)
    fetched = fetch(source, weekend, session)
    rows = rows_of(fetched, "race.laps" if session == "race" else "race.session_laps", weekend, session)
    assert (len(rows), rows["driver"].nunique()) == (laps, drivers)
    assert len(rows_of(fetched, "race.weather", weekend, session)) == weather
    assert len(rows_of(fetched, "race.race_control", weekend, session)) == messages
    assert session not in [refusal.session for refusal in fetched.refused]
    assert set(rows["source_version"]) == {f"fastf1 {LOCKED_VERSION}"}
    assert (rows["lap_time_s"].dropna() > 0).all()
    assert rows["is_deleted"].isna().all() == (messages == 0)  # unknown, not "not deleted"
    if session_kind(session) != "race":
        order = rows_of(fetched, f"race.{session_kind(session)}", weekend, session)
        assert len(order) == drivers
        assert sorted(order["position"].dropna()) == list(range(1, order["position"].notna().sum() + 1))


@pytest.mark.parametrize(("season", "number", "session", "missing"), grouped(INCOMPLETE))
def test_an_incomplete_session_is_refused_and_gives_no_rows(source, season, number, session, missing):
    weekend = weekend_of_round(season, number)
    fetched = fetch(source, weekend, session)
    [refusal] = [refusal for refusal in fetched.refused if refusal.session == session]
    assert refusal.weekend == weekend.key
    assert missing in refusal.reason.split(" missing: ")[0]
    assert "needs a lap of every starter" in refusal.reason
    assert not refusal.retry  # years later the data stay missing
    for table in fetched.tables:
        assert len(rows_of(fetched, table, weekend, session)) == 0, table


@pytest.mark.parametrize(("season", "number"), grouped(RACE_SHEETS))
def test_official_results_need_no_timing(source, season, number):
    weekend = weekend_of_round(season, number)
    fetched = source.results([weekend])
    order = fetched.tables["race.results"]
    assert len(order) == (22 if season == 2026 else 20)
    assert list(order["official_order"]) == list(range(1, len(order) + 1))
    assert set(order["result_status"]) == {"official"}
    assert order["grid_position"].min() == 1
    assert "race" not in [refusal.session for refusal in fetched.refused]


@pytest.mark.parametrize(("season", "number", "absent"), grouped([
    (2023, 4, "logan-sargeant"), (2025, 6, "charles-leclerc")]))
def test_timing_tells_a_car_that_never_started_from_one_that_stopped_in_the_first_lap(source, season, number, absent):
    order = source.results([weekend_of_round(season, number)]).tables["race.sprint_results"].set_index("driver")
    assert len(order) == 20
    assert list(order.index[order["status"] == "not_started"]) == [absent]
    assert order.loc[absent, "grid_status"] == "not_started"


@pytest.mark.xdist_group("fastf1-2")
def test_a_car_that_stopped_in_the_first_lap_did_start(source):
    order = source.results([weekend_of_round(2018, 4)]).tables["race.results"].set_index("driver")
    assert order.loc[["esteban-ocon", "sergey-sirotkin"], "status"].tolist() == ["retired", "retired"]


@pytest.mark.xdist_group("fastf1-2")
def test_laps_and_results_are_independent(source):
    weekend = weekend_of_round(2024, 1)
    assert len(source.laps([weekend]).tables["race.laps"]) == 1129
    fetched = source.results([weekend])
    assert fetched.tables == {}
    assert [(r.session, r.retry) for r in fetched.refused] == [("race", False)]
    assert "race sheet of 2024-bahrain" in fetched.refused[0].reason


@pytest.mark.xdist_group("fastf1-1")
def test_grids_and_stops_of_a_race(source):
    weekend = weekend_of_round(2023, 1)
    grid = source.qualifying([weekend]).tables["race.grid"]
    assert sorted(grid["grid_position"]) == list(range(1, 21))
    stops = source.laps([weekend]).tables["race.pit_stops"]
    assert stops.groupby("driver")["stop"].max().max() >= 3
    assert stops["pit_lane_time_s"].median() == pytest.approx(25.3, abs=0.5)  # Sakhir


@pytest.mark.xdist_group("fastf1-0")
def test_pit_lane_starters_take_the_last_slots(source):
    order = source.results([weekend_of_round(2021, 1)]).tables["race.results"].set_index("driver")
    assert order.loc["sergio-perez", ["grid_status", "grid_position"]].tolist() == ["pit_lane", 21]  # slot 11 was empty


@pytest.mark.xdist_group("fastf1-1")
def test_cars_that_did_not_start_stay_on_the_sheet(source):
    order = source.results([weekend_of_round(2026, 2)]).tables["race.results"]
    absent = order[order["grid_status"] == "not_started"]
    assert sorted(absent["driver"]) == ["alexander-albon", "gabriel-bortoleto", "lando-norris", "oscar-piastri"]
    assert absent["grid_position"].isna().all()
    assert not absent["classified"].any()


@pytest.mark.xdist_group("fastf1-0")
def test_the_same_sheet_has_the_same_hash(source):
    first, second = (source.results([weekend_of_round(2021, 1)]).tables["race.results"] for _ in range(2))
    assert set(first["content_hash"]) == set(second["content_hash"])


@pytest.mark.xdist_group("fastf1-1")
def test_the_update_of_a_race_is_the_hash_of_its_results(source):
    weekend = weekend_of_round(2021, 1)
    version = source.news(weekend, "post_race").version
    assert [version] == list(source.results([weekend]).tables["race.results"]["content_hash"].unique())
    assert source.news(weekend_of_round(2021, 18), "pre_race").version not in (None, version)


@pytest.mark.xdist_group("fastf1-1")
def test_generated_laps_have_no_place_and_are_not_accurate(source):
    laps = source.laps([weekend_of_round(2018, 4)]).tables["race.laps"].set_index(["driver", "lap"])
    generated = laps.loc[[("esteban-ocon", 1), ("sergey-sirotkin", 1)]]
    assert generated["position"].isna().all()
    assert not generated["is_accurate"].any()
    assert laps["compound"].isin(["SOFT", "UNKNOWN"]).all()  # ultrasoft and supersoft are not among our compounds


@pytest.mark.parametrize(("season", "number"), grouped([(2018, 4), (2023, 1), (2024, 1)]))
def test_no_two_cars_share_a_place_at_the_end_of_a_lap(source, season, number):
    laps = source.laps([weekend_of_round(season, number)]).tables["race.laps"]
    with_position = laps[laps["position"].notna()]
    assert not with_position.duplicated(["lap", "position"]).any()
    cars = laps.groupby("lap")["driver"].nunique()
    assert (with_position.groupby("lap")["position"].max() <= cars).all()


@pytest.mark.xdist_group("fastf1-2")
def test_official_qualifying_replaces_what_fastf1_computes(source):
    order = source.qualifying([weekend_of_round(2021, 18)]).tables["race.qualifying"].set_index("driver")
    assert order.loc["valtteri-bottas", ["position", "q1_s", "q3_s"]].tolist() == [1, 76.727, 75.875]
    assert order.loc["lance-stroll", "position"] == 20
