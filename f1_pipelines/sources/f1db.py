"""The source `f1db`: whole seasons of results, grids, qualifying, practice and pit stops in seconds. No lap times."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import cached_property

import pandas as pd

from f1_pipelines.identity.weekends import Weekend, known_weekends
from f1_pipelines.sources import f1db_tables as rows_of
from f1_pipelines.sources.base import Fetched, Refusal
from f1_pipelines.sources.classification import check_classification, check_drivers_once, check_qualifying
from f1_pipelines.sources.f1db_release import F1dbRelease
from f1_pipelines.tables import race
from f1_pipelines.tables.schema import InvalidRows, Table


class F1dbSource:
    """Reads an f1db CSV release. Its results are official; what a release does not hold is left out."""

    name = "f1db"

    def __init__(self, release: F1dbRelease, now: Callable[[], datetime]):
        """
        Args:
            release: The release to read.
            now: Gives the present instant, timezone-aware; the rows' `fetched_at`.
        """
        self._release = release
        self._now = now

    def calendar(self, seasons: Sequence[int]) -> pd.DataFrame:
        """Rows of `race.calendar`; a weekend is `done` when the release holds its results.

        Before 2023 f1db gives a race its date alone: the time of day is then the embedded calendar's.
        """
        rows = rows_of.calendar(self._release, self._races, seasons)
        known = pd.to_datetime(rows["weekend"].map({weekend.key: weekend.race_start for weekend in known_weekends()}),
                               utc=True)
        rows["race_start"] = rows["race_start"].fillna(known).fillna(rows["race_date"])
        return race.CALENDAR.conform(self._stamped(rows.drop(columns="race_date"), race.CALENDAR))

    def practice(self, weekends: Sequence[Weekend]) -> Fetched:
        rows = pd.concat([rows_of.practice(self._release, self._races, number) for number in (1, 2, 3)])
        wanted = [(weekend, session) for weekend in weekends for session in weekend.session_names
                  if session.startswith("practice")]
        return self._by_session(race.PRACTICE, rows, wanted, check_drivers_once)

    def qualifying(self, weekends: Sequence[Weekend]) -> Fetched:
        rows = pd.concat([rows_of.qualifying(self._release, self._races, session)
                          for session in ("qualifying", "sprint_qualifying")])
        wanted = [(weekend, session) for weekend in weekends for session in weekend.session_names
                  if session.endswith("qualifying")]
        fetched = self._by_session(race.QUALIFYING, rows, wanted, check_qualifying)
        grid = pd.concat([rows_of.grid(self._release, self._races, session) for session in ("race", "sprint")])
        keys = {weekend.key for weekend in weekends}
        grid = grid[grid["weekend"].isin(keys)]
        fetched.tables[race.GRID.qualified] = race.GRID.conform(self._stamped(grid, race.GRID))
        return fetched

    def results(self, weekends: Sequence[Weekend]) -> Fetched:
        fetched = Fetched()
        for table, session in ((race.RESULTS, "race"), (race.SPRINT_RESULTS, "sprint")):
            rows = rows_of.results(self._release, self._races, session)
            wanted = [(weekend, session) for weekend in weekends if session in weekend.session_names]
            part = self._by_session(table, rows, wanted, check_classification)
            fetched.tables.update(part.tables)
            fetched.refused += part.refused
        kept = set(fetched.tables[race.RESULTS.qualified]["weekend"])
        stops = rows_of.pit_stops(self._release, self._races)
        stops = stops[stops["weekend"].isin(kept)]
        fetched.tables[race.PIT_STOPS.qualified] = race.PIT_STOPS.conform(self._stamped(stops, race.PIT_STOPS))
        return fetched

    def laps(self, weekends: Sequence[Weekend]) -> Fetched:
        """Nothing: f1db publishes no lap times."""
        reason = "f1db has no lap times; use F1_SOURCE=fastf1"
        return Fetched(refused=[Refusal(weekend.key, "race", reason, expected=True) for weekend in weekends])

    @cached_property
    def _races(self) -> pd.DataFrame:
        return rows_of.races(self._release)

    def _stamped(self, rows: pd.DataFrame, table: Table) -> pd.DataFrame:
        stamps = {"source": self.name, "source_version": self._release.version, "fetched_at": self._now()}
        return rows.assign(**{name: value for name, value in stamps.items() if name in table.column_names})

    def _by_session(self, table: Table, rows: pd.DataFrame, wanted: Iterable[tuple[Weekend, str]],
                    check: Callable[[pd.DataFrame], None]) -> Fetched:
        """The wanted sessions that are there and keep the rules; a refusal for each of the others."""
        found = dict(list(rows.groupby(["weekend", "session"])))
        fetched, kept = Fetched(), []
        for weekend, session in wanted:
            sheet = found.get((weekend.key, session))
            if sheet is None:
                fetched.refused.append(self._not_there(weekend, session))
                continue
            try:
                check(sheet)
                kept.append(sheet)
            except InvalidRows as problem:
                fetched.refused.append(Refusal(weekend.key, session, f"{problem} (f1db)"))
        frame = pd.concat(kept) if kept else rows.iloc[:0]
        fetched.tables[table.qualified] = table.conform(self._stamped(frame, table)[table.column_names])
        return fetched

    def _not_there(self, weekend: Weekend, session: str) -> Refusal:
        races = self._races
        row = races[races["weekend"] == weekend.key]
        if weekend.planned == "cancelled":
            return Refusal(weekend.key, session, "the weekend was cancelled", expected=True)
        if row.empty:
            return Refusal(weekend.key, session, "this f1db release does not know the weekend; a newer one may",
                           retry=True)
        if weekend.key in self._finished and session != "race":
            return Refusal(weekend.key, session, "not held, or not recorded: f1db has the race but no rows of it",
                           expected=True)
        start = weekend.sessions.get(session, weekend.race_start)
        if start > self._now():
            return Refusal(weekend.key, session, f"not held yet (starts {start:%Y-%m-%d %H:%M} UTC)", retry=True)
        return Refusal(weekend.key, session, "this f1db release has no rows of it yet; fetch a newer one", retry=True)

    @cached_property
    def _finished(self) -> set[str]:
        return set(rows_of.finished_weekends(self._release, self._races))
