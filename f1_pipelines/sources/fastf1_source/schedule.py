"""Match FastF1's schedule to our weekends, and convert it to rows of `race.calendar`."""
from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pandas as pd

from f1_pipelines.identity.circuits import circuits
from f1_pipelines.identity.weekends import Weekend
from f1_pipelines.tables.race import SESSIONS

if TYPE_CHECKING:
    from fastf1.events import Event, EventSchedule

_SAME_ROUND_WITHIN = timedelta(days=4)  # twin races at one circuit are a week apart
_SAME_DATE_WITHIN = timedelta(days=2)
_LONGEST_RACE = timedelta(hours=4)
_OUR_NAMES = {"Practice 1": "practice_1", "Practice 2": "practice_2", "Practice 3": "practice_3",
              "Sprint Shootout": "sprint_qualifying", "Sprint Qualifying": "sprint_qualifying", "Sprint": "sprint",
              "Qualifying": "qualifying", "Race": "race"}


def match_events(schedule: EventSchedule, weekends: Sequence[Weekend]) -> dict[Any, Weekend]:
    """Match events to our weekends, by the schedule's index. Events without a match are omitted.

    They match by round and date, then by date alone (a renumbered season), then by place (a race that was moved, or a
    cancelled one that is on again). Never by the event's name: "Spanish Grand Prix" is Madrid in 2026.
    """
    matches: dict[Any, Weekend] = {}
    starts = {index: start for index, event in schedule.iterrows() if (start := session_starts(event).get("race"))}

    def distance(weekend: Weekend, index: Any) -> timedelta:
        return abs(weekend.race_start - starts[index])

    def match(index: Any, candidates: list[Weekend]) -> None:
        unmatched = [weekend for weekend in candidates if weekend not in matches.values()]
        if unmatched and index not in matches:
            matches[index] = min(unmatched, key=lambda weekend: distance(weekend, index))

    scheduled = [weekend for weekend in weekends if weekend.planned != "cancelled"]
    for index in starts:
        round_number = schedule.loc[index, "RoundNumber"]
        match(index, [w for w in scheduled if w.round == round_number and distance(w, index) <= _SAME_ROUND_WITHIN])
    for index in starts:
        match(index, [w for w in scheduled if distance(w, index) <= _SAME_DATE_WITHIN])
    for index in set(starts) - set(matches):
        match(index, [w for w in weekends if slug(schedule.loc[index, "Location"]) in _places(w.circuit)])
    return matches


def events_by_weekend(schedule: EventSchedule, weekends: Sequence[Weekend]) -> dict[str, Event]:
    """FastF1's events by our weekend keys; a partial schedule lacks some."""
    return {weekend.key: schedule.loc[index] for index, weekend in match_events(schedule, weekends).items()}


def calendar_rows(schedule: EventSchedule, season: int, known: Sequence[Weekend],
                  now: datetime) -> list[dict[str, Any]]:
    """Rows of `race.calendar` without provenance, one per event with a race start.

    Key and circuit of a known weekend are ours, all else is from the schedule. `state` follows the clock alone: only
    stored results make a weekend `done`.

    Args:
        schedule: FastF1's schedule of the season.
        season: The year.
        known: Our weekends of all seasons: a new weekend may be at the circuit of an old one.
        now: The current time, timezone-aware.
    """
    weekends = [weekend for weekend in known if weekend.season == season]
    matches, keys, rows = match_events(schedule, weekends), {weekend.key for weekend in weekends}, []
    for index, event in schedule.iterrows():
        starts = session_starts(event)
        if "race" not in starts:
            continue
        if (match := matches.get(index)) is not None:
            identity = {"weekend": match.key, "circuit": match.circuit, "layout": match.layout}
        else:
            identity = _new_weekend(event, season, keys, known)
            keys.add(identity["weekend"])
        live = min(starts.values()) <= now < starts["race"] + _LONGEST_RACE
        rows.append({
            **identity, "season": season, "round": event["RoundNumber"], "event_name": event["EventName"],
            "format": weekend_format(event["EventFormat"], season), "state": "live" if live else "upcoming",
            "race_laps": None, **{f"{session}_start": starts.get(session) for session in SESSIONS}})
    return rows


def session_starts(event: Mapping[str, Any]) -> dict[str, datetime]:
    """Starts by our session names. FastF1's slots are read by name: some are empty, and their order changed."""
    starts = {}
    for slot in range(1, 6):
        name, start = event[f"Session{slot}"], event[f"Session{slot}DateUtc"]
        if name in _OUR_NAMES and pd.notna(start):
            # In 2021 the live timing called the sprint itself "Sprint Qualifying".
            is_sprint = name == "Sprint Qualifying" and event["EventFormat"] == "sprint"
            starts["sprint" if is_sprint else _OUR_NAMES[name]] = start.to_pydatetime().replace(tzinfo=UTC)  # naive UTC
    return starts


def weekend_format(fastf1_format: str, season: int) -> str:
    """Convert the format. The season decides the kind of sprint weekend: the schedule has confused them (2024)."""
    if not fastf1_format.startswith("sprint"):
        return "conventional"
    return "sprint" if season <= 2022 else "sprint_shootout" if season == 2023 else "sprint_qualifying"


def slug(text: str) -> str:
    """Convert "São Paulo Grand Prix" to `sao-paulo`."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return "-".join(re.findall(r"[a-z0-9]+", plain.removesuffix("grand prix")))


def _new_weekend(event: Mapping[str, Any], season: int, keys: set[str], known: Sequence[Weekend]) -> dict[str, str]:
    place = slug(event["Location"])
    key = f"{season}-{slug(event['EventName'])}"
    if key in keys:  # a second event of that name
        key = f"{key}-{place}"
    earlier = [weekend for weekend in known if place in _places(weekend.circuit)]
    if earlier:
        return {"weekend": key, "circuit": earlier[-1].circuit, "layout": earlier[-1].layout}
    return {"weekend": key, "circuit": place, "layout": place}


def _places(circuit: str) -> set[str]:
    """Names of a circuit and its place, as slugs."""
    layouts = [layout for layout in circuits().values() if layout.circuit == circuit]
    return {circuit, *(slug(name) for layout in layouts for name in (layout.place, layout.name))}
