"""Official sheets from jolpica-f1 through FastF1's client: one query per round, all its pages, values unchanged."""
from __future__ import annotations

from collections.abc import Iterable, Set
from datetime import date, timedelta
from typing import Any, Literal

import pandas as pd

from f1_pipelines.identity import entrants
from f1_pipelines.sources.base import SourceUnavailable
from f1_pipelines.sources.classification import classify_status, place_pit_lane_starters, started
from f1_pipelines.sources.fastf1_source.loading import NotComplete
from f1_pipelines.tables.schema import InvalidRows

SheetOf = Literal["race", "sprint", "qualifying"]
_QUERIES = {"race": ("get_race_results", "Results"), "sprint": ("get_sprint_results", "SprintResults"),
            "qualifying": ("get_qualifying_results", "QualifyingResults")}


def sheet(season: int, round_number: int, session: SheetOf, race_day: date) -> list[dict[str, Any]]:
    """Fetch the rows of an official sheet.

    Args:
        season, round_number: In jolpica's current numbering.
        session: The session of the sheet.
        race_day: The race's date in UTC. A sheet of another date is refused, because rounds get renumbered.

    Raises:
        NotComplete: The sheet is not out yet.
        InvalidRows: The pages don't add up to one sheet, or it is of another race.
        SourceUnavailable: Jolpica answered with an error or with JSON in another format.
    """
    from fastf1.ergast import Ergast
    from fastf1.exceptions import ErgastError
    query, key = _QUERIES[session]
    name = f"jolpica's {session} sheet of {season} round {round_number}"
    rows: list[dict[str, Any]] = []
    try:
        page = getattr(Ergast(result_type="raw", auto_cast=False), query)(season=season, round=round_number)
        while page is not None:
            for race in page:
                _check_same_race(race, season, round_number, race_day, name)
                rows += race[key]
            total = page.total_results
            page = page.get_next_result_page() if len(rows) < total and _has_next(page) else None
    except (ErgastError, KeyError, TypeError) as problem:  # an error, or JSON in another format than Ergast's
        raise SourceUnavailable(f"{name}: {' '.join(str(problem).split())}; run again later") from problem
    if not rows and not total:
        raise NotComplete(f"{name} is empty: the official result is not out yet")
    if len(rows) != total:
        raise InvalidRows(f"{name} has {total} rows, but its pages hold {len(rows)}")
    return rows


def classification(rows: list[dict[str, Any]], season: int, absent: Set[str] = frozenset()) -> pd.DataFrame:
    """Rows of `race.results` without weekend, version, hash and provenance, in official order.

    Args:
        rows: An official sheet of a race or sprint.
        season: The season, to resolve names.
        absent: Car numbers without laps in a complete timing of the race. The sheet has "0 laps, retired" both for a
            car that stopped in the first lap and for one that did not start; only timing tells them apart.

    Raises:
        InvalidRows: A status is unknown.
        UnknownEntrant: A driver or team is not in our identity files.
    """
    cars = _cars(rows, season).assign(
        official_order=_numbers(rows, "position"), points=_numbers(rows, "points"), laps=_numbers(rows, "laps"),
        code=[row.get("positionText") for row in rows], status_text=[row.get("status") for row in rows],
        slot=_numbers(rows, "grid"), time_s=_seconds(_total_s(row) for row in rows),
        fastest_lap_s=_seconds(lap_time_s(row.get("FastestLap", {}).get("Time", {}).get("time")) for row in rows))
    cars["classified"] = [str(code).isdigit() for code in cars["code"]]
    cars["finish_position"] = pd.to_numeric(cars["code"].where(cars["classified"]))
    behind = (cars["laps"].max() - cars["laps"]).astype("float64")
    cars["gap_laps"] = behind.where(cars["classified"] & (behind > 0))
    cars["status"] = [_status(row, season) for row in cars.itertuples()]
    no_start = cars["car_number"].isin([int(number) for number in absent])
    cars.loc[no_start & cars["status"].eq("retired") & cars["laps"].eq(0), "status"] = "not_started"
    cars = cars.sort_values("car_number")  # the slots of pit-lane starters must not reveal the result
    cars["grid_status"] = grid_status(cars["slot"], started(cars["status"]))
    cars["grid_position"] = place_pit_lane_starters(cars["slot"], cars["grid_status"])
    lead_lap = cars["classified"] & behind.eq(0)
    cars["race_time_s"] = cars["time_s"].where(lead_lap)
    cars["gap_s"] = cars["race_time_s"] - cars["race_time_s"].min()
    return cars.drop(columns=["code", "slot", "time_s"]).sort_values("official_order", ignore_index=True)


def grid_status(slot: pd.Series, starts: pd.Series) -> pd.Series:
    """Find the grid status of each car: `grid`, `pit_lane`, `unknown` or `not_started`.

    A pit-lane start has slot 0, but so has every car (or -1, or nothing) while jolpica does not know the grid. So 0
    means the pit lane only on a sheet where most starters have a slot.
    """
    slot = slot.astype("float64")
    known = slot.ge(1) & starts
    status = pd.Series("unknown", index=slot.index).mask(known, "grid")
    if known.sum() > starts.sum() / 2:
        status = status.mask(slot.eq(0), "pit_lane")
    return status.mask(~starts, "not_started")


def qualifying(rows: list[dict[str, Any]], season: int) -> pd.DataFrame:
    """Rows of `race.qualifying` from an official sheet, without weekend, session and provenance."""
    times = {f"q{i}_s": _seconds(lap_time_s(row.get(f"Q{i}")) for row in rows) for i in (1, 2, 3)}
    return _cars(rows, season).assign(position=_numbers(rows, "position"), **times)


def lap_time_s(text: str | None) -> float | None:
    """Convert "1:16.727" to seconds; None without a time."""
    if not text:
        return None
    minutes, _, seconds = text.rpartition(":")
    return round(int(minutes or 0) * 60 + float(seconds), 3)


def _has_next(page: Any) -> bool:
    headers = page._response_headers  # FastF1 has no method for this, only a ValueError after the last page
    return int(headers["offset"]) + int(headers["limit"]) < page.total_results


def _check_same_race(race: dict[str, Any], season: int, round_number: int, race_day: date, name: str) -> None:
    if (int(race["season"]), int(race["round"])) != (season, round_number):
        raise InvalidRows(f"{name} has rows of {race['season']} round {race['round']}")
    if abs(date.fromisoformat(race["date"]) - race_day) > timedelta(days=1):
        raise InvalidRows(f"{name} is of the race on {race['date']}; wanted {race_day}: were the rounds renumbered?")


def _cars(rows: list[dict[str, Any]], season: int) -> pd.DataFrame:
    return pd.DataFrame([{
        "driver": entrants.driver_id(season, ergast_id=row["Driver"]["driverId"],
                                     name=f"{row['Driver']['givenName']} {row['Driver']['familyName']}"),
        "constructor": entrants.constructor_id(season, ergast_id=row["Constructor"]["constructorId"],
                                               name=row["Constructor"]["name"]),
        "car_number": row.get("number"),
    } for row in rows]).assign(car_number=_numbers(rows, "number"))


def _numbers(rows: list[dict[str, Any]], key: str) -> pd.Series:
    return pd.to_numeric(pd.Series([row.get(key) for row in rows], dtype="object")).astype("Float64")


def _seconds(values: Iterable[float | None]) -> pd.Series:
    return pd.Series(list(values), dtype="float64")


def _total_s(row: dict[str, Any]) -> float | None:
    millis = row.get("Time", {}).get("millis")
    return None if millis is None else int(millis) / 1000


def _status(row: Any, season: int) -> str:
    status = classify_status(row.code, row.status_text, row.gap_laps if pd.notna(row.gap_laps) else None)
    if status == "retired" and row.classified and pd.notna(row.time_s):
        raise InvalidRows(f"{season} {row.driver} crossed the line in place {row.code}, but the status "
                          f"{row.status_text!r} is unknown; add it to sources/classification.py")
    return status
