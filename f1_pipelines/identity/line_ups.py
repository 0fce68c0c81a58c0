"""Who drove for whom at each weekend of 2022-2026, substitutes too, as the official race sheets have it.

`data/line_ups.csv` holds spells: from one weekend through another of the same season, the last one empty while the
spell goes on. A driver who was entered and did not start is in it; one who only drove in practice is not.
"""
from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path

from f1_pipelines.identity.calendar_file import read_calendar
from f1_pipelines.identity.weekend import Weekend

_DATA = Path(__file__).parent / "data"


class UnknownLineUp(ValueError):
    """No line-up is known of this weekend."""


@dataclass(frozen=True)
class Entry:
    """A car that is entered for a weekend."""

    driver: str
    constructor: str
    car_number: int


@cache
def embedded_weekends() -> Mapping[str, Weekend]:
    """The weekends of the embedded calendar alone, by key: what a refreshed calendar says changes nothing here."""
    return {weekend.key: weekend for weekend in read_calendar(_DATA / "calendar.csv")}


def seasons() -> tuple[int, ...]:
    """The seasons whose line-ups are known."""
    return tuple(sorted(_spells()))


@cache
def line_up(key: str) -> tuple[Entry, ...]:
    """The cars of a weekend in the order of constructor and driver id.

    Args:
        key: A weekend of the embedded calendar. One that is to come has those who raced last; of a cancelled one a car
            may be missing, where its driver changed before the next.

    Raises:
        UnknownLineUp: The weekend is not in the embedded calendar, or its season has no line-ups.
    """
    weekend = embedded_weekends().get(key)
    spells = _spells().get(weekend.season) if weekend else None
    if weekend is None or spells is None:
        raise UnknownLineUp(f'no line-up of "{key}": line_ups.csv covers the embedded weekends of '
                            f"{seasons()[0]} to {seasons()[-1]}")
    entered = {entry for entry, first, last in spells
               if first <= weekend.race_start and (last is None or weekend.race_start <= last)}
    return tuple(sorted(entered, key=lambda entry: (entry.constructor, entry.driver)))


@cache
def field_size(season: int) -> int:
    """Cars that a full entry of the season has: what the cuts of qualifying are made for."""
    return max(len(line_up(key)) for key, weekend in embedded_weekends().items() if weekend.season == season)


@cache
def _spells() -> dict[int, list[tuple[Entry, datetime, datetime | None]]]:
    """By season: the car, the race start of its first weekend and of its last one."""
    starts = {key: weekend.race_start for key, weekend in embedded_weekends().items()}
    spells: dict[int, list[tuple[Entry, datetime, datetime | None]]] = {}
    with (_DATA / "line_ups.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            entry = Entry(row["driver"], row["constructor"], int(row["car_number"]))
            last = starts[row["last_weekend"]] if row["last_weekend"] else None
            spells.setdefault(int(row["season"]), []).append((entry, starts[row["first_weekend"]], last))
    return spells
