"""The source `sample`: seasons 2022-2026 driven by our own engine, offline and the same on every machine.

Calendars, tracks, formats, line-ups and car numbers are real; every lap, place and point is made up. What has been
run: a session is held when it is over by the clock, and by `STANDS_STILL`, the evening before 2026-netherlands, at
which the sample's world stands still for good. So the same sessions come out on every later day, and there is always a
next weekend to predict, its qualifying held and its race not.
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
from f1_pipelines.sources.sample.races import Driven
from f1_pipelines.sources.sample.sessions import practice
from f1_pipelines.sources.sample.weekends import SampleWeekend, drive_sessions, grid_session
from f1_pipelines.sources.updates import Phase, SourceUpdate, in_what_was_fetched
from f1_pipelines.tables import race
from f1_pipelines.tables.schema import Table

SAMPLE_VERSION = 1  # raised by every change of what the sample says
STANDS_STILL = datetime(2026, 8, 22, 20, 0, tzinfo=UTC)  # what was run when the project was made, and no more
_RACE_LASTS, _OTHERS_LAST = timedelta(hours=4), timedelta(hours=2)  # a race may hold a red flag


class SampleSource:
    """Everything is official, complete and made up. Sessions are made when first asked for and kept."""

    name = "sample"

    def __init__(self, now: Callable[[], datetime]):
        """
        Args:
            now: Gives the present instant, timezone-aware; the rows' `fetched_at`.
        """
        self._now = now
        self._weekends: dict[str, SampleWeekend] = {}

    def calendar(self, seasons: Sequence[int]) -> pd.DataFrame:
        """Rows of `race.calendar` of the embedded weekends, with the distance of races that were run. Other seasons
        have none, and no weekend is `done`: that is for the results that are stored to say.
        """
        covered = set(seasons) & set(line_ups.seasons())
        mine = [weekend for weekend in embedded_weekends().values() if weekend.season in covered]
        rows = calendar_rows(mine, self._now())
        held = {weekend.key: race_distance(weekend) for weekend in mine if self._not_held(weekend, "race") is None}
        return race.CALENDAR.conform(rows.assign(
            source=self.name,
            race_laps=rows["race_laps"].mask(rows["weekend"].isin(held), rows["weekend"].map(held))))

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
        fetched, pieces, weather, lined_up = Fetched(), [], [], []
        for weekend, session in self._held(weekends, ("qualifying", "sprint_qualifying"), fetched):
            sheet = weekend.qualifyings[session]
            pieces.append({"weekend": weekend.weekend.key, "session": session, **car_columns(weekend.entries),
                           "position": sheet.position,
                           **{f"q{n}_s": times for n, times in enumerate(sheet.times_s, start=1)}})
            weather.append(timing.session_weather_columns(weekend.weekend, session))
        for session in ("race", "sprint"):
            known = [self._weekend(weekend) for weekend in weekends if session in weekend.session_names
                     and self._not_held(weekend, grid_session(weekend, session)) is None]
            drive_sessions([one for one in known if grid_session(one.weekend, session) == "sprint"], "sprint")
            lined_up += [_grid_columns(weekend, session) for weekend in known]
        self._put(fetched, race.QUALIFYING, pieces, check_qualifying)
        self._put(fetched, race.GRID, lined_up)
        self._put(fetched, race.WEATHER, weather)
        return fetched

    def results(self, weekends: Sequence[Weekend]) -> Fetched:
        """`race.results`, `race.sprint_results` and `race.pit_stops`."""
        fetched = Fetched()
        for table, session in ((race.RESULTS, "race"), (race.SPRINT_RESULTS, "sprint")):
            driven = self._driven(weekends, session, fetched)
            self._put(fetched, table, [sheets.result_columns(one) for one in driven], check_classification)
            if session == "race":
                self._put(fetched, race.PIT_STOPS, [sheets.pit_stop_columns(one) for one in driven])
        return fetched

    def laps(self, weekends: Sequence[Weekend]) -> Fetched:
        """`race.laps` of the Grand Prix, `race.session_laps` of the sprint, with their weather and messages."""
        fetched = Fetched()
        races, sprints = (self._driven(weekends, session, fetched) for session in ("race", "sprint"))
        self._put(fetched, race.LAPS, [timing.lap_columns(one) for one in races])
        self._put(fetched, race.SESSION_LAPS, [timing.lap_columns(one) for one in sprints])
        self._put(fetched, race.WEATHER, [timing.race_weather_columns(one) for one in (*races, *sprints)])
        self._put(fetched, race.RACE_CONTROL, [timing.message_columns(one) for one in (*races, *sprints)])
        return fetched

    def news(self, weekend: Weekend, phase: Phase) -> SourceUpdate:
        """By the clock: what was held is there, and always says the same."""
        fetched = self.results([weekend]) if phase == "post_race" else self.qualifying([weekend])
        return in_what_was_fetched(fetched, phase)

    def _driven(self, weekends: Sequence[Weekend], session: str, fetched: Fetched) -> list[Driven]:
        held = [weekend for weekend, _ in self._held(weekends, (session,), fetched)]
        drive_sessions(held, session)
        return [weekend.driven[session] for weekend in held]

    def _held(self, weekends: Sequence[Weekend], wanted: Iterable[str],
              fetched: Fetched) -> list[tuple[SampleWeekend, str]]:
        """The wanted sessions that have been held; a refusal for each of the others."""
        held = []
        for weekend in weekends:
            for session in (name for name in wanted if name in weekend.session_names):
                refusal = self._not_held(weekend, session)
                if refusal is None:
                    held.append((self._weekend(weekend), session))
                else:
                    fetched.refused.append(refusal)
        return held

    def _weekend(self, weekend: Weekend) -> SampleWeekend:
        # The embedded row, whatever a refreshed calendar says: rows must not change with somebody's files.
        return self._weekends.setdefault(weekend.key, SampleWeekend(embedded_weekends()[weekend.key]))

    def _not_held(self, weekend: Weekend, session: str) -> Refusal | None:
        known = embedded_weekends().get(weekend.key)
        if "cancelled" in (weekend.planned, known and known.planned):
            return Refusal(weekend.key, session, "the weekend was cancelled", expected=True)
        if known is None or known.season not in line_ups.seasons() or session not in known.session_names:
            first, *_, last = line_ups.seasons()
            return Refusal(weekend.key, session, f"not in the sample, which has {first} to {last} as in the embedded "
                           "calendar", expected=True)
        start = known.sessions[session]
        over = start + (_RACE_LASTS if session == "race" else _OTHERS_LAST)
        if over > STANDS_STILL:
            return Refusal(weekend.key, session, f"the sample ends on {STANDS_STILL:%Y-%m-%d}", expected=True)
        if over > self._now():
            return Refusal(weekend.key, session, f"not held yet (starts {start:%Y-%m-%d %H:%M} UTC)", retry=True)
        return None

    def _put(self, fetched: Fetched, table: Table, pieces: Sequence[Columns],
             check: Callable[[pd.DataFrame], None] | None = None) -> None:
        """The pieces as a frame of the table, each sheet checked against the rules that real ones keep."""
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
