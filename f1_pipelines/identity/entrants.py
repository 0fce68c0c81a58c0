"""Stable ids of drivers and constructors, which the sources call by many names.

Ids are f1db's. A car number belongs to one driver only within a session (33 became 1, and the 1 of 2026 is another
driver), so it can confirm an abbreviation but never identify a driver. A constructor id holds from `season_from` to
`season_to` (counted from 2018, when our data begin); its lineage stays the same through renames.
"""
from __future__ import annotations

import csv
import unicodedata
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_DATA = Path(__file__).parent / "data"


class UnknownEntrant(ValueError):
    """No entrant matches, or several do: quarantine the row, or add the entrant to the data file."""


@dataclass(frozen=True)
class Driver:
    """A driver. `ergast_id` is None for one who only drove in practice."""

    driver: str
    name: str
    abbreviation: str
    ergast_id: str | None
    aliases: tuple[str, ...]


@dataclass(frozen=True)
class Constructor:
    """A constructor under one name. `season_to` is None while it races."""

    constructor: str
    name: str
    lineage: str
    season_from: int
    season_to: int | None
    fastf1_names: tuple[str, ...]
    ergast_ids: tuple[str, ...]

    def raced_in(self, season: int) -> bool:
        return self.season_from <= season <= (self.season_to or season)


@cache
def drivers() -> tuple[Driver, ...]:
    """All drivers of a session since 2018."""
    return tuple(Driver(row["driver"], row["name"], row["abbreviation"], row["ergast_id"] or None,
                        _listed(row["aliases"])) for row in _rows("drivers.csv"))


@cache
def constructors() -> tuple[Constructor, ...]:
    """All constructors since 2018, one entry per name."""
    return tuple(Constructor(row["constructor"], row["name"], row["lineage"], int(row["season_from"]),
                             int(row["season_to"]) if row["season_to"] else None, _listed(row["fastf1_names"]),
                             _listed(row["ergast_ids"])) for row in _rows("constructors.csv"))


@cache
def car_numbers(season: int) -> dict[str, frozenset[int]]:
    """The car numbers of each driver in a season; a driver who changed cars has several."""
    numbers: dict[str, frozenset[int]] = {}
    for row in _rows("car_numbers.csv"):
        if int(row["season"]) == season:
            numbers[row["driver"]] = numbers.get(row["driver"], frozenset()) | {int(row["car_number"])}
    return numbers


def driver_id(season: int, *, ergast_id: str | None = None, abbreviation: str | None = None,
              car_number: int | str | None = None, name: str | None = None) -> str:
    """Find the stable id of a driver from the fields of a source. Empty values count as missing.

    Ergast's id and the full name identify a driver in any season. Without both, the abbreviation is looked up among the
    drivers of the season, and a given name (`A ALBON`) must share a word with the match.

    Raises:
        UnknownEntrant: No driver matches, or the fields contradict each other: ids and names, or an abbreviation and
            its number.
    """
    ergast_id, name, abbreviation, number = map(_text, (ergast_id, name, abbreviation, car_number))
    words = _words(f"{name} {ergast_id}")
    by_id = {d.driver for d in drivers() if ergast_id and d.ergast_id == ergast_id}
    by_name = {d.driver for d in drivers() if name and _words(name) in map(_words, (d.name, *d.aliases))}
    numbers = car_numbers(season)
    abbreviated = {d.driver for d in drivers() if d.abbreviation == abbreviation.upper() and d.driver in numbers}
    numbered = {driver for driver, used in numbers.items() if number.isdigit() and int(number) in used}
    if by_id or by_name:
        matches = (by_id or by_name) & (by_name or by_id)
        if abbreviated & numbered:
            matches &= abbreviated & numbered
    else:  # a number that no driver has used yet is ignored
        matches = abbreviated & numbered if numbered else abbreviated
        matches = {d for d in matches if not words or words & _words(d)}
    if len(matches) == 1:
        return matches.pop()
    given = {"ergast_id": ergast_id, "name": name, "abbreviation": abbreviation, "car_number": number}
    candidates = sorted(by_id | by_name | abbreviated | numbered)
    why = f"matches {' and '.join(candidates) or 'no driver'}, and a number alone identifies no driver"
    raise UnknownEntrant(f"{season}: {', '.join(f'{k} {v}' for k, v in given.items() if v) or 'no evidence'} {why}; "
                         "add a new driver to identity/data/drivers.csv.")


def constructor_id(season: int, *, ergast_id: str | None = None, name: str | None = None) -> str:
    """Find the stable id of a constructor in a season: Ergast's `sauber` is sauber in 2018 and kick-sauber in 2024.

    Raises:
        UnknownEntrant: No constructor of the season matches, or several do.
    """
    ergast_id, name = _text(ergast_id), _text(name)
    racing = [constructor for constructor in constructors() if constructor.raced_in(season)]
    matches_by_key = [{c.constructor for c in racing if ergast_id in c.ergast_ids}] if ergast_id else []
    if name:
        matches_by_key.append({c.constructor for c in racing if _words(name) in map(_words, (c.name, *c.fastf1_names))})
    matches_by_key = [matches for matches in matches_by_key if matches]
    matches = set.intersection(*matches_by_key) if matches_by_key else set()
    if len(matches) == 1:
        return matches.pop()
    candidates = sorted(set().union(*matches_by_key) or {constructor.constructor for constructor in racing})
    raise UnknownEntrant(f"{season}: ergast_id {ergast_id or '(none)'}, name {name or '(none)'} matches no "
                         f"single constructor of that season; wanted one of {', '.join(candidates)}.")


def lineage(constructor: str) -> str:
    """The identity of a constructor through renames: `faenza` for toro-rosso, alphatauri, rb and racing-bulls.

    Raises:
        UnknownEntrant: No constructor has this id.
    """
    known_lineage = next((known.lineage for known in constructors() if known.constructor == constructor), None)
    if known_lineage is None:
        raise UnknownEntrant(f'"{constructor}" is no constructor id; wanted one of '
                             f"{', '.join(known.constructor for known in constructors())}.")
    return known_lineage


def _rows(file_name: str) -> list[dict[str, str]]:
    with (_DATA / file_name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _listed(cell: str) -> tuple[str, ...]:
    return tuple(cell.split(";")) if cell else ()


def _text(value: object) -> str:
    """A value as stripped text; None, NaN and pandas' NA become empty."""
    text = "" if value is None else str(value).strip()
    return "" if text.lower() in ("nan", "none", "<na>") else text.removesuffix(".0")


@cache
def _words(name: str) -> frozenset[str]:
    """The words of a name, without accents, case or punctuation: FastF1 has both "Guanyu Zhou" and "ZHOU Guanyu"."""
    ascii_name = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return frozenset("".join(c if c.isalnum() else " " for c in ascii_name.replace("'", "").replace(".", "")).split())
