"""A weekend of the sample from its first practice to the flag, each session made once and kept.

Sessions follow each other as the format says: qualifying sets the grid of the race, in 2022 the sprint does where one
is held, and a sprint has its own qualifying since 2023.
"""
from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from f1_pipelines.identity.line_ups import Entry, field_size, line_up
from f1_pipelines.identity.weekend import Weekend
from f1_pipelines.sources.sample import grids, sessions
from f1_pipelines.sources.sample.races import Driven, Start, drive


class SampleWeekend:
    """One weekend of the embedded calendar."""

    def __init__(self, weekend: Weekend):
        self.weekend = weekend
        self.driven: dict[str, Driven] = {}

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        return line_up(self.weekend.key)

    @cached_property
    def qualifyings(self) -> dict[str, sessions.QualifyingSheet]:
        """Qualifying, and sprint qualifying where there is one."""
        return {name: sessions.qualifying(self.weekend, name, self.entries, field_size(self.weekend.season))
                for name in self.weekend.session_names if name.endswith("qualifying")}

    def grid(self, session: str) -> grids.Grid:
        """The grid of the `race` or `sprint`. The race's may need the sprint to be driven."""
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
    """Drive the `race` or `sprint` of these weekends, in one batch as far as none has been driven before."""
    waiting = [weekend for weekend in weekends
               if session in weekend.weekend.session_names and session not in weekend.driven]
    if session == "race":
        drive_sessions([w for w in waiting if grid_session(w.weekend, "race") == "sprint"], "sprint")
    starts = [Start(w.weekend, session, w.entries, w.grid(session)) for w in waiting]
    driven = drive(starts)
    for weekend in waiting:
        weekend.driven[session] = driven[weekend.weekend.key, session]
