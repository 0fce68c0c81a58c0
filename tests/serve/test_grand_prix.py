"""Grands Prix from the published warehouse through /reset and /simulate."""
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
    """Publish 2026-monaco with a grid of six cars; the address of the server that reads it."""
    drivers = [f"driver-{name}" for name in "abcdef"]
    grid = pd.DataFrame({
        "weekend": "2026-monaco", "session": "race", "driver": drivers, "constructor": "team", "grid_status": "grid",
        "car_number": range(1, 7), "grid_position": range(1, 7), "source": "f1db", "source_version": "1",
        "fetched_at": NOW})
    with WarehouseFile(settings().f1_warehouse).write("test") as connection:
        for table, frame in ((CALENDAR, calendar_rows(season_weekends(2026), NOW)), (GRID, grid)):
            replace_slices(connection, table, table.conform(frame.reindex(columns=table.column_names)))
    return url


def test_an_agent_drives_a_grand_prix(monaco):
    request = {"family": "grand_prix", "weekend": "2026-monaco", "car": "driver-b", "seed": 1}
    reset = requests.post(f"{monaco}/reset", json=request, timeout=60).json()
    assert reset["observation"]["race"]["laps"] == 78 and reset["observation"]["race"]["number"] == 2
    step = requests.post(f"{monaco}/step", json={"action": {"command": "STAY_OUT"}, "session_id": reset["session_id"]},
                         timeout=60).json()
    assert step["observation"]["race"]["lap"] == 2
    state = requests.get(f"{monaco}/state", params={"session_id": reset["session_id"]}, timeout=60).json()
    assert (state["weekend"], state["lap"], state["laps"]) == ("2026-monaco", 1, 78)


def test_simulate_returns_the_drivers(monaco):
    request = {"family": "grand_prix", "weekend": "2026-monaco", "car": "driver-b", "policy": "done"}
    race = requests.post(f"{monaco}/simulate", json=request, timeout=120).json()
    assert race["start"]["weekend"] == "2026-monaco" and len(race["laps"]) == 79
    assert [car["driver"] for car in race["laps"][0]["cars"] if car["ours"]] == ["driver-b"]


@pytest.mark.parametrize(("fields", "message"), [
    ({"weekend": "2026-monaco", "car": "nobody"}, "'nobody' is no car of the grid"),
    ({"weekend": "2026-italy", "car": "driver-b"}, "2026-italy has no grid yet"),
    ({"weekend": "1950-monza", "car": "driver-b"}, "1950-monza is not loaded"),
    ({"weekend": "2026-monaco"}, "a grand_prix needs a weekend")])
def test_an_impossible_grand_prix_is_refused_with_the_reason(monaco, fields, message):
    reply = requests.post(f"{monaco}/simulate", json={"family": "grand_prix", **fields}, timeout=60)
    assert reply.status_code == 422 and message in reply.json()["detail"]
