"""f1db's files as rows of our tables, without provenance columns. f1db's ids are our ids.

The parameter `races` holds the rows of the calendar file, as returned by `races()`, of the weekends to read. Rows of
other weekends are ignored.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from f1_pipelines.sources.base import SourceError
from f1_pipelines.sources.classification import (
    classification_hash,
    classify_status,
    place_pit_lane_starters,
    started,
)
from f1_pipelines.sources.f1db.release import F1dbRelease
from f1_pipelines.tables.schema import InvalidRows

_CAR = {"raceId": "Int32", "year": "Int32", "driverNumber": "Int32", "driverId": "string", "constructorId": "string",
        "positionDisplayOrder": "Int32", "positionNumber": "Int32", "positionText": "string"}
_STARTS = ("freePractice1", "freePractice2", "freePractice3", "sprintQualifying", "sprintRace", "qualifying")
_START_NAMES = ("practice_1", "practice_2", "practice_3", "sprint_qualifying", "sprint", "qualifying")


def races(release: F1dbRelease) -> pd.DataFrame:
    """Read the calendar file, and add our weekend key."""
    texts = ["date", "time", "grandPrixId", "qualifyingFormat", "sprintQualifyingFormat", "circuitId",
             "circuitLayoutId", "sprintRaceDate", *(f"{name}{part}" for name in _STARTS for part in ("Date", "Time"))]
    frame = release.read("races", {"id": "Int32", "year": "Int32", "round": "Int32", "laps": "Int32",
                                   **dict.fromkeys(texts, "string")})
    rows = frame.assign(weekend=frame["year"].astype("string") + "-" + frame["grandPrixId"])
    repeated = rows.loc[rows["id"].duplicated() | rows["weekend"].duplicated(), "weekend"]
    if len(repeated):
        raise SourceError(f"f1db-races.csv has {', '.join(repeated)} more than once; fetch the release again")
    return rows


def finished_weekends(release: F1dbRelease, calendar_rows: pd.DataFrame) -> pd.Series:
    """Keys of the weekends whose race results the release holds."""
    finished = release.read("races-race-results", {"raceId": "Int32", "year": "Int32"})["raceId"].unique()
    return calendar_rows.loc[calendar_rows["id"].isin(finished), "weekend"]


def calendar(release: F1dbRelease, calendar_rows: pd.DataFrame, seasons: Sequence[int]) -> pd.DataFrame:
    """Rows of `race.calendar`, and `race_date`. A start is missing if f1db has no time of day.

    Every weekend is `upcoming`: only stored results make it `done`.
    """
    frame = calendar_rows[calendar_rows["year"].isin(list(seasons))]
    names = release.read("grands-prix", {"id": "string", "fullName": "string"}).set_index("id")["fullName"]
    rows = pd.DataFrame({
        "weekend": frame["weekend"], "season": frame["year"], "round": frame["round"],
        "event_name": frame["grandPrixId"].map(names), "circuit": frame["circuitId"],
        "layout": frame["circuitLayoutId"], "format": _format(frame), "race_laps": frame["laps"],
        "state": "upcoming", "race_start": _instant(frame["date"], frame["time"]),
        "race_date": _instant(frame["date"], pd.Series("00:00", index=frame.index)),
    })
    for session, f1db_name in zip(_START_NAMES, _STARTS, strict=True):
        rows[f"{session}_start"] = _instant(frame[f"{f1db_name}Date"], frame[f"{f1db_name}Time"])
    return rows


def practice(release: F1dbRelease, races: pd.DataFrame, number: int) -> pd.DataFrame:
    """Rows of `race.practice` for one of the three practices."""
    file = f"races-free-practice-{number}-results"
    frame = _read(release, races, file, {**_CAR, "timeMillis": "Float64", "laps": "Int32"})
    return _car_rows(frame, races, f"practice_{number}").assign(
        position=frame["positionNumber"].where(frame["timeMillis"].notna()),
        best_lap_s=frame["timeMillis"] / 1000, laps=frame["laps"])


def qualifying(release: F1dbRelease, races: pd.DataFrame, session: str) -> pd.DataFrame:
    """Rows of `race.qualifying`; `session` is `qualifying` or `sprint_qualifying`."""
    file = {"qualifying": "races-qualifying-results", "sprint_qualifying": "races-sprint-qualifying-results"}[session]
    segments = {f"q{n}Millis": "Float64" for n in (1, 2, 3)}
    frame = _read(release, races, file, {**_CAR, "timeMillis": "Float64", **segments})
    rows = _car_rows(frame, races, session).assign(position=frame["positionNumber"])
    for n in (1, 2, 3):
        rows[f"q{n}_s"] = frame[f"q{n}Millis"] / 1000
    # A qualifying of one segment (in 2018-2026 only one that was cut short) has one time.
    rows["q1_s"] = rows["q1_s"].fillna(frame["timeMillis"] / 1000)
    # A car excluded later may be listed twice (2023-great-britain): with its times, and as DSQ without any.
    repeated = rows.duplicated(["weekend", "driver"], keep=False)
    bare = frame["positionText"].isin(("DSQ", "EX")) & rows[["q1_s", "q2_s", "q3_s"]].isna().all(axis=1)
    return rows[~(repeated & bare)]


def grid(release: F1dbRelease, races: pd.DataFrame, session: str) -> pd.DataFrame:
    """Rows of `race.grid`; `session` is `race` or `sprint`."""
    file = {"race": "races-starting-grid-positions", "sprint": "races-sprint-starting-grid-positions"}[session]
    frame = _read(release, races, file, _CAR)
    status = _grid_status(frame["positionNumber"], frame["positionText"])
    rows = _car_rows(frame, races, session).assign(grid_status=status)
    return rows.assign(grid_position=_slots_by_race(frame, frame["positionNumber"], status))


def results(release: F1dbRelease, races: pd.DataFrame, session: str) -> pd.DataFrame:
    """Rows of `race.results` or `race.sprint_results`; `session` is `race` or `sprint`.

    Two more columns are `session` and `unknown_status`: the reason if the status of a car is unknown, else missing.
    """
    file = {"race": "races-race-results", "sprint": "races-sprint-race-results"}[session]
    frame = _read(release, races, file, {
        **_CAR, "laps": "Int32", "timeMillis": "Float64", "gapMillis": "Float64", "gapLaps": "Int32",
        "reasonRetired": "string", "points": "Float64", "gridPositionNumber": "Int32", "gridPositionText": "string"})
    status, unknown = _statuses(frame)
    grid_status = _grid_status(frame["gridPositionNumber"], frame["gridPositionText"]).where(
        started(status), "not_started")
    # Pit-lane starters get their slots by car number: the file is in the order of the result.
    slots = _slots_by_race(frame.sort_values("driverNumber"), frame["gridPositionNumber"], grid_status)
    # Every official sheet has points: f1db leaves the field empty for zero.
    rows = _car_rows(frame, races, session).assign(
        version=1, grid_position=slots, grid_status=grid_status, official_order=frame["positionDisplayOrder"],
        finish_position=frame["positionNumber"], classified=frame["positionNumber"].notna(), status=status,
        status_text=frame["reasonRetired"], points=frame["points"].fillna(0.0), laps=frame["laps"],
        race_time_s=frame["timeMillis"] / 1000,
        gap_s=(frame["gapMillis"] / 1000).mask(frame["positionNumber"].eq(1) & frame["timeMillis"].notna(), 0.0),
        gap_laps=frame["gapLaps"], fastest_lap_s=_fastest_laps(release, races, frame) if session == "race" else None,
        result_status="official", unknown_status=unknown)
    hashes = {weekend: classification_hash(sheet) for weekend, sheet in rows.groupby("weekend")}
    return rows.assign(content_hash=rows["weekend"].map(hashes))


def pit_stops(release: F1dbRelease, races: pd.DataFrame) -> pd.DataFrame:
    """Rows of `race.pit_stops`, with `session` in a column."""
    columns = {**_CAR, "stop": "Int32", "lap": "Int32", "timeMillis": "Float64"}
    frame = _read(release, races, "races-pit-stops", columns)
    return _car_rows(frame, races, "race").assign(
        stop=frame["stop"], lap=frame["lap"], pit_lane_time_s=frame["timeMillis"] / 1000)


def _read(release: F1dbRelease, races: pd.DataFrame, name: str, columns: Mapping[str, str]) -> pd.DataFrame:
    frame = release.read(name, columns)
    return frame[frame["raceId"].isin(races["id"])]


def _car_rows(frame: pd.DataFrame, races: pd.DataFrame, session: str) -> pd.DataFrame:
    keys = races.set_index("id")["weekend"]
    return pd.DataFrame({"weekend": frame["raceId"].map(keys).astype("string"), "session": session,
                         "driver": frame["driverId"], "constructor": frame["constructorId"],
                         "car_number": frame["driverNumber"]}, index=frame.index)


def _statuses(frame: pd.DataFrame) -> tuple[pd.Series, pd.Series]:
    """Status of each car, and the reason if it is unknown."""
    statuses: list[str | None] = []
    unknown: list[str | None] = []
    for row in frame[["positionText", "reasonRetired", "gapLaps"]].astype(object).itertuples(index=False):
        try:
            statuses.append(classify_status(*(None if pd.isna(value) else value for value in row)))
            unknown.append(None)
        except InvalidRows as problem:
            statuses.append(None)
            unknown.append(str(problem))
    return pd.Series(statuses, index=frame.index, dtype=object), pd.Series(unknown, index=frame.index, dtype=object)


def _grid_status(number: pd.Series, text: pd.Series) -> pd.Series:
    in_pit_lane = text.eq("PL").fillna(False)
    known = pd.Series("grid", index=number.index).mask(number.isna(), "unknown")
    return known.mask(in_pit_lane, "pit_lane")


def _slots_by_race(frame: pd.DataFrame, position: pd.Series, status: pd.Series) -> pd.Series:
    slots = [place_pit_lane_starters(position.loc[index], status.loc[index])
             for index in frame.groupby("raceId").groups.values()]
    return pd.concat(slots).reindex(frame.index) if slots else position


def _fastest_laps(release: F1dbRelease, races: pd.DataFrame, frame: pd.DataFrame) -> pd.Series:
    columns = {"raceId": "Int32", "driverId": "string", "timeMillis": "Float64", "year": "Int32"}
    laps = _read(release, races, "races-fastest-laps", columns)
    # A few old sheets list a car twice: take its best lap.
    best = laps.groupby(["raceId", "driverId"])["timeMillis"].min() / 1000
    return best.reindex(pd.MultiIndex.from_frame(frame[["raceId", "driverId"]])).set_axis(frame.index)


def _format(frame: pd.DataFrame) -> pd.Series:
    # f1db says SPRINT_SHOOTOUT for every season since 2023; the order of sessions changed in 2024.
    conventional = pd.Series("conventional", index=frame.index)
    own_qualifying = frame["sprintQualifyingFormat"].notna()
    return (conventional.mask(frame["qualifyingFormat"].eq("SPRINT_RACE"), "sprint")
            .mask(own_qualifying & frame["year"].eq(2023), "sprint_shootout")
            .mask(own_qualifying & frame["year"].ge(2024), "sprint_qualifying"))


def _instant(date: pd.Series, time: pd.Series) -> pd.Series:
    return pd.to_datetime(date.str.cat(time, sep="T").fillna(""), utc=True, format="%Y-%m-%dT%H:%M", errors="coerce")
