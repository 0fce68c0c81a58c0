"""A Grand Prix weekend, and the sessions of each format."""
from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Literal

from f1_pipelines.identity.circuits import UnknownCircuit, timezone_of

# Sessions are in the order of the format, not by start: a rained-off qualifying keeps its place.
SESSIONS_OF_FORMAT: dict[str, tuple[str, ...]] = {
    "conventional": ("practice_1", "practice_2", "practice_3", "qualifying", "race"),
    "sprint": ("practice_1", "qualifying", "practice_2", "sprint", "race"),  # 2021-22
    "sprint_shootout": ("practice_1", "qualifying", "sprint_qualifying", "sprint", "race"),  # 2023
    "sprint_qualifying": ("practice_1", "sprint_qualifying", "sprint", "qualifying", "race"),  # since 2024
}
PLANNED = ("scheduled", "cancelled", "postponed")

SESSION_KIND: dict[str, Literal["practice", "qualifying", "race"]] = {
    "practice_1": "practice", "practice_2": "practice", "practice_3": "practice",
    "sprint_qualifying": "qualifying", "sprint": "race", "qualifying": "qualifying", "race": "race",
}


class UnknownSession(ValueError):
    """No such session exists, or not at this weekend."""


class InvalidCalendar(ValueError):
    """An invalid weekend or calendar file; the message names the line, what came and what was wanted."""


@dataclass(frozen=True)
class Weekend:
    """One Grand Prix weekend, as currently known.

    `sessions` holds the known starts (UTC, chronological, always with `race`); `session_names` lists all sessions of
    the weekend in the order of its format. `round` is None if the race was cancelled. `race_laps` is the distance
    driven, or the planned one before the race.
    """

    key: str
    season: int
    slug: str
    round: int | None
    event_name: str
    circuit: str
    layout: str
    format: str
    planned: str
    race_laps: int | None
    sessions: Mapping[str, datetime] = field(hash=False)

    def __post_init__(self) -> None:
        if self.key != f"{self.season}-{self.slug}" or not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", self.slug):
            raise InvalidCalendar(f'weekend is "{self.key}" in season {self.season}; wanted {self.season}-slug, the '
                                  "slug in lower-case letters, digits and hyphens")
        empty = [name for name in ("event_name", "circuit", "layout") if not getattr(self, name)]
        if empty:
            raise InvalidCalendar(f"{self.key} lacks its {' and '.join(empty)}; fill it in")
        for name, value, allowed in (("format", self.format, SESSIONS_OF_FORMAT), ("planned", self.planned, PLANNED)):
            if value not in allowed:
                raise InvalidCalendar(f'{name} is "{value}"; wanted one of {", ".join(allowed)}')
        if "race" not in self.sessions:
            raise InvalidCalendar("race_start is empty; every weekend needs one, cancelled ones too")
        for name, start in self.sessions.items():
            if name not in SESSIONS_OF_FORMAT[self.format]:
                raise InvalidCalendar(f'a {self.format} weekend has no {name}, but it starts at "{start}"')
            if start.tzinfo is None:
                raise InvalidCalendar(f'{name} starts at "{start}" without a time zone; write it in UTC')
        in_order = sorted(((name, start.astimezone(UTC)) for name, start in self.sessions.items()), key=lambda s: s[1])
        object.__setattr__(self, "sessions", dict(in_order))

    @property
    def session_names(self) -> tuple[str, ...]:
        """The sessions of this weekend. Once the start of qualifying is known, a session without a start isn't held:
        2020-emilia-romagna was a two-day event."""
        names = SESSIONS_OF_FORMAT[self.format]
        return tuple(name for name in names if name in self.sessions) if "qualifying" in self.sessions else names

    @property
    def race_start(self) -> datetime:
        return self.sessions["race"]

    @property
    def race_date_local(self) -> date | None:
        """The race date at the circuit, which may differ from that in UTC; None if its time zone is unknown."""
        try:
            return self.race_start.astimezone(timezone_of(self.circuit, self.layout)).date()
        except UnknownCircuit:
            return None


def session_kind(session: str) -> Literal["practice", "qualifying", "race"]:
    """The kind of a session: a sprint is a race; sprint qualifying and sprint shootout are qualifying."""
    if session not in SESSION_KIND:
        raise UnknownSession(f'"{session}" is no session; wanted one of {", ".join(SESSION_KIND)}.')
    return SESSION_KIND[session]


def fastf1_session_name(weekend: Weekend, session: str) -> str:
    """The name of a session in FastF1's schedule.

    FastF1's short "SQ" meant the sprint race in 2021-22 and nothing in 2023, so only full names are used.
    """
    if session not in weekend.session_names:
        raise UnknownSession(f'{weekend.key} has no "{session}"; it has {", ".join(weekend.session_names)}.')
    if session == "sprint_qualifying" and weekend.format == "sprint_shootout":
        return "Sprint Shootout"
    return session.replace("_", " ").title()
