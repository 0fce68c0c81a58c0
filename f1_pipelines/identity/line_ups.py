"""The entries of each weekend of 2022-2026, substitutes included, from the official race sheets.

A row of `data/line_ups.csv` is a spell: from one weekend through another of the same season; `last_weekend` is empty
while the spell lasts. Drivers who were entered but did not start are listed; those who only drove in practice are not.
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
    """The line-up of this weekend is unknown."""


@dataclass(frozen=True)
class Entry:
    """A car entered for a weekend."""

    driver: str
    constructor: str
    car_number: int


@cache
def embedded_weekends() -> Mapping[str, Weekend]:
    """The weekends of the embedded calendar by key, without those of a refreshed calendar file."""
    return {weekend.key: weekend for weekend in read_calendar(_DATA / "calendar.csv")}


def seasons() -> tuple[int, ...]:
    """The seasons with known line-ups."""
    return tuple(sorted(_spells()))


@cache
def line_up(key: str) -> tuple[Entry, ...]:
    """The cars of a weekend, ordered by constructor and driver id.

    Args:
        key: Key of a weekend in the embedded calendar. A future weekend gets the drivers who raced last; a cancelled
            one may lack a car whose driver changed before the next race.

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
    """Number of cars in a full field of the season, for which the cuts of qualifying are made."""
    return max(len(line_up(key)) for key, weekend in embedded_weekends().items() if weekend.season == season)


@cache
def _spells() -> dict[int, list[tuple[Entry, datetime, datetime | None]]]:
    """Spells by season: the car, and the race starts of its first and last weekend (None: not over)."""
    starts = {key: weekend.race_start for key, weekend in embedded_weekends().items()}
    spells: dict[int, list[tuple[Entry, datetime, datetime | None]]] = {}
    with (_DATA / "line_ups.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            entry = Entry(row["driver"], row["constructor"], int(row["car_number"]))
            last = starts[row["last_weekend"]] if row["last_weekend"] else None
            spells.setdefault(int(row["season"]), []).append((entry, starts[row["first_weekend"]], last))
    return spells
