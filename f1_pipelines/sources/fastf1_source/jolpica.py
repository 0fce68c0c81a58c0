"""Official sheets from jolpica-f1, through FastF1's client: one query per round, every page, as the server says it."""
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
    """The rows of an official sheet as jolpica has them.

    Args:
        season, round_number: As jolpica counts them now.
        session: Which sheet.
        race_day: The race's date in UTC. Rounds get renumbered, so that a sheet of another day is not ours.

    Raises:
        NotComplete: There is no such sheet yet.
        InvalidRows: Pages that don't add up to one sheet, or one of another race.
        SourceUnavailable: Jolpica answered with an error or something that is no JSON.
    """
    from fastf1.ergast import Ergast
    from fastf1.exceptions import ErgastError
    query, key = _QUERIES[session]
    what = f"jolpica's {session} sheet of {season} round {round_number}"
    rows: list[dict[str, Any]] = []
    try:
        page = getattr(Ergast(result_type="raw", auto_cast=False), query)(season=season, round=round_number)
        while page is not None:
            for race in page:
                _check_same_race(race, season, round_number, race_day, what)
                rows += race[key]
            total = page.total_results
            page = page.get_next_result_page() if len(rows) < total and _has_next(page) else None
    except (ErgastError, KeyError, TypeError) as problem:  # an error, or JSON that is no answer of Ergast's kind
        raise SourceUnavailable(f"{what}: {' '.join(str(problem).split())}; run again later") from problem
    if not rows and not total:
        raise NotComplete(f"{what} is empty: the official result is not there yet")
    if len(rows) != total:
        raise InvalidRows(f"{what} has {total} rows, its pages hold {len(rows)}")
    return rows


def classification(rows: list[dict[str, Any]], season: int, absent: Set[str] = frozenset()) -> pd.DataFrame:
    """Rows of `race.results` without weekend, version, hash and provenance, in official order.

    Args:
        rows: An official sheet of a race or sprint.
        season: For names.
        absent: Car numbers that a complete timing of that race does not know. The sheet says "0 laps, retired" of a car
            that stopped in the first lap and of one that never took the start; only timing tells them apart.

    Raises:
        InvalidRows: A status that is not understood.
        UnknownEntrant: A driver or team is not in our dimension.
    """
    people = _people(rows, season).assign(
        official_order=_numbers(rows, "position"), points=_numbers(rows, "points"), laps=_numbers(rows, "laps"),
        code=[row.get("positionText") for row in rows], status_text=[row.get("status") for row in rows],
        slot=_numbers(rows, "grid"), time_s=_seconds(_total_s(row) for row in rows),
        fastest_lap_s=_seconds(lap_time_s(row.get("FastestLap", {}).get("Time", {}).get("time")) for row in rows))
    people["classified"] = [str(code).isdigit() for code in people["code"]]
    people["finish_position"] = pd.to_numeric(people["code"].where(people["classified"]))
    behind = (people["laps"].max() - people["laps"]).astype("float64")
    people["gap_laps"] = behind.where(people["classified"] & (behind > 0))
    people["status"] = [_status(row, season) for row in people.itertuples()]
    no_start = people["car_number"].isin([int(number) for number in absent])
    people.loc[no_start & people["status"].eq("retired") & people["laps"].eq(0), "status"] = "not_started"
    people = people.sort_values("car_number")  # pit-lane starters get their slots in an order that tells no result
    people["grid_status"] = grid_status(people["slot"], started(people["status"]))
    people["grid_position"] = place_pit_lane_starters(people["slot"], people["grid_status"])
    lead_lap = people["classified"] & behind.eq(0)
    people["race_time_s"] = people["time_s"].where(lead_lap)
    people["gap_s"] = people["race_time_s"] - people["race_time_s"].min()
    return people.drop(columns=["code", "slot", "time_s"]).sort_values("official_order", ignore_index=True)


def grid_status(slot: pd.Series, starts: pd.Series) -> pd.Series:
    """Three states of a start, and `not_started`.

    A true pit-lane start is 0, and so is every slot while jolpica does not know the grid (or -1, or nothing): 0 means
    the pit lane only on a sheet where most starters have a slot.
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
    return _people(rows, season).assign(position=_numbers(rows, "position"), **times)


def lap_time_s(text: str | None) -> float | None:
    """"1:16.727" in seconds; None where there is no time."""
    if not text:
        return None
    minutes, _, seconds = text.rpartition(":")
    return round(int(minutes or 0) * 60 + float(seconds), 3)


def _has_next(page: Any) -> bool:
    headers = page._response_headers  # FastF1 offers no question, only a ValueError after the last page
    return int(headers["offset"]) + int(headers["limit"]) < page.total_results


def _check_same_race(race: dict[str, Any], season: int, round_number: int, race_day: date, what: str) -> None:
    if (int(race["season"]), int(race["round"])) != (season, round_number):
        raise InvalidRows(f"{what} mixes in {race['season']} round {race['round']}")
    if abs(date.fromisoformat(race["date"]) - race_day) > timedelta(days=1):
        raise InvalidRows(f"{what} is of the race on {race['date']}, that of {race_day} was wanted: renumbered?")


def _people(rows: list[dict[str, Any]], season: int) -> pd.DataFrame:
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
                          f"{row.status_text!r} is no known word; add it to sources/classification.py")
    return status
