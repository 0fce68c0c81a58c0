"""A Grand Prix of the published warehouse, on the pit wall of an agent and of /simulate."""
from __future__ import annotations

from datetime import UTC, datetime

import pandas as pd
import pytest
import requests

from f1_pipelines.identity.weekends import season_weekends
from f1_pipelines.settings import settings
from f1_pipelines.sources.calendar import calendar_rows
from f1_pipelines.tables.race import CALENDAR, GRID
from f1_pipelines.warehouse.database import WarehouseFile
from f1_pipelines.warehouse.replace import replace_slices

NOW = datetime(2026, 6, 7, 9, 0, tzinfo=UTC)


@pytest.fixture
def monaco(url):
    """2026-monaco with a grid of six is published; the address of the server that reads it."""
    drivers = [f"driver-{name}" for name in "abcdef"]
    grid = pd.DataFrame({
        "weekend": "2026-monaco", "session": "race", "driver": drivers, "constructor": "team", "grid_status": "grid",
        "car_number": range(1, 7), "grid_position": range(1, 7), "source": "f1db", "source_version": "1",
        "fetched_at": NOW})
    with WarehouseFile(settings().f1_warehouse).write("test") as connection:
        for table, frame in ((CALENDAR, calendar_rows(season_weekends(2026), NOW)), (GRID, grid)):
            replace_slices(connection, table, table.conform(frame.reindex(columns=table.column_names)))
    return url


def test_an_agent_races_it(monaco):
    asked = {"family": "grand_prix", "weekend": "2026-monaco", "car": "driver-b", "seed": 1}
    begun = requests.post(f"{monaco}/reset", json=asked, timeout=60).json()
    assert begun["observation"]["race"]["laps"] == 78 and begun["observation"]["race"]["number"] == 2
    told = requests.post(f"{monaco}/step", json={"action": {"command": "STAY_OUT"}, "session_id": begun["session_id"]},
                         timeout=60).json()
    assert told["observation"]["race"]["lap"] == 2
    state = requests.get(f"{monaco}/state", params={"session_id": begun["session_id"]}, timeout=60).json()
    assert (state["weekend"], state["lap"], state["laps"]) == ("2026-monaco", 1, 78)


def test_the_simulator_tells_its_drivers(monaco):
    asked = {"family": "grand_prix", "weekend": "2026-monaco", "car": "driver-b", "policy": "done"}
    race = requests.post(f"{monaco}/simulate", json=asked, timeout=120).json()
    assert race["start"]["weekend"] == "2026-monaco" and len(race["laps"]) == 79
    assert [car["driver"] for car in race["laps"][0]["cars"] if car["ours"]] == ["driver-b"]


@pytest.mark.parametrize(("asked", "told"), [
    ({"weekend": "2026-monaco", "car": "nobody"}, "'nobody' is no car of the grid"),
    ({"weekend": "2026-italy", "car": "driver-b"}, "2026-italy has no grid yet"),
    ({"weekend": "1950-monza", "car": "driver-b"}, "1950-monza is not loaded"),
    ({"weekend": "2026-monaco"}, "a grand_prix wants a weekend")])
def test_what_can_not_be_raced_is_told(monaco, asked, told):
    answer = requests.post(f"{monaco}/simulate", json={"family": "grand_prix", **asked}, timeout=60)
    assert answer.status_code == 422 and told in answer.json()["detail"]
