"""What a Grand Prix weekend is, and which sessions it is made of in each format."""
from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Literal

from f1_pipelines.identity.circuits import UnknownCircuit, timezone_of

# The order of sessions is that of each format, not of the clock: a rained-off qualifying keeps its place.
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
    """There is no such session, or not at this weekend."""


class InvalidCalendar(ValueError):
    """A weekend or calendar file that can't be used; the message names the line, what came and what was wanted."""


@dataclass(frozen=True)
class Weekend:
    """One Grand Prix event, as it stands now.

    `sessions` holds the known starts (UTC, chronological, always with `race`); `session_names` all sessions that the
    weekend consists of, in the order of its format. `round` is None when the race was cancelled. `race_laps` is the
    distance driven, or planned before the race.
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
            raise InvalidCalendar(f'weekend is "{self.key}" in season {self.season}; {self.season}-slug is wanted, the '
                                  "slug in lower-case letters, digits and hyphens")
        empty = [name for name in ("event_name", "circuit", "layout") if not getattr(self, name)]
        if empty:
            raise InvalidCalendar(f"{self.key} lacks its {' and '.join(empty)}; fill it in")
        for name, value, allowed in (("format", self.format, SESSIONS_OF_FORMAT), ("planned", self.planned, PLANNED)):
            if value not in allowed:
                raise InvalidCalendar(f'{name} is "{value}", one of {", ".join(allowed)} is wanted')
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
        """What is held at this weekend. Once the start of qualifying is known, a session without one isn't held:
        2020-emilia-romagna was a two-day event."""
        names = SESSIONS_OF_FORMAT[self.format]
        return tuple(name for name in names if name in self.sessions) if "qualifying" in self.sessions else names

    @property
    def race_start(self) -> datetime:
        return self.sessions["race"]

    @property
    def race_date_local(self) -> date | None:
        """The date at the circuit, which is not always the date in UTC; None where the circuit's zone is unknown."""
        try:
            return self.race_start.astimezone(timezone_of(self.circuit, self.layout)).date()
        except UnknownCircuit:
            return None


def session_kind(session: str) -> Literal["practice", "qualifying", "race"]:
    """What a session is like: a sprint is a race, sprint qualifying and shootout are qualifyings."""
    if session not in SESSION_KIND:
        raise UnknownSession(f'"{session}" is no session; one of {", ".join(SESSION_KIND)} is wanted.')
    return SESSION_KIND[session]


def fastf1_session_name(weekend: Weekend, session: str) -> str:
    """What FastF1's schedule calls this session of this weekend.

    Its short "SQ" meant the sprint race in 2021-22 and nothing in 2023, so only full names are used.
    """
    if session not in weekend.session_names:
        raise UnknownSession(f'{weekend.key} has no "{session}"; it has {", ".join(weekend.session_names)}.')
    if session == "sprint_qualifying" and weekend.format == "sprint_shootout":
        return "Sprint Shootout"
    return session.replace("_", " ").title()
