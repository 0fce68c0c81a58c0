"""What the charts of a race say, without a browser: gaps, stints, cars on the ring, closed track."""
from __future__ import annotations

import pytest

from f1_pipelines.plots.panels import TYRES
from f1_pipelines.serve.live_race import LiveRace
from f1_pipelines.serve.pages import race_charts
from f1_pipelines.serve.race_factory import RaceRequest, begin_race


@pytest.fixture(scope="module")
def race() -> LiveRace:
    """A sprint with a safety car, to its flag."""
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


def test_a_closed_track_is_named(race):
    ours = next(line for line in race_charts.gaps(race.laps)["series"] if "markArea" in line)
    named = [begin["name"] for begin, _ in ours["markArea"]["data"]]
    assert "SC" in named
    closed = sum(end["xAxis"] - begin["xAxis"] for begin, end in ours["markArea"]["data"])
    assert closed == sum(lap.status != "green" for lap in race.laps[1:])


def test_stints_add_up_to_the_laps_driven_and_carry_their_tyres(race):
    told = race_charts.tyres(race.laps)
    assert told["yAxis"]["data"] == [f"#{car.number}" for car in race.laps[-1].cars]
    for row, car in enumerate(race.laps[-1].cars):
        stints = [stint for series in told["series"] if (stint := series["data"][row])["value"]]
        driven = [at for lap in race.laps[1:] for at in lap.cars if at.number == car.number and at.gap_s is not None]
        assert sum(stint["value"] for stint in stints) == len(driven)
        assert len(stints) == 1 + sum(at.stopped for at in driven[:-1])
        assert stints[0]["itemStyle"]["color"] == TYRES[driven[0].compound]


def test_no_car_hides_another_on_the_ring(race):
    for lap in race.laps:
        at = [car["value"] for car in race_charts.ring(lap)["series"][0]["data"]]
        assert len(at) == sum(car.gap_s is not None for car in lap.cars)
        assert len({(radius, round(angle, 2)) for radius, angle in at}) == len(at)
        assert all(0 < radius <= 1 and 0 <= angle < 1 for radius, angle in at)


def test_the_grid_has_charts_too(race):
    grid = race.laps[:1]
    assert [race_charts.gaps(grid), race_charts.tyres(grid), race_charts.weather(grid), race_charts.ring(grid[0])]
    assert all(bar["value"] == 0 for series in race_charts.tyres(grid)["series"] for bar in series["data"])
