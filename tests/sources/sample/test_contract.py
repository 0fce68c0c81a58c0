from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pandas as pd
import pytest

from f1_pipelines.identity.line_ups import embedded_weekends
from f1_pipelines.sources.base import Fetched
from f1_pipelines.sources.calendar import calendar_rows, calendar_updates, overlay
from f1_pipelines.sources.classification import (
    check_classification,
    check_qualifying,
    classification_hash,
)
from f1_pipelines.sources.sample import SAMPLE_END
from f1_pipelines.sources.sample.sessions import segment_sizes
from f1_pipelines.tables.catalog import BY_NAME
from f1_pipelines.warehouse.database import WarehouseFile
from f1_pipelines.warehouse.ingest import store

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)  # of the fixture
TABLES = {
    "practice": {"race.practice", "race.weather"},
    "qualifying": {"race.qualifying", "race.grid", "race.weather"},
    "results": {"race.results", "race.sprint_results", "race.pit_stops"},
    "laps": {"race.laps", "race.session_laps", "race.weather", "race.race_control"},
}


@pytest.mark.parametrize("method", TABLES)
def test_every_frame_fits_its_table_and_is_labelled(make_source, weekends, method):
    fetched = getattr(make_source(), method)(weekends)
    assert set(fetched.tables) == TABLES[method] and not fetched.refused
    for name, frame in fetched.tables.items():
        pd.testing.assert_frame_equal(BY_NAME[name].conform(frame), frame)
        assert len(frame)
        assert set(frame["source"]) == {"sample"}
        assert frame["source_version"].str.startswith("sample ").all()
        assert frame["fetched_at"].eq(NOW).all()


def test_each_weekend_has_the_sessions_of_its_format(make_source, weekends):
    source = make_source()
    results = source.results(weekends).tables
    rows = pd.concat([source.practice(weekends).tables["race.practice"],
                      source.qualifying(weekends).tables["race.qualifying"],
                      results["race.results"].assign(session="race"),
                      results["race.sprint_results"].assign(session="sprint")])
    sessions = rows.groupby("weekend")["session"].agg(set)
    for weekend in weekends:
        assert sessions[weekend.key] == set(weekend.session_names), weekend.key


def test_classifications_and_qualifyings_keep_the_rules(all_tables):
    for name in ("race.results", "race.sprint_results"):
        for _, sheet in all_tables[name].groupby("weekend"):
            check_classification(sheet)
            assert set(sheet["content_hash"]) == {classification_hash(sheet)}
    for _, sheet in all_tables["race.qualifying"].groupby(["weekend", "session"]):
        check_qualifying(sheet)


def test_exactly_the_weekends_that_were_held_have_results(all_tables):
    held = [w.key for w in embedded_weekends().values()
            if w.season >= 2022 and w.planned == "scheduled" and w.race_start < SAMPLE_END]
    assert set(all_tables["race.results"]["weekend"]) == set(held) == set(all_tables["race.laps"]["weekend"])
    assert len(held) == 103
    states = all_tables["race.calendar"].set_index("weekend")["state"]
    assert set(states) == {"upcoming", "cancelled"}, "only stored results make a weekend done"
    assert states["2023-china"] == "cancelled"


def test_fields_are_those_of_the_season(all_tables):
    cars = all_tables["race.results"].groupby("weekend")["driver"].nunique()
    assert cars["2026-australia"] == 22 and cars["2025-australia"] == 20
    assert cars["2024-australia"] == 19  # one car crashed in practice, without a spare chassis
    assert set(cars[cars.index.str.startswith("2026")]) == {22}
    ferrari = all_tables["race.results"].query("weekend == '2024-saudi-arabia' and constructor == 'ferrari'")
    assert dict(zip(ferrari["driver"], ferrari["car_number"], strict=True)) == {
        "charles-leclerc": 16, "oliver-bearman": 38}


@pytest.mark.parametrize(("field", "sizes"), [(20, (20, 15, 10)), (22, (22, 16, 10)), (24, (24, 17, 10))])
def test_segments_follow_the_size_of_the_field(field, sizes):
    assert segment_sizes(field) == sizes


def test_no_more_cars_than_the_segment_takes_and_order_is_by_time_within_it(all_tables):
    qualifying = all_tables["race.qualifying"]
    times = qualifying.groupby(["weekend", "session"])[["q1_s", "q2_s", "q3_s"]].count()
    before_2026 = times.index.get_level_values("weekend").str[:4] < "2026"
    assert (times.loc[before_2026, "q2_s"] <= 15).all() and (times.loc[~before_2026, "q2_s"] <= 16).all()
    assert (times["q3_s"] <= 10).all() and times["q3_s"].median() == 10
    sheet = qualifying.query("weekend == '2026-china' and session == 'qualifying'").sort_values("position")
    assert sheet["q3_s"].head(10).dropna().is_monotonic_increasing
    assert sheet["q2_s"].iloc[10:16].dropna().is_monotonic_increasing
    assert sheet["q1_s"].iloc[16:].dropna().is_monotonic_increasing


def test_the_sprint_of_2022_sets_the_grid_and_later_ones_do_not(all_tables):
    car = ["weekend", "driver"]
    grid = all_tables["race.grid"].query("session == 'race'").set_index(car)["grid_position"]
    sprint = all_tables["race.sprint_results"].set_index(car)["official_order"]
    qualifying = all_tables["race.qualifying"].query("session == 'qualifying'").set_index(car)["position"]
    sheets = pd.concat([grid, sprint, qualifying], axis=1, join="inner").astype(float)
    for is_2022, cars in sheets.groupby(sheets.index.get_level_values("weekend").str.startswith("2022")):
        distance = cars[["official_order", "position"]].sub(cars["grid_position"], axis=0).abs().mean()
        assert (distance["official_order"] < distance["position"]) == is_2022


def test_grid_sheets_and_classifications_agree(all_tables):
    grid = all_tables["race.grid"].query("session == 'race'").set_index(["weekend", "driver"])
    results = all_tables["race.results"].set_index(["weekend", "driver"])
    both = results.join(grid[["grid_position", "grid_status"]], rsuffix="_sheet")
    starters = both[both["grid_status"] != "not_started"]
    assert (starters["grid_position"] == starters["grid_position_sheet"]).all()
    in_lane = starters[starters["grid_status"] == "pit_lane"]
    last_of_grid = starters[starters["grid_status"] == "grid"].groupby("weekend")["grid_position"].max()
    behind = in_lane["grid_position"] > in_lane.index.get_level_values("weekend").map(last_of_grid)
    assert len(behind) and behind.all()


def test_points_are_those_of_the_season(all_tables):
    results = all_tables["race.results"]
    total = results.groupby("weekend")["points"].sum()
    until_2024 = total.index.str[:4] <= "2024"
    assert (total[~until_2024] == 101).all()
    assert set(total[until_2024]) == {101.0, 102.0}  # with a point for the fastest lap of a car in the top ten
    assert (all_tables["race.sprint_results"].groupby("weekend")["points"].sum() == 36).all()


def test_cancelled_weekends_are_refused_as_expected(make_source):
    for key in ("2022-russia", "2026-saudi-arabia"):
        for method in TABLES:
            fetched = getattr(make_source(), method)([embedded_weekends()[key]])
            assert all(len(frame) == 0 for frame in fetched.tables.values())
            assert fetched.refused and all(refusal.expected for refusal in fetched.refused)
    cancelled = replace(embedded_weekends()["2025-bahrain"], planned="cancelled")
    assert make_source().results([cancelled]).refused[0].reason == "the weekend was cancelled"


def test_seasons_outside_the_sample_give_no_rows_and_no_fault(make_source):
    assert make_source().calendar([2018, 2021, 2031]).empty
    fetched = make_source().results([embedded_weekends()["2021-bahrain"]])
    assert fetched.tables["race.results"].empty
    assert [refusal.expected for refusal in fetched.refused] == [True]


def test_held_sessions_follow_the_clock(make_source):
    weekend = embedded_weekends()["2025-bahrain"]
    over = weekend.race_start + timedelta(hours=4)
    early = make_source(over - timedelta(minutes=1))
    assert [refusal.retry for refusal in early.results([weekend]).refused] == [True]
    assert len(early.qualifying([weekend]).tables["race.grid"]) == 20
    late = make_source(over)
    assert len(late.results([weekend]).tables["race.results"]) == 20


@pytest.mark.parametrize("now", [datetime(2026, 8, 23, 5, 0, tzinfo=UTC), datetime(2031, 1, 1, tzinfo=UTC)])
def test_there_is_always_a_next_weekend_with_its_grid_known_and_its_race_not(make_source, now):
    source, weekend = make_source(now), embedded_weekends()["2026-netherlands"]
    grid = source.qualifying([weekend]).tables["race.grid"]
    assert grid.groupby("session").size().to_dict() == {"race": 22, "sprint": 22}
    fetched = source.results([weekend])
    assert fetched.tables["race.results"].empty and len(fetched.tables["race.sprint_results"]) == 22
    assert [(refusal.session, refusal.expected) for refusal in fetched.refused] == [("race", True)]


def test_its_calendar_gives_no_updates(make_source):
    known = [weekend for weekend in embedded_weekends().values() if weekend.season >= 2022]
    for now in (NOW, datetime(2024, 5, 1, tzinfo=UTC)):
        calendar = overlay(calendar_rows(known, now), make_source(now).calendar(range(2022, 2027)), now)
        assert calendar_updates(known, calendar, now) == []


def test_storing_it_twice_gives_one_version(make_source, weekends, tmp_path):
    source, warehouse = make_source(), WarehouseFile(tmp_path / "f1.duckdb")
    written = []
    for _ in range(2):
        with warehouse.write("test") as connection:
            store(connection, Fetched({"race.calendar": source.calendar([2022, 2023, 2024, 2025, 2026])}))
            written.append([store(connection, getattr(source, method)(weekends)) for method in TABLES])
    first, second = written
    assert first[2]["race.results"] == len(source.results(weekends).tables["race.results"])
    assert second[2]["race.results"] == second[2]["race.sprint_results"] == 0
    assert second[3] == first[3]
