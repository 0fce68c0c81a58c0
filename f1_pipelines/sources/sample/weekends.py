"""A weekend of the sample. Each session is driven once and cached.

Qualifying sets the grid of the race; in 2022 a sprint does. Since 2023 a sprint has its own qualifying.
"""
from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from f1_pipelines.identity.line_ups import Entry, field_size, line_up
from f1_pipelines.identity.weekend import Weekend
from f1_pipelines.sources.sample import grids, sessions
from f1_pipelines.sources.sample.races import DrivenRace, Start, drive


class SampleWeekend:
    """One weekend of the embedded calendar."""

    def __init__(self, weekend: Weekend):
        self.weekend = weekend
        self.driven: dict[str, DrivenRace] = {}

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        return line_up(self.weekend.key)

    @cached_property
    def qualifyings(self) -> dict[str, sessions.QualifyingSheet]:
        """Sheets of qualifying, and of sprint qualifying if the format has one."""
        return {name: sessions.qualifying(self.weekend, name, self.entries, field_size(self.weekend.season))
                for name in self.weekend.session_names if name.endswith("qualifying")}

    def grid(self, session: str) -> grids.Grid:
        """The grid of the `race` or `sprint`. That of a race may need its sprint to be driven first."""
        if session == "sprint":
            order = self.qualifyings[sessions.sprint_qualifying_of(self.weekend)].order
            return grids.sprint_grid(self.weekend, self.entries, order)
        order = self.driven["sprint"].place.argsort() if grid_session(self.weekend, session) == "sprint" else \
            self.qualifyings["qualifying"].order
        return grids.race_grid(self.weekend, self.entries, order)


def grid_session(weekend: Weekend, session: str) -> str:
    """The session after which the grid of the `race` or `sprint` is known."""
    if session == "sprint":
        return sessions.sprint_qualifying_of(weekend)
    return "sprint" if weekend.format == "sprint" else "qualifying"


def drive_sessions(weekends: Iterable[SampleWeekend], session: str) -> None:
    """Drive the `race` or `sprint` of these weekends together, except those already driven."""
    pending = [weekend for weekend in weekends
               if session in weekend.weekend.session_names and session not in weekend.driven]
    if session == "race":
        drive_sessions([w for w in pending if grid_session(w.weekend, "race") == "sprint"], "sprint")
    driven = drive([Start(w.weekend, session, w.entries, w.grid(session)) for w in pending])
    for weekend in pending:
        weekend.driven[session] = driven[weekend.weekend.key, session]
