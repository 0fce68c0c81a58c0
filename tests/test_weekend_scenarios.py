"""A Grand Prix from the warehouse: the data read of a weekend, and errors without data."""
from __future__ import annotations

from datetime import UTC, datetime

import pandas as pd
import pytest

from f1_pipelines.calibration.circuits import circuit_rows
from f1_pipelines.identity.weekends import season_weekends
from f1_pipelines.sim.engine.priors import circuit_prior
from f1_pipelines.sim.scenarios import make_grand_prix, make_scenario
from f1_pipelines.sources.calendar import calendar_rows
from f1_pipelines.tables.race import CALENDAR, GRID, LAPS, PRACTICE, QUALIFYING
from f1_pipelines.tables.sim import CIRCUITS
from f1_pipelines.warehouse.database import WarehouseFile
from f1_pipelines.warehouse.replace import replace_slices
from f1_pipelines.weekend_scenarios import NoGrandPrix, fitted_circuits, read_weekend

NOW = datetime(2026, 6, 7, 9, 0, tzinfo=UTC)
DRIVERS = [f"driver-{chr(97 + k)}" for k in range(20)]


def sheet(**columns: object) -> pd.DataFrame:
    """One row per driver, with the columns that all tables share."""
    return pd.DataFrame({"weekend": "2026-monaco", "driver": DRIVERS, "constructor": [f"team-{k // 2}" for k in
                                                                                     range(20)],
                         "car_number": range(1, 21), "source": "f1db", "source_version": "1", "fetched_at": NOW,
                         **columns})


@pytest.fixture
def warehouse(tmp_path):
    """A warehouse with the calendar of 2026 and circuits; `store(table, frame)` adds rows."""
    file = WarehouseFile(tmp_path / "f1.duckdb")
    calendar = calendar_rows(season_weekends(2026), NOW)

    def store(table, frame: pd.DataFrame) -> WarehouseFile:
        with file.write("test") as connection:
            replace_slices(connection, table, table.conform(frame.reindex(columns=table.column_names)))
        return file

    store(CALENDAR, calendar)
    store(CIRCUITS, circuit_rows(None, calendar).assign(stop_loss_green_s=26.4, provenance="fitted"))
    file.store = store
    return file


@pytest.fixture
def grid(warehouse):
    """Qualifying in steps of 0.1 s from driver-a; driver-b starts last from the pit lane, driver-t does not start."""
    lap_s = [72 + 0.1 * k for k in range(20)]
    warehouse.store(QUALIFYING, sheet(session="qualifying", position=range(1, 21), q1_s=lap_s))
    slots = [1, 19, *range(2, 19), None]
    status = ["grid", "pit_lane", *["grid"] * 17, "not_started"]
    warehouse.store(GRID, sheet(session="race", grid_position=pd.array(slots, "Int64"), grid_status=status))
    return warehouse


def read(file: WarehouseFile, key: str = "2026-monaco"):
    with file.read() as connection:
        return read_weekend(connection, key)


def test_grid_and_qualifying_suffice_before_the_race(grid):
    weekend = read(grid)
    assert (weekend.key, weekend.laps, len(weekend.entries), weekend.rain_chance) == ("2026-monaco", 78, 19, 0.11)
    assert weekend.circuit.circuit == "monaco" and weekend.circuit.stop_loss_green_s == 26.4
    assert [e.driver for e in weekend.entries][::18] == ["driver-a", "driver-b"]
    pace = {e.driver: e.pace_s for e in weekend.entries}
    assert sorted(pace, key=pace.get) == DRIVERS[:19]
    assert pace["driver-s"] - pace["driver-a"] == pytest.approx(0.75 * 1.8 / 72 * weekend.circuit.base_lap_s, rel=1e-3)
    scenario = make_grand_prix(weekend, 2, 1)
    assert scenario.drivers[0] == "driver-b" and scenario.grid[0] == 19 and scenario.compound.max() <= 2


def test_pace_comes_from_practice_without_qualifying_and_else_from_the_grid(warehouse, grid):
    with warehouse.write("test") as connection:
        connection.execute("DELETE FROM race.qualifying")
    by_grid = {e.driver: e.pace_s for e in read(warehouse).entries}
    assert by_grid["driver-a"] < by_grid["driver-c"] < by_grid["driver-b"]
    warehouse.store(PRACTICE, sheet(session="practice_1", position=range(1, 21), laps=20,
                                    best_lap_s=[74 - 0.1 * k for k in range(20)]))
    by_practice = {e.driver: e.pace_s for e in read(warehouse).entries}
    assert by_practice["driver-s"] < by_practice["driver-a"]


@pytest.mark.parametrize(("tyre", "compound", "rain"), [("SOFT", 0, 0.05), ("INTERMEDIATE", 3, 0.6)])
def test_real_laps_set_start_tyres_and_rain_chance(grid, tyre, compound, rain):
    laps = pd.concat([sheet(lap=n, compound=tyre, lap_time_s=80.0) for n in (1, 2)])
    grid.store(LAPS, laps)
    weekend = read(grid)
    assert weekend.rain_chance == rain and {e.compound for e in weekend.entries} == {compound}


def test_missing_and_duplicate_numbers_become_free_ones(grid):
    frame = sheet(session="race", grid_position=range(1, 21), grid_status="grid",
                  car_number=pd.array([7, 7, None, *range(10, 27)], "Int64"))
    grid.store(GRID, frame)
    numbers = [e.number for e in read(grid).entries]
    assert len(set(numbers)) == 20 and numbers[0] == 7 and numbers[3:] == list(range(10, 27))
    assert make_grand_prix(read(grid), "driver-c", 1).numbers[0] == numbers[2]


@pytest.mark.parametrize(("key", "message"), [
    ("2026-monaco", "no grid yet"), ("2026-saudi-arabia", "was cancelled"), ("2019-monaco", "not loaded")])
def test_the_error_for_a_weekend_without_data_says_what_to_do(warehouse, key, message):
    with pytest.raises(NoGrandPrix, match=message) as problem:
        read(warehouse, key)
    assert "materialize" in str(problem.value) or "another weekend" in str(problem.value)


def test_sprints_use_fitted_circuits(warehouse):
    with warehouse.read() as connection:
        circuits = fitted_circuits(connection)
    scenario = make_scenario("dry_strategy_sprint", 4, circuit="monza", circuits=circuits)
    assert scenario.circuit.stop_loss_green_s == 26.4 != circuit_prior(scenario.circuit.circuit).stop_loss_green_s


def test_real_weekends_can_be_raced(real, tmp_path):
    """Grids of f1db: 2024-sao-paulo was wet, in 2026 22 cars start."""
    file = WarehouseFile(tmp_path / "f1.duckdb")
    with file.write("test") as connection:
        for table, name in ((CALENDAR, "calendar"), (GRID, "grid"), (QUALIFYING, "qualifying")):
            replace_slices(connection, table, real[name][real[name]["weekend"].isin(("2026-monaco", "2024-sao-paulo"))])
    assert len(read(file).entries) == 22 and read(file).laps == 78
    scenario = make_grand_prix(read(file), "leclerc", 3)
    assert scenario.drivers[0] == "charles-leclerc" and scenario.cars == 22
    assert make_grand_prix(read(file, "2024-sao-paulo"), "norris", 3).grid[0] == 1
