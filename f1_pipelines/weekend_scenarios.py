"""A real weekend as a scenario of the simulator: `read_weekend(connection, "2026-monaco")`, of the published warehouse.

Grid and distance are the weekend's own. Pace is the qualifying gap to the median car times .75, the best single guess
of race pace (docs/physics.md#replay), else the practice gap, else the grid. Circuits have their fitted parameters where
`circuit_fits` has run. Whether it rained there only makes rain more or less likely.
"""
from __future__ import annotations

import duckdb
import numpy as np
import pandas as pd

from f1_pipelines.calibration.circuits import circuit_parameters
from f1_pipelines.calibration.pace_forecast import qualifying_gaps as with_qualifying_gaps
from f1_pipelines.calibration.real_race import CODE
from f1_pipelines.calibration.stage import RAIN_TYRES, WET_SHARE
from f1_pipelines.identity.weekends import weekend as known_weekend
from f1_pipelines.settings import settings
from f1_pipelines.sim.engine.parameters import CircuitParameters
from f1_pipelines.sim.engine.priors import circuit_prior
from f1_pipelines.sim.scenarios import Entry, GrandPrix
from f1_pipelines.tables.race import NON_STARTERS
from f1_pipelines.warehouse.database import WarehouseFile

RACE_SHARE = 0.75  # of a qualifying gap that shows in the race
GRID_GAP_PCT = 0.10  # a place on the grid, where nothing else is known of pace
RAIN_AFTER_WET, RAIN_AFTER_DRY, RAIN_UNKNOWN = 0.6, 0.05, 0.11  # docs/physics.md#rain: 18 of 165 races were wet
LAST_NUMBERS = range(99, 0, -1)


class NoGrandPrix(ValueError):
    """A weekend that no race can be rebuilt from; says what to do."""


def stored_weekend(key: str) -> GrandPrix:
    """That weekend by the published warehouse of the settings."""
    known = known_weekend(key, settings().calendar_path)
    if known.planned == "cancelled":
        raise NoGrandPrix(f"{key} was cancelled: there is no grid to race from; take another weekend")
    with WarehouseFile(settings().f1_warehouse).read() as connection:
        return read_weekend(connection, key)


def read_weekend(connection: duckdb.DuckDBPyConnection, key: str) -> GrandPrix:
    """What is known of a weekend before lights out, for `make_grand_prix`.

    Raises:
        NoGrandPrix: It is not loaded, was cancelled, or has no grid yet.
    """
    rows = _rows(connection, "SELECT * FROM race.calendar WHERE weekend = ?", key)
    if rows.empty:
        raise NoGrandPrix(f"{key} is not loaded; {_how_to_load(key)}")
    event = rows.iloc[0]
    if event["state"] == "cancelled":
        raise NoGrandPrix(f"{key} was cancelled: there is no grid to race from; take another weekend")
    starters = _starters(connection, key)
    if starters.empty:
        held = connection.execute("SELECT max_by(weekend, race_start) FROM race.calendar WHERE weekend IN "
                                  "(SELECT weekend FROM race.grid WHERE session = 'race')").fetchall()[0][0]
        hint = f"; the latest weekend with one is {held}" if held else ""
        raise NoGrandPrix(f"{key} has no grid yet (it is {event['state']}); once qualifying is over, "
                          f"{_how_to_load(key)}{hint}")
    circuit = circuit_of(connection, str(event["circuit"]), int(event["season"]))
    laps = circuit.race_laps if pd.isna(event["race_laps"]) else int(event["race_laps"])
    compounds, rain = _driven(connection, key)
    pace = _pace_pct(connection, key, starters) / 100.0 * circuit.base_lap_s
    numbers = _numbers(starters["car_number"])
    entries = tuple(
        Entry(str(row.driver), number, str(row.constructor), place, round(float(pace_s), 3),
              compounds.get(str(row.driver), -1))
        for place, (row, number, pace_s) in enumerate(zip(starters.itertuples(), numbers, pace, strict=True), 1))
    return GrandPrix(key, circuit, laps, entries, rain)


def fitted_circuits(connection: duckdb.DuckDBPyConnection) -> dict[str, CircuitParameters]:
    """The newest parameters of each circuit in `sim.circuits`, as `make_scenario` takes them."""
    rows = _rows(connection, "SELECT * FROM sim.circuits QUALIFY season = max(season) OVER (PARTITION BY circuit)")
    return {row["circuit"]: circuit_parameters(row) for row in rows.to_dict("records")}


def circuit_of(connection: duckdb.DuckDBPyConnection, circuit: str, season: int) -> CircuitParameters:
    """A circuit as fitted for that season, else for the nearest one, else its prior."""
    rows = _rows(connection, "SELECT * FROM sim.circuits WHERE circuit = ? ORDER BY abs(season - ?), season DESC",
                 circuit, season)
    return circuit_prior(circuit, season) if rows.empty else circuit_parameters(rows.iloc[0])


def _starters(connection: duckdb.DuckDBPyConnection, key: str) -> pd.DataFrame:
    """driver, constructor, car_number in the order of the grid: of the classification, else as known beforehand."""
    rows = _rows(connection, f"""
        SELECT weekend, driver, constructor, car_number, grid_position FROM race.current_results
        WHERE weekend = ? AND status NOT IN {NON_STARTERS} ORDER BY grid_position NULLS LAST, official_order""", key)
    if rows.empty:
        rows = _rows(connection, """
            SELECT weekend, driver, constructor, car_number, grid_position FROM race.grid
            WHERE weekend = ? AND session = 'race' AND grid_status <> 'not_started'
            ORDER BY grid_position NULLS LAST, driver""", key)
    return rows


def _pace_pct(connection: duckdb.DuckDBPyConnection, key: str, starters: pd.DataFrame) -> np.ndarray:
    """(N,) race pace expected of each starter, % of a lap against the median car."""
    best = _rows(connection, "SELECT weekend, driver, q1_s, q2_s, q3_s FROM race.qualifying "
                             "WHERE weekend = ? AND session = 'qualifying'", key)
    if best[["q1_s", "q2_s", "q3_s"]].isna().all(axis=None):
        best = _rows(connection, "SELECT weekend, driver, min(best_lap_s) AS q1_s, NULL::DOUBLE AS q2_s, "
                                 "NULL::DOUBLE AS q3_s FROM race.practice WHERE weekend = ? GROUP BY ALL", key)
    if best["q1_s"].isna().all():
        return GRID_GAP_PCT * (np.arange(len(starters)) - (len(starters) - 1) / 2)
    gaps = with_qualifying_gaps(best, starters[["weekend", "driver", "constructor"]], [key])
    return (RACE_SHARE * gaps.set_index("driver")["qualifying_pct"]).reindex(starters["driver"]).to_numpy(float)


def _driven(connection: duckdb.DuckDBPyConnection, key: str) -> tuple[dict[str, int], float]:
    """Start tyres by driver, and the chance of rain that the laps of the real race speak for."""
    laps = _rows(connection, "SELECT driver, lap, compound FROM race.laps WHERE weekend = ? AND compound IS NOT NULL",
                 key)
    if laps.empty:
        return {}, RAIN_UNKNOWN
    first = laps[laps["lap"] == 1]
    compounds = {driver: CODE[tyre] for driver, tyre in zip(first["driver"], first["compound"], strict=True)
                 if tyre in CODE}
    return compounds, RAIN_AFTER_WET if laps["compound"].isin(RAIN_TYRES).mean() >= WET_SHARE else RAIN_AFTER_DRY


def _numbers(car_numbers: pd.Series) -> list[int]:
    """Car numbers, one each: a number that is missing or taken becomes a free one."""
    taken, numbers = set(), []
    for value in car_numbers:
        number = int(value) if pd.notna(value) and 0 < value <= 99 else 0
        if not number or number in taken:
            number = next(n for n in LAST_NUMBERS if n not in taken and n not in set(car_numbers.dropna()))
        taken.add(number)
        numbers.append(number)
    return numbers


def _rows(connection: duckdb.DuckDBPyConnection, sql: str, *values: object) -> pd.DataFrame:
    return connection.execute(sql, list(values)).df()


def _how_to_load(key: str) -> str:
    return ("load it with `dagster asset materialize -m f1_pipelines.definitions --select "
            f"race_calendar,practice_results,qualifying_results --partition {key}`")
