"""Real weekends as scenarios of the simulator: `read_weekend(connection, "2026-monaco")` from the published warehouse.

Grid and distance are the weekend's own. Pace is 0.75 times the qualifying gap to the median car, the best single
estimate of race pace (docs/physics.md#replay), else the practice gap, else the grid. Circuits use the parameters of
`circuit_fits` if it has run. Real rain only changes the probability of rain.
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

RACE_SHARE = 0.75  # race pace gap per qualifying gap
GRID_GAP_PCT = 0.10  # pace gap per grid place, if there is no other pace data [% of a lap]
RAIN_AFTER_WET, RAIN_AFTER_DRY, RAIN_UNKNOWN = 0.6, 0.05, 0.11  # docs/physics.md#rain: 18 of 165 races were wet
LAST_NUMBERS = range(99, 0, -1)
_CANCELLED = "{} was cancelled and has no grid; choose another weekend"


class NoGrandPrix(ValueError):
    """No race can be rebuilt from a weekend; the message says what to do."""


def stored_weekend(key: str) -> GrandPrix:
    """Read a weekend from the published warehouse of the settings. Raises like `read_weekend`."""
    if known_weekend(key, settings().calendar_path).planned == "cancelled":
        raise NoGrandPrix(_CANCELLED.format(key))
    with WarehouseFile(settings().f1_warehouse).read() as connection:
        return read_weekend(connection, key)


def read_weekend(connection: duckdb.DuckDBPyConnection, key: str) -> GrandPrix:
    """Read the state of a weekend before the start, for `make_grand_prix`.

    Raises:
        NoGrandPrix: The weekend is not loaded, was cancelled, or has no grid yet.
    """
    rows = _rows(connection, "SELECT * FROM race.calendar WHERE weekend = ?", key)
    if rows.empty:
        raise NoGrandPrix(f"{key} is not loaded; {_how_to_load(key)}")
    event = rows.iloc[0]
    if event["state"] == "cancelled":
        raise NoGrandPrix(_CANCELLED.format(key))
    starters = _starters(connection, key)
    if starters.empty:
        latest = connection.execute("SELECT max_by(weekend, race_start) FROM race.calendar WHERE weekend IN "
                                    "(SELECT weekend FROM race.grid WHERE session = 'race')").fetchall()[0][0]
        hint = f"; the latest weekend with a grid is {latest}" if latest else ""
        raise NoGrandPrix(f"{key} has no grid yet (state: {event['state']}); after qualifying, "
                          f"{_how_to_load(key)}{hint}")
    circuit = circuit_of(connection, str(event["circuit"]), int(event["season"]))
    laps = circuit.race_laps if pd.isna(event["race_laps"]) else int(event["race_laps"])
    compounds, rain = _start_tyres_and_rain(connection, key)
    pace = _pace_pct(connection, key, starters) / 100.0 * circuit.base_lap_s
    numbers = _numbers(starters["car_number"])
    entries = tuple(
        Entry(str(row.driver), number, str(row.constructor), place, round(float(pace_s), 3),
              compounds.get(str(row.driver), -1))
        for place, (row, number, pace_s) in enumerate(zip(starters.itertuples(), numbers, pace, strict=True), 1))
    return GrandPrix(key, circuit, laps, entries, rain)


def fitted_circuits(connection: duckdb.DuckDBPyConnection) -> dict[str, CircuitParameters]:
    """Read the newest parameters of each circuit from `sim.circuits`, for `make_scenario`."""
    rows = _rows(connection, "SELECT * FROM sim.circuits QUALIFY season = max(season) OVER (PARTITION BY circuit)")
    return {row["circuit"]: circuit_parameters(row) for row in rows.to_dict("records")}


def circuit_of(connection: duckdb.DuckDBPyConnection, circuit: str, season: int) -> CircuitParameters:
    """Get the circuit's parameters as fitted for this season, else for the nearest one, else its prior."""
    rows = _rows(connection, "SELECT * FROM sim.circuits WHERE circuit = ? ORDER BY abs(season - ?), season DESC",
                 circuit, season)
    return circuit_prior(circuit, season) if rows.empty else circuit_parameters(rows.iloc[0])


def _starters(connection: duckdb.DuckDBPyConnection, key: str) -> pd.DataFrame:
    """driver, constructor, car_number in grid order, from the classification or else from the published grid."""
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
    """(N,) expected race pace of each starter relative to the median car [% of a lap]."""
    best = _rows(connection, "SELECT weekend, driver, q1_s, q2_s, q3_s FROM race.qualifying "
                             "WHERE weekend = ? AND session = 'qualifying'", key)
    if best[["q1_s", "q2_s", "q3_s"]].isna().all(axis=None):
        best = _rows(connection, "SELECT weekend, driver, min(best_lap_s) AS q1_s, NULL::DOUBLE AS q2_s, "
                                 "NULL::DOUBLE AS q3_s FROM race.practice WHERE weekend = ? GROUP BY ALL", key)
    if best["q1_s"].isna().all():
        return GRID_GAP_PCT * (np.arange(len(starters)) - (len(starters) - 1) / 2)
    gaps = with_qualifying_gaps(best, starters[["weekend", "driver", "constructor"]], [key])
    return (RACE_SHARE * gaps.set_index("driver")["qualifying_pct"]).reindex(starters["driver"]).to_numpy(float)


def _start_tyres_and_rain(connection: duckdb.DuckDBPyConnection, key: str) -> tuple[dict[str, int], float]:
    """Start tyres by driver and the probability of rain, from the laps of the real race."""
    laps = _rows(connection, "SELECT driver, lap, compound FROM race.laps WHERE weekend = ? AND compound IS NOT NULL",
                 key)
    if laps.empty:
        return {}, RAIN_UNKNOWN
    first = laps[laps["lap"] == 1]
    compounds = {driver: CODE[tyre] for driver, tyre in zip(first["driver"], first["compound"], strict=True)
                 if tyre in CODE}
    return compounds, RAIN_AFTER_WET if laps["compound"].isin(RAIN_TYRES).mean() >= WET_SHARE else RAIN_AFTER_DRY


def _numbers(car_numbers: pd.Series) -> list[int]:
    """Unique car numbers: missing or duplicate numbers are replaced by free ones."""
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
