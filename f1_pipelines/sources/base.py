"""The interface of every source of race data.

A source fetches and never writes. Its rows have passed the declared tables and the rules of a classification: a faulty
session is refused here, with its reason, and the warehouse keeps what it holds.
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
    """A source can't answer at all. The message is one sentence: what came, what was wanted, what to do."""


class SourceUnavailable(SourceError):
    """The source may answer later (no network, a 5xx, a rate limit): retry with a delay."""


@dataclass(frozen=True)
class Refusal:
    """A session that is not returned, and why.

    `retry`: it may be complete later. `expected`: there are no data (cancelled, not held, or a kind of data that this
    source never has), so that their absence is no fault.
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
    """Rows of complete sessions by qualified table name (`race.results`), and the refused sessions."""

    tables: dict[str, pd.DataFrame] = field(default_factory=dict)
    refused: list[Refusal] = field(default_factory=list)


class RaceDataSource(Protocol):
    """Timing and results of weekends.

    Every method takes any number of weekends and returns the rows of complete sessions. A source without such data
    (f1db has no lap times) omits the table.
    """

    name: str

    def calendar(self, seasons: Sequence[int]) -> pd.DataFrame:
        """The schedule of the source, as rows of `race.calendar`. A weekend that it lacks is not removed."""
        ...

    def practice(self, weekends: Sequence[Weekend]) -> Fetched:
        """`race.practice`; with timing, also `race.session_laps`, `race.weather` and `race.race_control`."""
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
        """The version of a phase's data: of qualifying before the race, of the official result after it.

        For a sensor that polls often: at most one request, and never a session's timing.
        """
        ...
