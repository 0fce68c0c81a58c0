"""The current calendar: our embedded one, overlaid with the schedule of the source."""
from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

import pandas as pd

from f1_pipelines.identity.weekend import SESSIONS_OF_FORMAT
from f1_pipelines.identity.weekends import Weekend
from f1_pipelines.tables.race import CALENDAR, SESSIONS

_STARTS = [f"{session}_start" for session in SESSIONS]
# Longer than any race with a red flag. After it only results make a weekend done.
_LONGEST_RACE = timedelta(hours=4)


def calendar_rows(weekends: Sequence[Weekend], now: datetime) -> pd.DataFrame:
    """Rows of `race.calendar` from our own weekends, without a source. `now` (timezone-aware) is their `fetched_at`."""
    return CALENDAR.conform(pd.DataFrame([{
        **{start: weekend.sessions.get(start.removesuffix("_start")) for start in _STARTS},
        "weekend": weekend.key, "season": weekend.season, "round": weekend.round, "event_name": weekend.event_name,
        "circuit": weekend.circuit, "layout": weekend.layout, "format": weekend.format,
        "state": "upcoming" if weekend.planned == "scheduled" else weekend.planned, "race_laps": weekend.race_laps,
        "race_start": weekend.race_start, "source": "embedded", "fetched_at": now,
    } for weekend in weekends], columns=CALENDAR.column_names))


def overlay(known: pd.DataFrame, fetched: pd.DataFrame, now: datetime) -> pd.DataFrame:
    """Replace values of `known` by those of the source, and add the weekends that only the source has.

    A weekend that the source omits, or no longer numbers, stays, so that a shorter schedule removes nothing; it loses
    its round if another weekend now has that number. A cancelled weekend that the source schedules is on again.

    Args:
        known: Rows of `race.calendar`.
        fetched: Rows of a source; missing values replace nothing.
        now: The current time, timezone-aware. A race that is over keeps its reviewed starts: FastF1's schedule is an
            hour off around a clock change.
    """
    old, new = known.set_index("weekend"), fetched.set_index("weekend")
    common = old.index.intersection(new.index)
    over = common[(old.loc[common, "race_start"] <= now) & (new.loc[common, "race_start"] <= now)]
    for start in _STARTS:
        reviewed = old[start].reindex(new.index).fillna(new[start])
        new[start] = new[start].mask(new.index.isin(over), reviewed)
    merged = new.combine_first(old).reset_index()
    unnumbered = ~merged["weekend"].isin(fetched.loc[fetched["round"].notna(), "weekend"])
    merged["round"] = merged["round"].mask(unnumbered & merged.duplicated(["season", "round"], keep=False))
    # A changed format removes the starts of sessions that it does not have.
    for session in SESSIONS:
        in_format = merged["format"].map(lambda name, session=session: session in SESSIONS_OF_FORMAT[name])
        merged[f"{session}_start"] = merged[f"{session}_start"].where(in_format)
    return CALENDAR.conform(merged[CALENDAR.column_names]).sort_values("race_start", ignore_index=True)


def with_states(calendar: pd.DataFrame, finished: Collection[str], now: datetime) -> pd.DataFrame:
    """Set `state` by the clock and the results: `done` needs results; after its planned end a weekend is `overdue`.

    Args:
        calendar: Rows of `race.calendar`; `cancelled` and `postponed` stay.
        finished: Weekends whose results are stored. A `done` in the rows is ignored.
        now: The current time, timezone-aware.
    """
    first_start = calendar[_STARTS].min(axis=1)
    open_weekend = ~calendar["state"].isin(("cancelled", "postponed"))
    over = calendar["race_start"] + _LONGEST_RACE <= now
    state = calendar["state"].mask(open_weekend, "upcoming").mask(open_weekend & (first_start <= now), "live")
    state = state.mask(open_weekend & over, "overdue")
    return calendar.assign(state=state.mask(calendar["weekend"].isin(finished), "done"))


def moved_starts(known: pd.DataFrame, fetched: pd.DataFrame, by: timedelta = timedelta(hours=12)) -> list[str]:
    """List the races whose starts differ by more than `by`, one sentence each for the run's metadata."""
    both = known.merge(fetched, on="weekend", suffixes=("", "_fetched"))
    moved = both[(both["race_start"] - both["race_start_fetched"]).abs() > by]
    return [f"{row.weekend}: known start {row.race_start:%Y-%m-%d %H:%M} UTC, "
            f"start in the source {row.race_start_fetched:%Y-%m-%d %H:%M} UTC" for row in moved.itertuples()]


def calendar_updates(known: Sequence[Weekend], calendar: pd.DataFrame, now: datetime) -> list[Weekend]:
    """Find the weekends of the calendar that are new to us, or differ from ours and are not over.

    Args:
        known: Our weekends.
        calendar: Rows of `race.calendar`, as returned by `overlay`.
        now: The current time, timezone-aware.
    """
    known_by_key = {weekend.key: weekend for weekend in known}
    return [weekend for weekend in to_weekends(calendar) if (before := known_by_key.get(weekend.key)) is None
            or (weekend != before and max(weekend.race_start, before.race_start) > now)]


def to_weekends(rows: pd.DataFrame) -> list[Weekend]:
    """Convert rows of `race.calendar` to weekends, for the refreshed calendar file."""
    weekends = []
    for row in rows.to_dict("records"):
        starts = {session: row[f"{session}_start"].to_pydatetime() for session in SESSIONS
                  if pd.notna(row[f"{session}_start"])}
        weekends.append(Weekend(
            key=row["weekend"], season=int(row["season"]), slug=row["weekend"].split("-", 1)[1],
            round=None if pd.isna(row["round"]) else int(row["round"]), event_name=row["event_name"],
            circuit=row["circuit"], layout=row["layout"], format=row["format"],
            planned=row["state"] if row["state"] in ("cancelled", "postponed") else "scheduled",
            race_laps=None if pd.isna(row["race_laps"]) else int(row["race_laps"]), sessions=starts))
    return weekends
