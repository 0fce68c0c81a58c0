"""The source `sample`: seasons 2022-2026 driven by our own engine, offline and the same on every machine.

Calendars, circuits, formats, line-ups and car numbers are real; every lap, place and point is simulated. A session is
held if it is over by the clock and by `SAMPLE_END`, the evening before 2026-netherlands. So every later day gives the
same sessions, and there is always a next weekend to predict, its qualifying held and its race not.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta

import pandas as pd

from f1_pipelines.identity import line_ups
from f1_pipelines.identity.line_ups import embedded_weekends
from f1_pipelines.identity.race_distance import race_distance
from f1_pipelines.identity.weekends import Weekend
from f1_pipelines.sim.engine.step import ENGINE_VERSION
from f1_pipelines.sources.base import Fetched, Refusal
from f1_pipelines.sources.calendar import calendar_rows
from f1_pipelines.sources.classification import (
    check_classification,
    check_drivers_once,
    check_qualifying,
    classification_hash,
)
from f1_pipelines.sources.sample import sheets, timing
from f1_pipelines.sources.sample.frames import Columns, car_columns, objects, stacked
from f1_pipelines.sources.sample.races import DrivenRace
from f1_pipelines.sources.sample.sessions import practice
from f1_pipelines.sources.sample.weekends import SampleWeekend, drive_sessions, grid_session
from f1_pipelines.sources.updates import Phase, SourceUpdate, update_in
from f1_pipelines.tables import race
from f1_pipelines.tables.schema import Table

SAMPLE_VERSION = 1  # raise with every change of the sample's content
SAMPLE_END = datetime(2026, 8, 22, 20, 0, tzinfo=UTC)  # later sessions are never held
_LONGEST_RACE, _LONGEST_SESSION = timedelta(hours=4), timedelta(hours=2)  # a race may have a red flag


class SampleSource:
    """Official, complete and simulated data. Sessions are driven on first use and cached."""

    name = "sample"

    def __init__(self, now: Callable[[], datetime]):
        """
        Args:
            now: Returns the current time, timezone-aware; the rows' `fetched_at`.
        """
        self._now = now
        self._weekends: dict[str, SampleWeekend] = {}

    def calendar(self, seasons: Sequence[int]) -> pd.DataFrame:
        """Rows of `race.calendar` of the embedded weekends, with the distance of races that were held.

        Other seasons have no rows, and no weekend is `done`: only stored results make it so.
        """
        covered = set(seasons) & set(line_ups.seasons())
        weekends = [weekend for weekend in embedded_weekends().values() if weekend.season in covered]
        rows = calendar_rows(weekends, self._now())
        laps = {weekend.key: race_distance(weekend) for weekend in weekends if self._not_held(weekend, "race") is None}
        return race.CALENDAR.conform(rows.assign(
            source=self.name,
            race_laps=rows["race_laps"].mask(rows["weekend"].isin(laps), rows["weekend"].map(laps))))

    def practice(self, weekends: Sequence[Weekend]) -> Fetched:
        """`race.practice` and the weather of the sessions."""
        fetched, pieces, weather = Fetched(), [], []
        for weekend, session in self._held(weekends, ("practice_1", "practice_2", "practice_3"), fetched):
            sheet = practice(weekend.weekend, session, weekend.entries)
            pieces.append({"weekend": weekend.weekend.key, "session": session, **car_columns(weekend.entries),
                           "position": sheet.position, "best_lap_s": sheet.best_lap_s, "laps": sheet.laps})
            weather.append(timing.session_weather_columns(weekend.weekend, session))
        self._put(fetched, race.PRACTICE, pieces, check_drivers_once)
        self._put(fetched, race.WEATHER, weather)
        return fetched

    def qualifying(self, weekends: Sequence[Weekend]) -> Fetched:
        """`race.qualifying` of both kinds, `race.grid`, and the weather of the sessions."""
        fetched, pieces, weather, grids = Fetched(), [], [], []
        for weekend, session in self._held(weekends, ("qualifying", "sprint_qualifying"), fetched):
            sheet = weekend.qualifyings[session]
            pieces.append({"weekend": weekend.weekend.key, "session": session, **car_columns(weekend.entries),
                           "position": sheet.position,
                           **{f"q{n}_s": times for n, times in enumerate(sheet.times_s, start=1)}})
            weather.append(timing.session_weather_columns(weekend.weekend, session))
        for session in ("race", "sprint"):
            known = [self._weekend(weekend) for weekend in weekends if session in weekend.session_names
                     and self._not_held(weekend, grid_session(weekend, session)) is None]
            drive_sessions([weekend for weekend in known if grid_session(weekend.weekend, session) == "sprint"],
                           "sprint")
            grids += [_grid_columns(weekend, session) for weekend in known]
        self._put(fetched, race.QUALIFYING, pieces, check_qualifying)
        self._put(fetched, race.GRID, grids)
        self._put(fetched, race.WEATHER, weather)
        return fetched

    def results(self, weekends: Sequence[Weekend]) -> Fetched:
        """`race.results`, `race.sprint_results` and `race.pit_stops`."""
        fetched = Fetched()
        for table, session in ((race.RESULTS, "race"), (race.SPRINT_RESULTS, "sprint")):
            driven = self._driven(weekends, session, fetched)
            self._put(fetched, table, [sheets.result_columns(run) for run in driven], check_classification)
            if session == "race":
                self._put(fetched, race.PIT_STOPS, [sheets.pit_stop_columns(run) for run in driven])
        return fetched

    def laps(self, weekends: Sequence[Weekend]) -> Fetched:
        """`race.laps` of the Grand Prix, `race.session_laps` of the sprint, with their weather and messages."""
        fetched = Fetched()
        races, sprints = (self._driven(weekends, session, fetched) for session in ("race", "sprint"))
        self._put(fetched, race.LAPS, [timing.lap_columns(run) for run in races])
        self._put(fetched, race.SESSION_LAPS, [timing.lap_columns(run) for run in sprints])
        self._put(fetched, race.WEATHER, [timing.race_weather_columns(run) for run in (*races, *sprints)])
        self._put(fetched, race.RACE_CONTROL, [timing.message_columns(run) for run in (*races, *sprints)])
        return fetched

    def news(self, weekend: Weekend, phase: Phase) -> SourceUpdate:
        """The version of a session that is over by the clock. It never changes."""
        fetched = self.results([weekend]) if phase == "post_race" else self.qualifying([weekend])
        return update_in(fetched, phase)

    def _driven(self, weekends: Sequence[Weekend], session: str, fetched: Fetched) -> list[DrivenRace]:
        held = [weekend for weekend, _ in self._held(weekends, (session,), fetched)]
        drive_sessions(held, session)
        return [weekend.driven[session] for weekend in held]

    def _held(self, weekends: Sequence[Weekend], sessions: Iterable[str],
              fetched: Fetched) -> list[tuple[SampleWeekend, str]]:
        """The sessions that have been held. Adds a refusal for each of the others to `fetched`."""
        held = []
        for weekend in weekends:
            for session in (name for name in sessions if name in weekend.session_names):
                refusal = self._not_held(weekend, session)
                if refusal is None:
                    held.append((self._weekend(weekend), session))
                else:
                    fetched.refused.append(refusal)
        return held

    def _weekend(self, weekend: Weekend) -> SampleWeekend:
        # Always the embedded weekend: rows must not depend on a refreshed calendar file.
        return self._weekends.setdefault(weekend.key, SampleWeekend(embedded_weekends()[weekend.key]))

    def _not_held(self, weekend: Weekend, session: str) -> Refusal | None:
        known = embedded_weekends().get(weekend.key)
        if "cancelled" in (weekend.planned, known and known.planned):
            return Refusal(weekend.key, session, "the weekend was cancelled", expected=True)
        if known is None or known.season not in line_ups.seasons() or session not in known.session_names:
            first, *_, last = line_ups.seasons()
            return Refusal(weekend.key, session, f"not in the sample, which has the embedded calendar of {first} to "
                           f"{last}", expected=True)
        start = known.sessions[session]
        end = start + (_LONGEST_RACE if session == "race" else _LONGEST_SESSION)
        if end > SAMPLE_END:
            return Refusal(weekend.key, session, f"the sample ends on {SAMPLE_END:%Y-%m-%d}", expected=True)
        if end > self._now():
            return Refusal(weekend.key, session, f"not held yet (starts {start:%Y-%m-%d %H:%M} UTC)", retry=True)
        return None

    def _put(self, fetched: Fetched, table: Table, pieces: Sequence[Columns],
             check: Callable[[pd.DataFrame], None] | None = None) -> None:
        """Add the pieces as a frame of the table. Each sheet is checked by the rules of real ones."""
        stamps = {"source": self.name, "source_version": f"sample {ENGINE_VERSION}.{SAMPLE_VERSION}",
                  "fetched_at": self._now(), "content_hash": ""}
        frame = stacked(pieces, table.column_names)
        frame = table.conform(frame.assign(**{k: v for k, v in stamps.items() if k in table.column_names}))
        if check is not None and len(frame):
            hashes = {}
            for key, sheet in frame.groupby(list(table.slice_by)):
                check(sheet)
                hashes[key[0]] = classification_hash(sheet) if "content_hash" in frame.columns else ""
            if "content_hash" in frame.columns:
                frame["content_hash"] = frame["weekend"].map(hashes).astype("string")
        fetched.tables[table.qualified] = frame


def _grid_columns(weekend: SampleWeekend, session: str) -> Columns:
    grid = weekend.grid(session)
    status = ["pit_lane" if in_lane else "grid" for in_lane in grid.pit_lane]
    return {"weekend": weekend.weekend.key, "session": session, **car_columns(weekend.entries),
            "grid_position": grid.slot, "grid_status": objects(status)}
