"""The calendar as a CSV file: one row per weekend, times in UTC, columns as in `data/calendar.csv`."""
from __future__ import annotations

import csv
import os
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import cast

from f1_pipelines.identity.weekend import SESSION_KIND, InvalidCalendar, Weekend

_STARTS = tuple(f"{session}_start" for session in SESSION_KIND)
COLUMNS = ("weekend", "season", "round", "event_name", "circuit", "layout", "format", "planned", "race_laps",
           "race_date_local", *_STARTS)


def read_calendar(path: Path) -> list[Weekend]:
    """Read the weekends of a calendar file.

    Raises:
        InvalidCalendar: The file is not valid; the message names the line.
    """
    try:
        return _read(path)
    except (UnicodeDecodeError, csv.Error) as error:
        raise InvalidCalendar(f"{path} is not a CSV file in UTF-8: {error}") from error


def _read(path: Path) -> list[Weekend]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file, restval="")
        missing = [column for column in COLUMNS if column not in (reader.fieldnames or ())]
        if missing:
            raise InvalidCalendar(f"{path} lacks the columns {', '.join(missing)}; "
                                  f"a calendar needs {', '.join(COLUMNS)}.")
        weekends = []
        for row in reader:
            try:
                weekends.append(_weekend(row))
            except ValueError as error:
                raise InvalidCalendar(f"{path} line {reader.line_num}: {error}") from error
    for what, values in (("weekend", [w.key for w in weekends]),
                         ("round", [f"{w.season} R{w.round}" for w in weekends if w.round is not None])):
        twice = [value for value, count in Counter(values).items() if count > 1]
        if twice:
            raise InvalidCalendar(f"{path} has the {what} {', '.join(twice)} more than once; keep one row each.")
    return weekends


def _weekend(row: Mapping[str, str]) -> Weekend:
    season, _, slug = row["weekend"].strip().partition("-")
    weekend = Weekend(
        key=row["weekend"].strip(), season=cast("int", _whole(row, "season")), slug=slug,
        round=_whole(row, "round", optional=True), event_name=row["event_name"].strip(), circuit=row["circuit"].strip(),
        layout=row["layout"].strip(), format=row["format"].strip(), planned=row["planned"].strip(),
        race_laps=_whole(row, "race_laps", optional=True),
        sessions={column.removesuffix("_start"): _instant(row, column) for column in _STARTS if row[column].strip()},
    )
    if given := row["race_date_local"].strip():
        days = abs((date.fromisoformat(given) - weekend.race_start.date()).days)
        if days > 1:
            raise InvalidCalendar(f"{weekend.key} races on {given} at the circuit, but race_start is {days} days away")
    return weekend


def _whole(row: Mapping[str, str], column: str, optional: bool = False) -> int | None:
    text = row[column].strip()
    if optional and not text:
        return None
    if not text.isdigit() or int(text) == 0:
        raise InvalidCalendar(f'{column} is "{text}"; wanted a whole number from 1')
    return int(text)


def _instant(row: Mapping[str, str], column: str) -> datetime:
    try:
        return datetime.fromisoformat(row[column].strip())
    except ValueError:
        raise InvalidCalendar(f'{column} is "{row[column]}"; wanted a time like 2024-11-03T15:30:00Z') from None


def _row(weekend: Weekend) -> dict[str, object]:
    starts = {f"{name}_start": f"{start:%Y-%m-%dT%H:%M:%SZ}" for name, start in weekend.sessions.items()}
    plain = {name: getattr(weekend, name) for name in COLUMNS[1:9]}
    return {"weekend": weekend.key, **plain, "race_date_local": weekend.race_date_local, **starts}


def add_refreshed(path: Path, weekends: Iterable[Weekend]) -> None:
    """Add weekends to a refreshed calendar file, in place of its rows of the same keys. Creates the file if missing.

    A row that stays loses its round if an added weekend has it: no two weekends share a round.
    """
    added = {weekend.key: weekend for weekend in weekends}
    taken = {(weekend.season, weekend.round) for weekend in added.values()}
    others = [weekend for weekend in read_calendar(path) if weekend.key not in added] if path.exists() else []
    write_refreshed(path, [*added.values(), *(
        replace(weekend, round=None) if (weekend.season, weekend.round) in taken else weekend for weekend in others)])


def write_refreshed(path: Path, weekends: Iterable[Weekend]) -> None:
    """Write a refreshed calendar file atomically: readers see the old file or the new one."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(_row(w) for w in sorted(weekends, key=lambda w: (w.race_start, w.key)))
        os.chmod(temporary, 0o644)  # mkstemp's 0600 would lock out a server that runs as another user
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
