"""What every source of race data promises, whoever is behind it.

A source fetches; it never writes. What it hands over has passed the declared tables and the rules of a classification,
so that a faulty session is refused here, with its reason, and what the warehouse already holds stays as it is.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import pandas as pd

from f1_pipelines.identity.weekends import Weekend

if TYPE_CHECKING:
    from f1_pipelines.sources.updates import Phase, SourceUpdate


class SourceError(RuntimeError):
    """A source can't answer at all. One sentence: what came, what was wanted, what to do."""


class SourceUnavailable(SourceError):
    """The source may answer later (no network, a 5xx, a rate limit): retry with a delay."""


@dataclass(frozen=True)
class Refusal:
    """A session that is not handed over, and why.

    `retry`: it may be complete later. `expected`: nothing was to be had (cancelled, not held, or data of a kind that
    this source never has), so that lacking it is no fault.
    """

    weekend: str
    session: str
    reason: str
    retry: bool = False
    expected: bool = False

    def __str__(self) -> str:
        return f"{self.weekend} {self.session}: {self.reason}"


@dataclass
class Fetched:
    """Rows by qualified table name (`race.results`), only of complete sessions, and the sessions refused."""

    tables: dict[str, pd.DataFrame] = field(default_factory=dict)
    refused: list[Refusal] = field(default_factory=list)


class RaceDataSource(Protocol):
    """Timing and results of weekends.

    Every method takes any number of weekends and returns rows for those that it has complete. A source that has no
    such data at all (f1db has no lap times) leaves the table out.
    """

    name: str

    def calendar(self, seasons: Sequence[int]) -> pd.DataFrame:
        """The schedule as the source has it: rows of `race.calendar`. May lack weekends; that removes none."""
        ...

    def practice(self, weekends: Sequence[Weekend]) -> Fetched:
        """`race.practice`, and where there is timing `race.session_laps`, `race.weather`, `race.race_control`."""
        ...

    def qualifying(self, weekends: Sequence[Weekend]) -> Fetched:
        """`race.qualifying` (both kinds) and `race.grid`; with timing, laps, weather and messages as in practice."""
        ...

    def results(self, weekends: Sequence[Weekend]) -> Fetched:
        """`race.results`, `race.sprint_results` and `race.pit_stops`."""
        ...

    def laps(self, weekends: Sequence[Weekend]) -> Fetched:
        """`race.laps` of the Grand Prix and `race.session_laps` of the sprint, with weather and messages."""
        ...

    def news(self, weekend: Weekend, phase: Phase) -> SourceUpdate:
        """Which version of a phase's data there is: of qualifying before the race, of the official result after it.

        For a sensor that looks often: one request at most, and never a session's timing.
        """
        ...
