"""FastF1's schedule against our weekends: which event is which, and its rows of `race.calendar`."""
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
_WEEKEND_LASTS = timedelta(hours=4)
_OUR_NAMES = {"Practice 1": "practice_1", "Practice 2": "practice_2", "Practice 3": "practice_3",
              "Sprint Shootout": "sprint_qualifying", "Sprint Qualifying": "sprint_qualifying", "Sprint": "sprint",
              "Qualifying": "qualifying", "Race": "race"}


def match_events(schedule: EventSchedule, weekends: Sequence[Weekend]) -> dict[Any, Weekend]:
    """Which of our weekends each event is, by the schedule's index; an event that is none of them is left out.

    Round and date together decide, then the date alone (a renumbered season), then the place (a race that was moved,
    or a cancelled one that is on again). Never the event's name: "Spanish Grand Prix" is Madrid in 2026.
    """
    matched: dict[Any, Weekend] = {}
    days = {index: start for index, event in schedule.iterrows() if (start := session_starts(event).get("race"))}

    def pair(index: Any, candidates: list[Weekend]) -> None:
        free = [weekend for weekend in candidates if weekend not in matched.values()]
        if free and index not in matched:
            matched[index] = min(free, key=lambda weekend: abs(weekend.race_start - days[index]))

    def apart(weekend: Weekend, index: Any) -> timedelta:
        return abs(weekend.race_start - days[index])

    held = [weekend for weekend in weekends if weekend.planned != "cancelled"]
    for index in days:
        round_number = schedule.loc[index, "RoundNumber"]
        pair(index, [w for w in held if w.round == round_number and apart(w, index) <= _SAME_ROUND_WITHIN])
    for index in days:
        pair(index, [w for w in held if apart(w, index) <= _SAME_DATE_WITHIN])
    for index in set(days) - set(matched):
        pair(index, [w for w in weekends if slug(schedule.loc[index, "Location"]) in _places(w.circuit)])
    return matched


def events_by_weekend(schedule: EventSchedule, weekends: Sequence[Weekend]) -> dict[str, Event]:
    """FastF1's events by our weekend keys; a partial schedule lacks some."""
    return {weekend.key: schedule.loc[index] for index, weekend in match_events(schedule, weekends).items()}


def calendar_rows(schedule: EventSchedule, season: int, known: Sequence[Weekend],
                  now: datetime) -> list[dict[str, Any]]:
    """Rows of `race.calendar` without provenance, one per event with a race start.

    Track and key of a known weekend are ours, the rest is as the schedule says. `state` goes by the clock alone: only
    results make a weekend `done`, and a schedule has none.

    Args:
        schedule: FastF1's schedule of the season.
        season: The year.
        known: Our weekends, of all seasons: a new weekend may be at the track of an old one.
        now: The present instant, timezone-aware.
    """
    weekends = [weekend for weekend in known if weekend.season == season]
    matched, taken, rows = match_events(schedule, weekends), {weekend.key for weekend in weekends}, []
    for index, event in schedule.iterrows():
        starts = session_starts(event)
        if "race" not in starts:
            continue
        if (ours := matched.get(index)) is not None:
            identity = {"weekend": ours.key, "circuit": ours.circuit, "layout": ours.layout}
        else:
            identity = _new_weekend(event, season, taken, known)
            taken.add(identity["weekend"])
        live = min(starts.values()) <= now < starts["race"] + _WEEKEND_LASTS
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
            ours = "sprint" if name == "Sprint Qualifying" and event["EventFormat"] == "sprint" else _OUR_NAMES[name]
            starts[ours] = start.to_pydatetime().replace(tzinfo=UTC)  # naive, but UTC
    return starts


def weekend_format(fastf1_format: str, season: int) -> str:
    """Our format. The season decides which kind of sprint weekend: the schedule has mixed them up (2024)."""
    if not fastf1_format.startswith("sprint"):
        return "conventional"
    return "sprint" if season <= 2022 else "sprint_shootout" if season == 2023 else "sprint_qualifying"


def slug(text: str) -> str:
    """"São Paulo Grand Prix" as `sao-paulo`."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return "-".join(re.findall(r"[a-z0-9]+", plain.removesuffix("grand prix")))


def _new_weekend(event: Mapping[str, Any], season: int, taken: set[str], known: Sequence[Weekend]) -> dict[str, str]:
    place = slug(event["Location"])
    key = f"{season}-{slug(event['EventName'])}"
    if key in taken:  # a second event of that name
        key = f"{key}-{place}"
    here = [weekend for weekend in known if place in _places(weekend.circuit)]
    if here:
        return {"weekend": key, "circuit": here[-1].circuit, "layout": here[-1].layout}
    return {"weekend": key, "circuit": place, "layout": place}


def _places(circuit: str) -> set[str]:
    """What a circuit's place is called, as slugs."""
    here = [known for known in circuits().values() if known.circuit == circuit]
    return {circuit, *(slug(name) for known in here for name in (known.place, known.name))}
