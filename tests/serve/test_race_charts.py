"""Data of the race charts, without a browser: gaps, stints, cars on the ring, safety-car periods."""
from __future__ import annotations

import pytest

from f1_pipelines.plots.panels import TYRES
from f1_pipelines.serve.live_race import LiveRace
from f1_pipelines.serve.pages import race_charts
from f1_pipelines.serve.race_factory import RaceRequest, begin_race


@pytest.fixture(scope="module")
def race() -> LiveRace:
    """A finished sprint with a safety car."""
    live = begin_race(RaceRequest(family="late_safety_car", seed=3), "checklist")
    while not live.over:
        live.lap()
    assert {lap.status for lap in live.laps} >= {"green", "sc"}
    return live


def test_each_car_has_a_line_that_ends_at_its_gap(race):
    last = {f"#{car.number}": car.gap_s for car in race.laps[-1].cars}
    lines = {line["name"]: line["data"] for line in race_charts.gaps(race.laps)["series"]}
    assert {name: data[-1] for name, data in lines.items()} == {
        name: [race.laps[-1].lap, gap] for name, gap in last.items()}
    assert all(len(data) == len(race.laps) for data in lines.values())


def test_safety_car_periods_are_named(race):
    ours = next(line for line in race_charts.gaps(race.laps)["series"] if "markArea" in line)
    names = [start["name"] for start, _ in ours["markArea"]["data"]]
    assert "SC" in names
    laps = sum(end["xAxis"] - start["xAxis"] for start, end in ours["markArea"]["data"])
    assert laps == sum(lap.status != "green" for lap in race.laps[1:])


def test_stints_add_up_to_the_laps_driven_and_have_their_tyres(race):
    chart = race_charts.tyres(race.laps)
    assert chart["yAxis"]["data"] == [f"#{car.number}" for car in race.laps[-1].cars]
    for row, car in enumerate(race.laps[-1].cars):
        stints = [stint for series in chart["series"] if (stint := series["data"][row])["value"]]
        driven = [lap_car for lap in race.laps[1:] for lap_car in lap.cars
                  if lap_car.number == car.number and lap_car.gap_s is not None]
        assert sum(stint["value"] for stint in stints) == len(driven)
        assert len(stints) == 1 + sum(lap_car.stopped for lap_car in driven[:-1])
        assert stints[0]["itemStyle"]["color"] == TYRES[driven[0].compound]


def test_no_cars_overlap_on_the_ring(race):
    for lap in race.laps:
        points = [car["value"] for car in race_charts.ring(lap)["series"][0]["data"]]
        assert len(points) == sum(car.gap_s is not None for car in lap.cars)
        assert len({(radius, round(angle, 2)) for radius, angle in points}) == len(points)
        assert all(0 < radius <= 1 and 0 <= angle < 1 for radius, angle in points)


def test_all_charts_can_show_the_grid(race):
    grid = race.laps[:1]
    assert [race_charts.gaps(grid), race_charts.tyres(grid), race_charts.weather(grid), race_charts.ring(grid[0])]
    assert all(bar["value"] == 0 for series in race_charts.tyres(grid)["series"] for bar in series["data"])
