"""The source `f1db`: complete seasons of results, grids, qualifying, practice and pit stops. No lap times."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from pathlib import Path

import pandas as pd

from f1_pipelines.identity.weekends import Weekend, known_weekends
from f1_pipelines.sources.base import Fetched, Refusal
from f1_pipelines.sources.classification import check_classification, check_drivers_once, check_qualifying
from f1_pipelines.sources.f1db import tables as f1db_rows
from f1_pipelines.sources.f1db.release import F1dbRelease
from f1_pipelines.sources.laps_archive import LapsArchive
from f1_pipelines.sources.updates import Phase, SourceUpdate, update_in
from f1_pipelines.tables import race
from f1_pipelines.tables.schema import InvalidRows, Table


class F1dbSource:
    """Reads an f1db CSV release. Its results are official; tables that a release lacks are omitted."""

    name = "f1db"

    def __init__(self, release: F1dbRelease, now: Callable[[], datetime], archive: LapsArchive | None = None,
                 calendar_path: Path | None = None):
        """
        Args:
            release: The release to read.
            now: Returns the current time, timezone-aware; the rows' `fetched_at`.
            archive: Source of laps, since f1db publishes none; it is named in their rows.
            calendar_path: The refreshed calendar, if any; see `identity.weekends`.
        """
        self._release = release
        self._archive = archive
        self._now = now
        self._calendar_path = calendar_path

    def calendar(self, seasons: Sequence[int]) -> pd.DataFrame:
        """Rows of `race.calendar`. No weekend is `done`: only stored results make it so.

        Before 2023 f1db has only the date of a race; its time of day then comes from our own weekends.
        """
        rows = f1db_rows.calendar(self._release, self._races, seasons)
        starts = {weekend.key: weekend.race_start for weekend in known_weekends(self._calendar_path)}
        known = pd.to_datetime(rows["weekend"].map(starts), utc=True)
        rows["race_start"] = rows["race_start"].fillna(known).fillna(rows["race_date"])
        return race.CALENDAR.conform(self._stamped(rows.drop(columns="race_date"), race.CALENDAR))

    def practice(self, weekends: Sequence[Weekend]) -> Fetched:
        races = self._races_of(weekends)
        rows = pd.concat([f1db_rows.practice(self._release, races, number) for number in (1, 2, 3)])
        sessions = [(weekend, session) for weekend in weekends for session in weekend.session_names
                    if session.startswith("practice")]
        return self._by_session(race.PRACTICE, rows, sessions, check_drivers_once)

    def qualifying(self, weekends: Sequence[Weekend]) -> Fetched:
        races = self._races_of(weekends)
        rows = pd.concat([f1db_rows.qualifying(self._release, races, session)
                          for session in ("qualifying", "sprint_qualifying")])
        sessions = [(weekend, session) for weekend in weekends for session in weekend.session_names
                    if session.endswith("qualifying")]
        fetched = self._by_session(race.QUALIFYING, rows, sessions, check_qualifying)
        grid = pd.concat([f1db_rows.grid(self._release, races, session) for session in ("race", "sprint")])
        sessions = [(weekend, session) for session in ("race", "sprint") for weekend in weekends]
        _add(fetched, self._by_session(race.GRID, grid, sessions, check_drivers_once, optional=True))
        return fetched

    def results(self, weekends: Sequence[Weekend]) -> Fetched:
        races, fetched = self._races_of(weekends), Fetched()
        for table, session in ((race.RESULTS, "race"), (race.SPRINT_RESULTS, "sprint")):
            rows = f1db_rows.results(self._release, races, session)
            sessions = [(weekend, session) for weekend in weekends if session in weekend.session_names]
            _add(fetched, self._by_session(table, rows, sessions, _check_results))
        complete = set(fetched.tables[race.RESULTS.qualified]["weekend"])
        sessions = [(weekend, "race") for weekend in weekends if weekend.key in complete]
        stops = f1db_rows.pit_stops(self._release, races)
        _add(fetched, self._by_session(race.PIT_STOPS, stops, sessions, optional=True))
        return fetched

    def laps(self, weekends: Sequence[Weekend]) -> Fetched:
        """Laps of the archive, if any: f1db publishes no lap times."""
        if self._archive is not None:
            return self._archive.laps(weekends)
        reason = "f1db has no lap times; use F1_SOURCE=fastf1"
        return Fetched(refused=[Refusal(weekend.key, "race", reason, expected=True) for weekend in weekends])

    def news(self, weekend: Weekend, phase: Phase) -> SourceUpdate:
        fetched = self.results([weekend]) if phase == "post_race" else self.qualifying([weekend])
        return update_in(fetched, phase)

    @cached_property
    def _races(self) -> pd.DataFrame:
        return f1db_rows.races(self._release)

    def _races_of(self, weekends: Sequence[Weekend]) -> pd.DataFrame:
        return self._races[self._races["weekend"].isin({weekend.key for weekend in weekends})]

    def _stamped(self, rows: pd.DataFrame, table: Table) -> pd.DataFrame:
        stamps = {"source": self.name, "source_version": self._release.version, "fetched_at": self._now()}
        return rows.assign(**{name: value for name, value in stamps.items() if name in table.column_names})

    def _by_session(self, table: Table, rows: pd.DataFrame, sessions: Iterable[tuple[Weekend, str]],
                    check: Callable[[pd.DataFrame], None] | None = None, optional: bool = False) -> Fetched:
        """Collect the sessions that keep the rules. Refuse faulty ones, and missing ones unless `optional`."""
        by_session = dict(list(rows.groupby(["weekend", "session"])))
        fetched, sheets = Fetched(), {}
        for weekend, session in sessions:
            sheet = by_session.get((weekend.key, session))
            if sheet is None:
                if not optional:
                    fetched.refused.append(self._missing(weekend, session))
                continue
            try:
                _check_named(sheet)
                if check is not None:
                    check(sheet)
                sheets[weekend.key, session] = sheet
            except InvalidRows as problem:
                fetched.refused.append(Refusal(weekend.key, session, f"{problem} (f1db)"))
        fetched.tables[table.qualified] = self._conformed(table, sheets, fetched.refused)
        return fetched

    def _conformed(self, table: Table, sheets: Mapping[tuple[str, str], pd.DataFrame],
                   refused: list[Refusal]) -> pd.DataFrame:
        """Conform the sheets to the table: all at once, and only if that fails one by one, which takes seconds."""
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

    def _missing(self, weekend: Weekend, session: str) -> Refusal:
        races = self._races
        row = races[races["weekend"] == weekend.key]
        if weekend.planned == "cancelled":
            return Refusal(weekend.key, session, "the weekend was cancelled", expected=True)
        if row.empty:
            return Refusal(weekend.key, session, "this f1db release does not have the weekend; a newer one may",
                           retry=True)
        if weekend.key in self._finished and session != "race":
            return Refusal(weekend.key, session, "not held or not recorded: f1db has the race but no rows of this "
                           "session", expected=True)
        start = weekend.sessions.get(session, weekend.race_start)
        if start > self._now():
            return Refusal(weekend.key, session, f"not held yet (starts {start:%Y-%m-%d %H:%M} UTC)", retry=True)
        return Refusal(weekend.key, session, "this f1db release has no rows of this session yet; fetch a newer one",
                       retry=True)

    @cached_property
    def _finished(self) -> set[str]:
        return set(f1db_rows.finished_weekends(self._release, self._races))


def _add(fetched: Fetched, more: Fetched) -> None:
    fetched.tables.update(more.tables)
    fetched.refused += more.refused


def _check_named(rows: pd.DataFrame) -> None:
    if rows["driver"].isna().any():
        raise InvalidRows("a car without a driver")


def _check_results(rows: pd.DataFrame) -> None:
    unknown = rows[rows["unknown_status"].notna()]
    if len(unknown):
        raise InvalidRows(f"{unknown['driver'].iloc[0]}: {unknown['unknown_status'].iloc[0]}")
    check_classification(rows)
