"""The source `f1db`: whole seasons of results, grids, qualifying, practice and pit stops in seconds. No lap times."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from pathlib import Path

import pandas as pd

from f1_pipelines.identity.weekends import Weekend, known_weekends
from f1_pipelines.sources.base import Fetched, Refusal
from f1_pipelines.sources.classification import check_classification, check_drivers_once, check_qualifying
from f1_pipelines.sources.f1db import tables as rows_of
from f1_pipelines.sources.f1db.release import F1dbRelease
from f1_pipelines.sources.laps_archive import LapsArchive
from f1_pipelines.sources.updates import Phase, SourceUpdate, in_what_was_fetched
from f1_pipelines.tables import race
from f1_pipelines.tables.schema import InvalidRows, Table


class F1dbSource:
    """Reads an f1db CSV release. Its results are official; what a release does not hold is left out."""

    name = "f1db"

    def __init__(self, release: F1dbRelease, now: Callable[[], datetime], archive: LapsArchive | None = None,
                 calendar_path: Path | None = None):
        """
        Args:
            release: The release to read.
            now: Gives the present instant, timezone-aware; the rows' `fetched_at`.
            archive: Where laps come from, since f1db publishes none; its rows say so.
            calendar_path: The refreshed calendar, if any; see `identity.weekends`.
        """
        self._release = release
        self._archive = archive
        self._now = now
        self._calendar_path = calendar_path

    def calendar(self, seasons: Sequence[int]) -> pd.DataFrame:
        """Rows of `race.calendar`; that the release holds a weekend's results makes none `done`, storing them does.

        Before 2023 f1db gives a race its date alone: the time of day is then that of the weekends we know.
        """
        rows = rows_of.calendar(self._release, self._races, seasons)
        starts = {weekend.key: weekend.race_start for weekend in known_weekends(self._calendar_path)}
        known = pd.to_datetime(rows["weekend"].map(starts), utc=True)
        rows["race_start"] = rows["race_start"].fillna(known).fillna(rows["race_date"])
        return race.CALENDAR.conform(self._stamped(rows.drop(columns="race_date"), race.CALENDAR))

    def practice(self, weekends: Sequence[Weekend]) -> Fetched:
        races = self._races_of(weekends)
        rows = pd.concat([rows_of.practice(self._release, races, number) for number in (1, 2, 3)])
        wanted = [(weekend, session) for weekend in weekends for session in weekend.session_names
                  if session.startswith("practice")]
        return self._by_session(race.PRACTICE, rows, wanted, check_drivers_once)

    def qualifying(self, weekends: Sequence[Weekend]) -> Fetched:
        races = self._races_of(weekends)
        rows = pd.concat([rows_of.qualifying(self._release, races, session)
                          for session in ("qualifying", "sprint_qualifying")])
        wanted = [(weekend, session) for weekend in weekends for session in weekend.session_names
                  if session.endswith("qualifying")]
        fetched = self._by_session(race.QUALIFYING, rows, wanted, check_qualifying)
        grid = pd.concat([rows_of.grid(self._release, races, session) for session in ("race", "sprint")])
        wanted = [(weekend, session) for session in ("race", "sprint") for weekend in weekends]
        _add(fetched, self._by_session(race.GRID, grid, wanted, check_drivers_once, may_lack=True))
        return fetched

    def results(self, weekends: Sequence[Weekend]) -> Fetched:
        races, fetched = self._races_of(weekends), Fetched()
        for table, session in ((race.RESULTS, "race"), (race.SPRINT_RESULTS, "sprint")):
            rows = rows_of.results(self._release, races, session)
            wanted = [(weekend, session) for weekend in weekends if session in weekend.session_names]
            _add(fetched, self._by_session(table, rows, wanted, _check_results))
        complete = set(fetched.tables[race.RESULTS.qualified]["weekend"])
        wanted = [(weekend, "race") for weekend in weekends if weekend.key in complete]
        stops = rows_of.pit_stops(self._release, races)
        _add(fetched, self._by_session(race.PIT_STOPS, stops, wanted, may_lack=True))
        return fetched

    def laps(self, weekends: Sequence[Weekend]) -> Fetched:
        """Those of the archive, if there is one: f1db publishes no lap times."""
        if self._archive is not None:
            return self._archive.laps(weekends)
        reason = "f1db has no lap times; use F1_SOURCE=fastf1"
        return Fetched(refused=[Refusal(weekend.key, "race", reason, expected=True) for weekend in weekends])

    def news(self, weekend: Weekend, phase: Phase) -> SourceUpdate:
        fetched = self.results([weekend]) if phase == "post_race" else self.qualifying([weekend])
        return in_what_was_fetched(fetched, phase)

    @cached_property
    def _races(self) -> pd.DataFrame:
        return rows_of.races(self._release)

    def _races_of(self, weekends: Sequence[Weekend]) -> pd.DataFrame:
        return self._races[self._races["weekend"].isin({weekend.key for weekend in weekends})]

    def _stamped(self, rows: pd.DataFrame, table: Table) -> pd.DataFrame:
        stamps = {"source": self.name, "source_version": self._release.version, "fetched_at": self._now()}
        return rows.assign(**{name: value for name, value in stamps.items() if name in table.column_names})

    def _by_session(self, table: Table, rows: pd.DataFrame, wanted: Iterable[tuple[Weekend, str]],
                    check: Callable[[pd.DataFrame], None] | None = None, may_lack: bool = False) -> Fetched:
        """The wanted sessions that are there and keep the rules; a refusal for each faulty one.

        One that is not there is refused too, unless it `may_lack`.
        """
        by_session = dict(list(rows.groupby(["weekend", "session"])))
        fetched, pieces = Fetched(), {}
        for weekend, session in wanted:
            sheet = by_session.get((weekend.key, session))
            if sheet is None:
                if not may_lack:
                    fetched.refused.append(self._not_there(weekend, session))
                continue
            try:
                _check_named(sheet)
                if check is not None:
                    check(sheet)
                pieces[weekend.key, session] = sheet
            except InvalidRows as problem:
                fetched.refused.append(Refusal(weekend.key, session, f"{problem} (f1db)"))
        fetched.tables[table.qualified] = self._conformed(table, pieces, fetched.refused)
        return fetched

    def _conformed(self, table: Table, sheets: Mapping[tuple[str, str], pd.DataFrame],
                   refused: list[Refusal]) -> pd.DataFrame:
        """The sheets as rows of the table: all at once, and only where that fails one by one, which takes seconds."""
        def fit(rows: pd.DataFrame) -> pd.DataFrame:
            return table.conform(self._stamped(rows, table)[table.column_names])

        if not sheets:
            return table.empty()
        try:
            return fit(pd.concat(sheets.values()))
        except InvalidRows:
            fitting = []
            for (weekend, session), sheet in sheets.items():
                try:
                    fitting.append(fit(sheet))
                except InvalidRows as problem:
                    refused.append(Refusal(weekend, session, f"{problem} (f1db)"))
            return pd.concat(fitting, ignore_index=True) if fitting else table.empty()

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


def _add(fetched: Fetched, more: Fetched) -> None:
    fetched.tables.update(more.tables)
    fetched.refused += more.refused


def _check_named(rows: pd.DataFrame) -> None:
    if rows["driver"].isna().any():
        raise InvalidRows("a car without a driver")


def _check_results(rows: pd.DataFrame) -> None:
    unread = rows[rows["unknown_status"].notna()]
    if len(unread):
        raise InvalidRows(f"{unread['driver'].iloc[0]}: {unread['unknown_status'].iloc[0]}")
    check_classification(rows)
