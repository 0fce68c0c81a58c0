"""The source `fastf1`: lap timing from Formula 1's live timing, official sheets from jolpica-f1.

The unit is the session: a complete one is returned, an incomplete one is a `Refusal` that names the missing part. Laps
and official results are independent: a race without a sheet still has its laps, and vice versa. A failing server is
`SourceUnavailable`, and nothing is concluded from it. Results that FastF1 computes from timing are never stored as
official: without an official sheet there is no row of `race.results`, so every row is `official`, and a later amended
sheet has another content hash.
"""
from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pandas as pd

from f1_pipelines.identity.entrants import UnknownEntrant
from f1_pipelines.identity.weekends import Weekend, fastf1_session_name, known_weekends
from f1_pipelines.sources.base import Fetched, Refusal
from f1_pipelines.sources.classification import (
    check_classification,
    check_drivers_once,
    check_qualifying,
    classification_hash,
)
from f1_pipelines.sources.fastf1_source import jolpica, loading, rows, schedule, validation
from f1_pipelines.sources.fastf1_source.jolpica import SheetOf
from f1_pipelines.sources.fastf1_source.loading import Loaded, NotComplete
from f1_pipelines.sources.fastf1_source.transport import Meter, meter_fastf1
from f1_pipelines.sources.rate_limit import RateBudget
from f1_pipelines.sources.updates import DECIDING, Phase, SourceUpdate, digest
from f1_pipelines.tables import race
from f1_pipelines.tables.schema import InvalidRows, Table

if TYPE_CHECKING:
    from fastf1.events import Event

Tables = dict[Table, pd.DataFrame]
# Sheets are amended for days; data still missing after that stay missing.
_FRESH = timedelta(days=7)


class FastF1Source:
    """Loads sessions with FastF1. Not thread-safe: FastF1's cache and log settings are global.

    `SourceUnavailable` ends a call. Sessions loaded before are in FastF1's cache, so a retry requests only the rest.
    """

    name = "fastf1"

    def __init__(self, cache_dir: Path | None, now: Callable[[], datetime], budget: RateBudget | None = None,
                 calendar_path: Path | None = None, timeout_s: float | None = None):
        """
        Args:
            cache_dir: FastF1's cache folder, created if needed; None leaves FastF1's configuration unchanged.
            now: Returns the current time, timezone-aware UTC.
            budget: The request budget that all processes share; by default in the cache folder.
            calendar_path: The refreshed calendar, if any; see `identity.weekends`.
            timeout_s: Time limit of all requests together [s]; a slower answer is `SourceUnavailable`.

        FastF1 itself signs in to the timing feed (environment variables F1_USERNAME and F1_PASSWORD).
        """
        self._cache_dir = cache_dir
        self._now = now
        self._calendar_path = calendar_path
        ledger = (cache_dir or Path(tempfile.gettempdir())) / "f1-requests.sqlite"
        self._meter = Meter(budget or RateBudget(ledger, max_wait_s=60.0 if timeout_s is None else min(1.0, timeout_s)),
                            None if timeout_s is None else time.monotonic() + timeout_s)

    def calendar(self, seasons: Sequence[int]) -> pd.DataFrame:
        """Rows of `race.calendar`, including new weekends. Known weekends may be missing.

        Raises:
            SourceUnavailable: No server returned a schedule.
        """
        self._prepare()
        known = known_weekends(self._calendar_path)
        listed = [row for season in seasons for row in schedule.calendar_rows(
            loading.load_schedule(season), season, known, self._now())]
        frame = pd.DataFrame(listed, columns=race.CALENDAR.column_names)
        for start in (f"{session}_start" for session in race.SESSIONS):
            frame[start] = pd.to_datetime(frame[start], utc=True)
        return race.CALENDAR.conform(self._stamped(frame, race.CALENDAR))

    def practice(self, weekends: Sequence[Weekend]) -> Fetched:
        """Best laps of each practice with its laps, weather and messages."""
        return self._fetch(weekends, ("practice_1", "practice_2", "practice_3"), self._practice,
                           (race.PRACTICE, race.SESSION_LAPS, race.WEATHER, race.RACE_CONTROL))

    def qualifying(self, weekends: Sequence[Weekend]) -> Fetched:
        """Qualifying and sprint qualifying, and the grids of races whose sheet is out."""
        fetched = self._fetch(weekends, ("sprint_qualifying", "qualifying"), self._qualifying,
                              (race.QUALIFYING, race.SESSION_LAPS, race.WEATHER, race.RACE_CONTROL))
        # A grid is only on the race's sheet; `results` reports a missing one.
        fetched.tables |= self._fetch(weekends, ("sprint", "race"), self._grid, (race.GRID,)).tables
        return fetched

    def results(self, weekends: Sequence[Weekend]) -> Fetched:
        """Official classifications of races and sprints, with or without timing."""
        return self._fetch(weekends, ("sprint", "race"), self._results, (race.RESULTS, race.SPRINT_RESULTS))

    def laps(self, weekends: Sequence[Weekend]) -> Fetched:
        """Laps of races and sprints, with weather, messages and the pit stops of the race, with or without results."""
        return self._fetch(weekends, ("sprint", "race"), self._laps,
                           (race.LAPS, race.SESSION_LAPS, race.PIT_STOPS, race.WEATHER, race.RACE_CONTROL))

    def news(self, weekend: Weekend, phase: Phase) -> SourceUpdate:
        """Read the version from jolpica's sheet: one request, besides the schedule, which FastF1 caches for 12 hours.

        A car that stopped in the first lap and one that did not start look the same there. Where timing tells them
        apart, the version differs from the stored `content_hash`; the same sheet still has the same version.
        """
        self._prepare()
        session = DECIDING[phase]
        if (refusal := self._not_held(weekend, session)) is not None:
            return SourceUpdate(None, refusal.reason)
        event = self._events(weekend.season, [weekend]).get(weekend.key)
        try:
            if event is None:
                raise NotComplete("FastF1's schedule does not list this weekend")
            sheet = self._sheet(weekend, session, event)
            if phase == "pre_race":
                order = jolpica.qualifying(sheet, weekend.season)
                check_qualifying(order)
                return SourceUpdate(digest(order))
            order = jolpica.classification(sheet, weekend.season)
            check_classification(order)
            return SourceUpdate(classification_hash(order.assign(result_status="official")))
        except (NotComplete, InvalidRows, UnknownEntrant) as problem:
            return SourceUpdate(None, str(problem))

    def _fetch(self, weekends: Sequence[Weekend], sessions: Sequence[str],
               build: Callable[[Weekend, str, Event], Tables], tables: Sequence[Table]) -> Fetched:
        """Fetch the tables with rows of all complete sessions, and a refusal for each other session."""
        self._prepare()
        fetched, events = Fetched(), {}
        pieces: dict[Table, list[pd.DataFrame]] = {table: [] for table in tables}
        for weekend in weekends:
            for session in (name for name in sessions if name in weekend.session_names):
                if (refusal := self._not_held(weekend, session)) is not None:
                    fetched.refused.append(refusal)
                    continue
                if weekend.season not in events:
                    events[weekend.season] = self._events(weekend.season, weekends)
                event = events[weekend.season].get(weekend.key)
                try:
                    built = self._complete(build, weekend, session, event)
                except (NotComplete, InvalidRows, UnknownEntrant) as problem:
                    fetched.refused.append(self._refusal(weekend, session, problem))
                    continue
                for table, frame in built.items():
                    pieces[table].append(frame)
        for table, frames in pieces.items():
            if filled := [frame for frame in frames if len(frame)]:
                fetched.tables[table.qualified] = table.conform(pd.concat(filled, ignore_index=True))
        return fetched

    def _events(self, season: int, weekends: Sequence[Weekend]) -> dict[str, Event]:
        """FastF1's events of a season by our keys. Fail if an outage may be why one of `weekends` is missing."""
        candidates = (*known_weekends(self._calendar_path), *weekends)
        known = {weekend.key: weekend for weekend in candidates if weekend.season == season}
        self._meter.reset()
        events = schedule.events_by_weekend(loading.load_schedule(season), list(known.values()))
        if any(weekend.key not in events for weekend in weekends if weekend.season == season):
            self._meter.raise_failures(f"schedule of {season}")
        return events

    def _complete(self, build: Callable[[Weekend, str, Event], Tables], weekend: Weekend, session: str,
                  event: Event | None) -> Tables:
        """Build the tables of a session and conform them."""
        if event is None:
            raise NotComplete("FastF1's schedule does not list this weekend")
        keys = {"weekend": weekend.key, "session": session}
        return {table: table.conform(self._stamped(frame.assign(**keys), table))
                for table, frame in build(weekend, session, event).items()}

    def _practice(self, weekend: Weekend, session: str, event: Event) -> Tables:
        loaded = self._timing(weekend, session, event)
        cars = rows.entries(loaded, weekend.season)
        best = rows.practice(loaded, cars)
        check_drivers_once(best)
        return {race.PRACTICE: best, **_session_tables(loaded, cars)}

    def _qualifying(self, weekend: Weekend, session: str, event: Event) -> Tables:
        """The official sheet if there is one, with or without timing, else the order by timing."""
        official = None
        if session == "qualifying":  # jolpica has no sheets of sprint qualifyings
            with contextlib.suppress(NotComplete):
                official = jolpica.qualifying(self._sheet(weekend, session, event), weekend.season)
                check_qualifying(official)
        try:
            loaded = self._timing(weekend, session, event)
        except NotComplete:
            if official is None:
                raise
            return {race.QUALIFYING: official}
        cars = rows.entries(loaded, weekend.season)
        if official is None:
            official = rows.qualifying(loaded, cars)
            check_qualifying(official)
        return {race.QUALIFYING: official, **_session_tables(loaded, cars)}

    def _results(self, weekend: Weekend, session: str, event: Event) -> Tables:
        order = self._classification(weekend, session, event).assign(version=1, result_status="official")
        table = race.RESULTS if session == "race" else race.SPRINT_RESULTS
        return {table: order.assign(content_hash=classification_hash(order))}

    def _grid(self, weekend: Weekend, session: str, event: Event) -> Tables:
        order = self._classification(weekend, session, event)
        known = order["grid_status"].isin(("grid", "pit_lane")).any()
        return {race.GRID: order if known else order.iloc[:0]}

    def _classification(self, weekend: Weekend, session: str, event: Event) -> pd.DataFrame:
        sheet = self._sheet(weekend, session, event)
        order = jolpica.classification(sheet, weekend.season)
        if (order["status"].eq("retired") & order["laps"].eq(0)).any():
            with contextlib.suppress(NotComplete):  # without timing the sheet's status stays
                absent = validation.never_started(self._timing(weekend, session, event))
                order = jolpica.classification(sheet, weekend.season, absent)
        check_classification(order)
        return order

    def _laps(self, weekend: Weekend, session: str, event: Event) -> Tables:
        loaded = self._timing(weekend, session, event)
        cars = rows.entries(loaded, weekend.season)
        tables = _session_tables(loaded, cars)
        if session == "sprint":
            return tables
        return {race.LAPS: tables.pop(race.SESSION_LAPS), race.PIT_STOPS: rows.pit_stops(loaded, cars), **tables}

    def _timing(self, weekend: Weekend, session: str, event: Event) -> Loaded:
        """Load a session with complete timing, or raise `NotComplete`."""
        name, fresh = fastf1_session_name(weekend, session), self._is_fresh(weekend, session)
        loaded = loading.load_session(event, name, self._meter, fresh)
        try:
            validation.check_timing(loaded, session)
        except NotComplete as problem:
            if fresh:
                loading.forget_session(event, name)
            raise NotComplete(f"{problem}{self._meter.hint()}", problem.retry) from problem
        return loaded

    def _sheet(self, weekend: Weekend, session: str, event: Event) -> list[dict[str, Any]]:
        race_day = schedule.session_starts(event)["race"].date()
        return loading.query_jolpica(
            lambda: jolpica.sheet(weekend.season, int(event["RoundNumber"]), cast("SheetOf", session), race_day),
            f"{session} sheet of {weekend.key}", self._meter, self._is_fresh(weekend, session))

    def _not_held(self, weekend: Weekend, session: str) -> Refusal | None:
        """The refusal of a session that can't have data yet. It needs no request."""
        if weekend.planned == "cancelled":
            return Refusal(weekend.key, session, "the weekend was cancelled", expected=True)
        start = _start(weekend, session)
        if start > self._now():
            return Refusal(weekend.key, session, f"has not been held yet (starts {start:%Y-%m-%d %H:%M} UTC)",
                           retry=True)
        if weekend.planned == "postponed":
            return Refusal(weekend.key, session, "the weekend is postponed", retry=True)
        return None

    def _refusal(self, weekend: Weekend, session: str, problem: Exception) -> Refusal:
        # A faulty sheet may be corrected; for an unknown name our files must change, so a retry does not help.
        retry = problem.retry if isinstance(problem, NotComplete) else isinstance(problem, InvalidRows)
        return Refusal(weekend.key, session, str(problem), retry=retry and self._is_fresh(weekend, session))

    def _is_fresh(self, weekend: Weekend, session: str) -> bool:
        return self._now() - _start(weekend, session) < _FRESH

    def _prepare(self) -> None:
        loading.configure_cache(self._cache_dir)
        meter_fastf1(self._meter)

    def _stamped(self, frame: pd.DataFrame, table: Table) -> pd.DataFrame:
        """Add provenance, and keep only the columns of the table."""
        import fastf1
        stamps = {"source": self.name, "source_version": f"fastf1 {fastf1.__version__}", "fetched_at": self._now()}
        return frame.assign(**stamps)[table.column_names]


def _session_tables(loaded: Loaded, cars: pd.DataFrame) -> Tables:
    return {race.SESSION_LAPS: rows.laps(loaded, cars), race.WEATHER: rows.weather(loaded),
            race.RACE_CONTROL: rows.race_control(loaded)}


def _start(weekend: Weekend, session: str) -> datetime:
    return weekend.sessions.get(session, weekend.race_start)
