"""The Grand Prix weekends, and when their sessions start.

The key of a weekend is `{season}-{slug}`. Round, event name, circuit and dates can change, so nothing is looked up by
event name, and no start is derived from a weekday or session number. `data/calendar.csv` is embedded and reviewed by
hand: where f1db and FastF1's schedule disagree on a start, it has the right one. A refreshed file with the same columns
may correct and add weekends, but never removes any.

Uses the standard library only, since Dagster imports it whenever it loads the definitions.
"""
from __future__ import annotations

import difflib
import unicodedata
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from f1_pipelines.identity.calendar_file import add_refreshed, read_calendar, write_refreshed
from f1_pipelines.identity.circuits import UnknownCircuit, circuit_of
from f1_pipelines.identity.weekend import (
    InvalidCalendar,
    UnknownSession,
    Weekend,
    fastf1_session_name,
    session_kind,
)

__all__ = [
    "InvalidCalendar", "UnknownSeason", "UnknownSession", "UnknownWeekend", "Weekend", "add_refreshed",
    "fastf1_session_name", "known_weekends", "season_weekends", "session_kind", "weekend", "weekend_of_round",
    "write_refreshed",
]

_EMBEDDED = Path(__file__).parent / "data" / "calendar.csv"


class UnknownWeekend(ValueError):
    """No weekend has this key or round."""


class UnknownSeason(ValueError):
    """The calendar has no such season."""


def known_weekends(extra: Path | None = None) -> tuple[Weekend, ...]:
    """All known weekends by race start, cancelled ones included.

    Args:
        extra: Path of a refreshed calendar file, whose rows replace embedded ones of the same key; None for the
            embedded calendar alone. A file that doesn't exist adds nothing.
    """
    try:
        stat = extra.stat() if extra else None
    except FileNotFoundError:
        stat = None
    if extra is None or stat is None:
        return _merged(None, 0, 0)
    return _merged(extra.resolve(), stat.st_mtime_ns, stat.st_size)


def weekend(key: str, extra: Path | None = None) -> Weekend:
    """Get a weekend by its key, such as `2024-sao-paulo`.

    Raises:
        UnknownWeekend: No weekend has this key; the message suggests similar ones.
    """
    known = known_weekends(extra)
    match = next((w for w in known if w.key == key), None)
    if match is None:
        suggested = _suggestions(str(key), known)
        hint = f"did you mean {' or '.join(suggested)}?" if suggested else \
            f"the calendar covers {known[0].season} to {known[-1].season}."
        raise UnknownWeekend(f'"{key}" is not a known weekend; keys read season-slug, like 2024-sao-paulo: {hint}')
    return match


def season_weekends(season: int, extra: Path | None = None) -> tuple[Weekend, ...]:
    """The weekends of a season by race start, cancelled ones included.

    Raises:
        UnknownSeason: The calendar has no such season.
    """
    known = known_weekends(extra)
    of_season = tuple(w for w in known if w.season == season)
    if not of_season:
        raise UnknownSeason(f"season {season} is not in the calendar, which covers {known[0].season} to "
                            f"{known[-1].season}; refresh it or ask for one of these.")
    return of_season


def weekend_of_round(season: int, round: int, extra: Path | None = None) -> Weekend:
    """The weekend that currently has this round. Rounds change when a race is added or cancelled: store the key.

    Raises:
        UnknownSeason: The calendar has no such season.
        UnknownWeekend: The season has no such round.
    """
    of_season = season_weekends(season, extra)
    match = next((w for w in of_season if w.round == round), None)
    if match is None:
        raise UnknownWeekend(f"season {season} has no round {round}; it has rounds 1 to "
                             f"{max(w.round or 0 for w in of_season)}.")
    return match


@lru_cache(maxsize=8)
def _merged(path: Path | None, mtime_ns: int, size: int) -> tuple[Weekend, ...]:
    weekends = {w.key: w for w in read_calendar(_EMBEDDED)}
    if path is not None:
        refreshed = read_calendar(path)
        renumbered = {(w.season, w.round) for w in refreshed}
        weekends = {key: replace(w, round=None) if (w.season, w.round) in renumbered else w
                    for key, w in weekends.items()}  # another weekend took its round
        weekends |= {w.key: w for w in refreshed}
    return tuple(sorted(weekends.values(), key=lambda w: (w.race_start, w.key)))


def _suggestions(key: str, known: tuple[Weekend, ...]) -> list[str]:
    """Suggest keys by round (`2024-11`), by country, place or event (`2024-brazil`), or by spelling."""
    season, _, rest = _slugged(key).partition("-")
    of_season = [w for w in known if str(w.season) == season]
    if not of_season:
        return difflib.get_close_matches(_slugged(key), [w.key for w in reversed(known)], n=3, cutoff=0.6)
    if rest.isdigit():
        return [w.key for w in of_season if w.round == int(rest)]
    names = {w.key: _names(w) for w in of_season}
    exact = [key for key, called in names.items() if rest in called]
    close = difflib.get_close_matches(rest, sorted(set().union(*names.values())), n=3, cutoff=0.7)
    return (exact or [key for key, called in names.items() if called & set(close)])[:3]


def _names(weekend: Weekend) -> set[str]:
    names = {weekend.slug, weekend.circuit, _slugged(weekend.event_name.removesuffix(" Grand Prix"))}
    try:
        circuit = circuit_of(weekend.circuit, weekend.layout)
    except UnknownCircuit:
        return names
    return names | {_slugged(circuit.country), _slugged(circuit.place), _slugged(circuit.name)}


def _slugged(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return "-".join(plain.replace("_", " ").replace("-", " ").split())
