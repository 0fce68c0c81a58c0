"""FastF1's frames of one session as rows of our tables, without weekend, session and provenance.

Timedeltas become seconds, and odd values are resolved: NaT stays missing, never 0; a lap that FastF1 generated (a car
that stopped on track) keeps its row but has no position, and is not accurate.
"""
from __future__ import annotations

import pandas as pd

from f1_pipelines.identity import entrants
from f1_pipelines.sources.fastf1_source.loading import Loaded
from f1_pipelines.tables.race import COMPOUNDS, PRACTICE
from f1_pipelines.tables.schema import InvalidRows

_BEST_LAP = next(column for column in PRACTICE.columns if column.name == "best_lap_s")


def entries(loaded: Loaded, season: int) -> pd.DataFrame:
    """Find `driver`, `constructor` and `car_number` of each car with a lap, by FastF1's DriverNumber.

    The driver list of a session may name both a substitute and the driver replaced. Ids come from this session's list,
    because those that FastF1 adds are the race's.

    Raises:
        UnknownEntrant: A driver or team is not in our identity files.
        InvalidRows: A car number or a driver is listed twice.
    """
    listed = loaded.entries[loaded.entries["DriverNumber"].isin(loaded.timed_laps()["DriverNumber"])]
    cars = pd.DataFrame([{
        "number": row.DriverNumber, "car_number": int(row.DriverNumber),
        "driver": entrants.driver_id(season, abbreviation=row.Abbreviation, car_number=row.DriverNumber,
                                     name=row.FullName),
        "constructor": entrants.constructor_id(season, name=row.TeamName),
    } for row in listed.itertuples()])
    repeated = cars[cars["number"].duplicated(keep=False) | cars["driver"].duplicated(keep=False)]
    if len(repeated):
        raise InvalidRows(f"entered twice: {', '.join(f'{r.driver} in car {r.number}' for r in repeated.itertuples())}")
    return cars.set_index("number")


def laps(loaded: Loaded, cars: pd.DataFrame) -> pd.DataFrame:
    """Rows of `race.laps` and `race.session_laps`, none beyond the race distance (a leader's phantom lap)."""
    raw = loaded.timed_laps()
    distance = race_distance(loaded)
    if distance is not None:
        raw = raw[raw["LapNumber"] <= distance]
    generated = raw["FastF1Generated"].astype(bool)
    compound = raw["Compound"].astype("string").str.upper()
    return pd.DataFrame({
        "driver": raw["DriverNumber"].map(cars["driver"]),
        "lap": raw["LapNumber"],
        "lap_time_s": _seconds(raw["LapTime"]).where(lambda s: s > 0),
        "compound": compound.where(compound.isin(COMPOUNDS), "UNKNOWN"),
        "tyre_age_laps": raw["TyreLife"],
        "fresh_tyre": raw["FreshTyre"].astype("boolean").where(raw["TyreLife"].notna()),
        "stint": raw["Stint"],
        "track_status": raw["TrackStatus"].where(raw["TrackStatus"].astype("string").str.len() > 0),
        "position": raw["Position"].mask(generated),
        "is_pit_in": raw["PitInTime"].notna(),
        "is_pit_out": raw["PitOutTime"].notna(),
        "is_accurate": raw["IsAccurate"].astype(bool) & ~generated,
        "is_deleted": raw["Deleted"].astype("boolean"),  # missing if no race control messages were recorded
        "session_time_s": _seconds(raw["Time"]),
    })


def race_distance(loaded: Loaded) -> int | None:
    """Laps of the winner on the official sheet, else the scheduled laps; None outside races."""
    official = loaded.entries["Laps"].max()
    return int(official) if official > 0 else loaded.distance


def pit_stops(loaded: Loaded, cars: pd.DataFrame) -> pd.DataFrame:
    """Rows of `race.pit_stops`: from pit entry to the exit in the next lap. A car that retires there has no row."""
    raw = loaded.timed_laps().sort_values(["DriverNumber", "LapNumber"])
    exit_time = raw.groupby("DriverNumber")["PitOutTime"].shift(-1)
    stops = raw.assign(in_lane_s=_seconds(exit_time - raw["PitInTime"]))[lambda f: f["in_lane_s"] > 0]
    return pd.DataFrame({
        "driver": stops["DriverNumber"].map(cars["driver"]),
        "constructor": stops["DriverNumber"].map(cars["constructor"]),
        "stop": stops.groupby("DriverNumber").cumcount() + 1, "lap": stops["LapNumber"],
        "pit_lane_time_s": stops["in_lane_s"]})


def practice(loaded: Loaded, cars: pd.DataFrame) -> pd.DataFrame:
    """Rows of `race.practice`: the best valid lap of each car, and its position by it."""
    raw = loaded.timed_laps()[~loaded.timed_laps()["FastF1Generated"].astype(bool)]
    lap_s = _seconds(raw["LapTime"])
    valid = lap_s.between(_BEST_LAP.minimum, _BEST_LAP.maximum) & ~raw["Deleted"].astype("boolean").fillna(False)
    # Of two equal laps the earlier one counts, as on the sheet.
    timed = raw.assign(lap_s=lap_s)[valid].sort_values(["lap_s", "Time"]).drop_duplicates("DriverNumber")
    best = timed.set_index("DriverNumber")["lap_s"].reindex(cars.index)
    return cars.assign(best_lap_s=best, position=best.rank(method="first"),
                       laps=raw.groupby("DriverNumber").size().reindex(cars.index, fill_value=0))


def qualifying(loaded: Loaded, cars: pd.DataFrame) -> pd.DataFrame:
    """Rows of `race.qualifying` as FastF1 computes them from lap times, without stewards' decisions."""
    official = loaded.entries.set_index("DriverNumber").reindex(cars.index)
    times = {f"q{i}_s": _seconds(official[f"Q{i}"]) for i in (1, 2, 3)}
    return cars.assign(**times, position=official["Position"].where(times["q1_s"].notna()))


def weather(loaded: Loaded) -> pd.DataFrame:
    """Rows of `race.weather`; none if it was not recorded."""
    raw = loaded.weather if loaded.weather is not None else pd.DataFrame(columns=[
        "Time", "AirTemp", "Humidity", "Pressure", "Rainfall", "TrackTemp", "WindDirection", "WindSpeed"])
    return pd.DataFrame({
        "session_time_s": _seconds(raw["Time"]), "air_temp_c": raw["AirTemp"], "track_temp_c": raw["TrackTemp"],
        "humidity_pct": raw["Humidity"], "pressure_hpa": raw["Pressure"], "wind_speed_ms": raw["WindSpeed"],
        "wind_direction_deg": raw["WindDirection"], "rainfall": raw["Rainfall"]}).drop_duplicates()


def race_control(loaded: Loaded) -> pd.DataFrame:
    """Rows of `race.race_control` in the order they were sent; none if they were not recorded."""
    raw = loaded.messages if loaded.messages is not None else pd.DataFrame(columns=[
        "Time", "Category", "Message", "Flag", "Scope", "Sector", "RacingNumber", "Lap"])
    return pd.DataFrame({
        "message_number": range(1, len(raw) + 1),
        "sent_at": pd.to_datetime(raw["Time"]).dt.tz_localize("UTC"),  # FastF1 keeps the feed's UTC without a zone
        "lap": raw.get("Lap"), "category": raw["Category"], "flag": raw["Flag"], "scope": raw["Scope"],
        "sector": raw["Sector"], "car_number": pd.to_numeric(raw["RacingNumber"]), "message": raw["Message"]})


def _seconds(durations: pd.Series) -> pd.Series:
    return pd.to_timedelta(durations).dt.total_seconds()
