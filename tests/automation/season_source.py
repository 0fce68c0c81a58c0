"""A source of the whole 2026 season that tests can change, and a clock that they set.

Races come from the sample's engine, for all of 2026 and not only the part that users get.
"""
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import ClassVar

import pandas as pd
import pytest

from f1_pipelines.identity.line_ups import embedded_weekends
from f1_pipelines.identity.weekends import Weekend
from f1_pipelines.resources.race_data import Clock, RaceData
from f1_pipelines.sources.base import Fetched, Refusal, SourceUnavailable
from f1_pipelines.sources.calendar import calendar_rows
from f1_pipelines.sources.classification import classification_hash
from f1_pipelines.sources.sample import SampleSource
from f1_pipelines.sources.sample import source as sample_module
from f1_pipelines.sources.updates import SourceUpdate, update_in
from f1_pipelines.tables.race import CALENDAR

RESULT_DELAY = timedelta(hours=3)  # from the start of a race to its official result
SESSION_LASTS = timedelta(hours=1)


@dataclass
class World:
    """State of the season and of the source. All sets hold weekend keys."""

    weekends: dict[str, Weekend] = field(default_factory=lambda: dict(embedded_weekends()))
    down: bool = False
    amended: set[str] = field(default_factory=set)  # the first two have swapped places
    provisional: set[str] = field(default_factory=set)  # the result is not official yet
    unreadable: set[str] = field(default_factory=set)  # no run can read the results
    without_grid: set[str] = field(default_factory=set)
    without_timing: set[str] = field(default_factory=set)
    templates: dict[str, str] = field(default_factory=dict)  # added weekend -> weekend whose sessions it copies

    def change(self, key: str, **values: object) -> None:
        self.weekends[key] = replace(self.weekends[key], **values)

    def move(self, key: str, by: timedelta) -> None:
        self.change(key, sessions={name: start + by for name, start in self.weekends[key].sessions.items()})


@cache
def sample_tables(kind: str, key: str) -> Fetched:
    """Tables of a weekend from the sample, at any date."""
    sample = SampleSource(lambda: datetime(2027, 1, 1, tzinfo=UTC))
    return getattr(sample, kind)([embedded_weekends()[key]])


class SeasonSource:
    """The world as a source, at the time of the clock."""

    name = "sample"

    def __init__(self, world: World, now):
        self.world, self.now = world, now

    def calendar(self, seasons) -> pd.DataFrame:
        self._check_connection()
        rows = calendar_rows([w for w in self.world.weekends.values() if w.season in seasons], self.now())
        return CALENDAR.conform(rows.assign(source="sample"))

    def practice(self, weekends) -> Fetched:
        return self._fetch("practice", weekends, self.world.without_timing)

    def qualifying(self, weekends) -> Fetched:
        return self._fetch("qualifying", weekends)

    def results(self, weekends) -> Fetched:
        return self._fetch("results", weekends, self.world.unreadable)

    def laps(self, weekends) -> Fetched:
        return self._fetch("laps", weekends, self.world.without_timing)

    def news(self, weekend, phase) -> SourceUpdate:
        kind = "results" if phase == "post_race" else "qualifying"
        return update_in(self._fetch(kind, [weekend]), phase)

    def _check_connection(self) -> None:
        if self.world.down:
            raise SourceUnavailable("no answer; try again later")

    def _fetch(self, kind, weekends, refused=frozenset()) -> Fetched:
        self._check_connection()
        frames: dict[str, list[pd.DataFrame]] = {}
        fetched = Fetched()
        for weekend in weekends:
            if weekend.key in refused:
                fetched.refused.append(Refusal(weekend.key, "race", "it can't be read"))
                continue
            key = self.world.templates.get(weekend.key, weekend.key)
            for name, rows in sample_tables(kind, key).tables.items():
                rows = rows.assign(weekend=weekend.key)
                frames.setdefault(name, []).append(self._published(name, rows, weekend.key))
            if not any(len(frames[name][-1]) for name in frames):
                fetched.refused.append(Refusal(weekend.key, "qualifying" if kind == "qualifying" else "race",
                                               "not there yet", retry=True))
        fetched.tables = {name: pd.concat(parts, ignore_index=True) for name, parts in frames.items()}
        return fetched

    def _published(self, name: str, rows: pd.DataFrame, key: str) -> pd.DataFrame:
        """Rows of finished sessions, with the current version of the result."""
        fixed = {"race.results": "race", "race.laps": "race", "race.pit_stops": "race", "race.sprint_results": "sprint"}
        sessions = pd.Series(fixed[name], index=rows.index) if name in fixed else rows["session"]
        if name == "race.grid":
            sessions = sessions.map({"race": "qualifying", "sprint": "sprint_qualifying"})
        rows = rows[sessions.map(lambda session: self._is_out(key, session)).astype(bool)].assign(fetched_at=self.now())
        if name == "race.grid" and key in self.world.without_grid:
            return rows[rows["session"] != "race"]
        if name != "race.results" or rows.empty:
            return rows
        if key in self.world.without_grid:
            rows = rows.assign(grid_position=pd.NA, grid_status="unknown")
        status = "provisional" if key in self.world.provisional else "official"
        if key in self.world.amended:
            places = rows["official_order"].map({1: 2, 2: 1}).fillna(rows["official_order"]).astype("Int32")
            rows = rows.assign(official_order=places, finish_position=places.where(rows["classified"]))
        rows = rows.assign(result_status=status)
        return rows.assign(content_hash=classification_hash(rows))

    def _is_out(self, key: str, session: str) -> bool:
        weekend = self.world.weekends.get(key)
        if weekend is None or weekend.planned != "scheduled" or session not in weekend.sessions:
            return False
        delay = RESULT_DELAY if session == "race" else SESSION_LASTS
        return weekend.sessions[session] + delay <= self.now()


class SeasonData(RaceData):
    """The resource that opens the season's source, under the name of a real one: only those change the calendar."""

    world: ClassVar[World]

    def open(self, clock: Clock, timeout_s: float | None = None) -> SeasonSource:
        return SeasonSource(self.world, clock.now)


class SetClock(Clock):
    """A clock that the test sets."""

    at: ClassVar[datetime]

    def now(self) -> datetime:
        return self.at


def extend_sample(patch: pytest.MonkeyPatch) -> None:
    """Extend the sample to the end of 2026."""
    patch.setattr(sample_module, "SAMPLE_END", datetime(2027, 1, 1, tzinfo=UTC))
