"""The calendar as it stands: our embedded one, overlaid with what the source now says."""
from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

import pandas as pd

from f1_pipelines.identity.weekend import SESSIONS_OF_FORMAT
from f1_pipelines.identity.weekends import Weekend
from f1_pipelines.tables.race import CALENDAR, SESSIONS

_STARTS = [f"{session}_start" for session in SESSIONS]
# Past the longest race with a red flag. After it only results make a weekend done.
_WEEKEND_LASTS = timedelta(hours=4)


def calendar_rows(weekends: Sequence[Weekend], now: datetime) -> pd.DataFrame:
    """Rows of `race.calendar` from what we know ourselves, before any source is asked.

    Args:
        weekends: Of any seasons.
        now: The present instant, timezone-aware; `fetched_at` of the rows.
    """
    return CALENDAR.conform(pd.DataFrame([{
        **{start: weekend.sessions.get(start.removesuffix("_start")) for start in _STARTS},
        "weekend": weekend.key, "season": weekend.season, "round": weekend.round, "event_name": weekend.event_name,
        "circuit": weekend.circuit, "layout": weekend.layout, "format": weekend.format,
        "state": "upcoming" if weekend.planned == "scheduled" else weekend.planned, "race_laps": weekend.race_laps,
        "race_start": weekend.race_start, "source": "embedded", "fetched_at": now,
    } for weekend in weekends], columns=CALENDAR.column_names))


def overlay(known: pd.DataFrame, fetched: pd.DataFrame, now: datetime) -> pd.DataFrame:
    """`known` with every value that the source tells, and the weekends that only the source has.

    A weekend that the source leaves out, or no longer numbers, stays as it is, less its round where that is another's
    now: a schedule that comes back shorter removes nothing. One that we know as cancelled and the source schedules is
    on again.

    Args:
        known: Rows of `race.calendar`.
        fetched: The same from a source; missing values tell nothing.
        now: The present instant, timezone-aware. The starts of a race that is over stay as they were reviewed:
            FastF1's schedule is an hour off around a change of the clocks.
    """
    ours, theirs = known.set_index("weekend"), fetched.set_index("weekend")
    both = ours.index.intersection(theirs.index)
    over = both[(ours.loc[both, "race_start"] <= now) & (theirs.loc[both, "race_start"] <= now)]
    for start in _STARTS:
        reviewed = ours[start].reindex(theirs.index).fillna(theirs[start])
        theirs[start] = theirs[start].mask(theirs.index.isin(over), reviewed)
    merged = theirs.combine_first(ours).reset_index()
    not_numbered = ~merged["weekend"].isin(fetched.loc[fetched["round"].notna(), "weekend"])
    merged["round"] = merged["round"].mask(not_numbered & merged.duplicated(["season", "round"], keep=False))
    # A weekend whose format changed keeps no start of a session that it no longer holds.
    for session in SESSIONS:
        held = merged["format"].map(lambda name, session=session: session in SESSIONS_OF_FORMAT[name])
        merged[f"{session}_start"] = merged[f"{session}_start"].where(held)
    return CALENDAR.conform(merged[CALENDAR.column_names]).sort_values("race_start", ignore_index=True)


def with_states(calendar: pd.DataFrame, finished: Collection[str], now: datetime) -> pd.DataFrame:
    """`state` by the clock and the results: `done` needs results; a planned end that has passed makes it `overdue`.

    Args:
        calendar: Rows of `race.calendar`; `cancelled` and `postponed` stay.
        finished: Weekends whose results are stored. What the rows call `done` counts for nothing.
        now: The present instant, timezone-aware.
    """
    first = calendar[_STARTS].min(axis=1)
    open_weekend = ~calendar["state"].isin(("cancelled", "postponed"))
    over = calendar["race_start"] + _WEEKEND_LASTS <= now
    state = calendar["state"].mask(open_weekend, "upcoming").mask(open_weekend & (first <= now), "live")
    state = state.mask(open_weekend & over, "overdue")
    return calendar.assign(state=state.mask(calendar["weekend"].isin(finished), "done"))


def moved_starts(known: pd.DataFrame, fetched: pd.DataFrame, by: timedelta = timedelta(hours=12)) -> list[str]:
    """Races whose start the two tell more than `by` apart, as sentences for the run's metadata."""
    both = known.merge(fetched, on="weekend", suffixes=("", "_told"))
    apart = both[(both["race_start"] - both["race_start_told"]).abs() > by]
    return [f"{row.weekend}: {row.race_start:%Y-%m-%d %H:%M} UTC here, {row.race_start_told:%Y-%m-%d %H:%M} UTC told"
            for row in apart.itertuples()]


def calendar_updates(known: Sequence[Weekend], calendar: pd.DataFrame, now: datetime) -> list[Weekend]:
    """Weekends of the calendar that we did not know, and those still to be run that we knew otherwise.

    A race that is over stays as it was reviewed: FastF1's schedule is an hour off around a change of the clocks.

    Args:
        known: Our weekends.
        calendar: Rows of `race.calendar`, as `overlay` gives them.
        now: The present instant, timezone-aware.
    """
    ours = {weekend.key: weekend for weekend in known}
    return [weekend for weekend in to_weekends(calendar) if (before := ours.get(weekend.key)) is None
            or (weekend != before and max(weekend.race_start, before.race_start) > now)]


def to_weekends(rows: pd.DataFrame) -> list[Weekend]:
    """Rows of `race.calendar` as weekends, to be written to the refreshed calendar."""
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
