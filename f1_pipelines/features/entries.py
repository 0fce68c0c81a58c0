"""Entry list and latest known stage of each weekend, from its sessions.

Line-ups change between sessions: a junior drives only first practice, an injured driver is replaced on Saturday, a
damaged car is withdrawn. So the entry list comes from the weekend's own sessions, latest first. The classification
gives only the entered cars, never the result.
"""
from __future__ import annotations

import pandas as pd

from f1_pipelines.tables.race import NON_STARTERS

# The line-up of a later session takes precedence. The classification comes last: it gives the cars of weekends without
# session data, and adds cars that never left the garage.
_RECENCY = {"classification": 0, "practice_1": 1, "practice_2": 2, "practice_3": 3, "sprint_qualifying": 4,
            "sprint": 5, "qualifying": 6, "race": 7}


def entry_list(calendar: pd.DataFrame, results: pd.DataFrame, qualifying: pd.DataFrame, practice: pd.DataFrame,
               grid: pd.DataFrame) -> pd.DataFrame:
    """List the cars of all weekends that are not cancelled, ordered by race start and driver id.

    A weekend without sessions gets the entry of the last completed weekend of its season, if there is one.

    Args:
        calendar: Rows of `race.calendar`.
        results: Rows of `race.results`, one per (weekend, driver).
        qualifying: Rows of `race.qualifying`.
        practice: Rows of `race.practice`.
        grid: Rows of `race.grid`.

    Returns:
        weekend, season, race_start, source, driver, constructor, stage, entered; one row per (weekend, driver).
    """
    weekends = calendar.loc[calendar["state"] != "cancelled", ["weekend", "season", "race_start", "source"]]
    weekends = weekends.assign(stage=_stage(weekends["weekend"], results, qualifying, practice, grid))
    cars = _cars_in_sessions(results, qualifying, practice, grid)
    cars = pd.concat([cars, _carried_over(weekends, cars, results)], ignore_index=True)
    entry = weekends.merge(cars, on="weekend").sort_values(["race_start", "driver"], ignore_index=True)
    return entry.assign(entered=_takes_part(entry, results, grid))


def _stage(weekends: pd.Series, results: pd.DataFrame, qualifying: pd.DataFrame, practice: pd.DataFrame,
           grid: pd.DataFrame) -> pd.Series:
    """Latest known stage of each weekend. A grid without slots does not count (FastF1 gave -1 for all of 2026 R1)."""
    slots = grid[(grid["session"] == "race") & grid["grid_position"].notna()]
    sessions = {
        "practice": [practice["weekend"], qualifying["weekend"]],
        "qualifying": [qualifying.loc[qualifying["session"] == "qualifying", "weekend"]],
        "grid": [slots["weekend"], results.loc[results["grid_position"].notna(), "weekend"]],
    }
    stage = pd.Series("entry", index=weekends.index)
    for name, held in sessions.items():
        stage = stage.mask(weekends.isin(set().union(*held)), name)
    return stage


def _cars_in_sessions(results: pd.DataFrame, qualifying: pd.DataFrame, practice: pd.DataFrame,
                      grid: pd.DataFrame) -> pd.DataFrame:
    """weekend, driver, constructor for the weekends with any known session.

    Takes the latest session first. A driver of an earlier session counts only if the team has a car left, with as many
    cars as in its fullest session. This keeps a car that could not qualify, and drops the junior of first practice.
    """
    columns = ["weekend", "session", "driver", "constructor"]
    sheets = (practice, qualifying, grid, results.assign(session="classification"))
    drives = pd.concat([sheet[columns].astype(object) for sheet in sheets], ignore_index=True)
    drives = drives.assign(recency=drives["session"].map(_RECENCY))
    team = ["weekend", "constructor"]
    seats = drives.groupby([*team, "session"])["driver"].nunique().groupby(team).max().rename("seats")
    latest = drives.sort_values(["weekend", "recency", "driver"], ascending=[True, False, True])
    latest = latest.drop_duplicates(["weekend", "driver"]).join(seats, on=team)
    later_drivers = latest.groupby(team)["recency"].rank(method="min", ascending=False) - 1
    raced = pd.MultiIndex.from_frame(results[["weekend", "driver"]])
    entered = (later_drivers < latest["seats"]) | pd.MultiIndex.from_frame(latest[["weekend", "driver"]]).isin(raced)
    return latest.loc[entered, ["weekend", "driver", "constructor"]]


def _carried_over(weekends: pd.DataFrame, cars: pd.DataFrame, results: pd.DataFrame) -> pd.DataFrame:
    """Give weekends without sessions the cars of the last completed weekend of the season."""
    unknown = weekends[weekends["stage"].eq("entry") & ~weekends["weekend"].isin(cars["weekend"])]
    run = weekends[weekends["weekend"].isin(results["weekend"])]
    before = pd.merge_asof(
        unknown[["weekend", "season", "race_start"]].sort_values("race_start"),
        run[["weekend", "season", "race_start"]].rename(columns={"weekend": "last_run"}).sort_values("race_start"),
        on="race_start", by="season", allow_exact_matches=False)
    last = cars.rename(columns={"weekend": "last_run"})
    return before.merge(last, on="last_run")[["weekend", "driver", "constructor"]]


def _takes_part(entry: pd.DataFrame, results: pd.DataFrame, grid: pd.DataFrame) -> pd.Series:
    """Whether each car starts by the classification, else the grid, else True. For targets only, never an input."""
    keys = pd.MultiIndex.from_frame(entry[["weekend", "driver"]])
    slots = grid[(grid["session"] == "race") & (grid["grid_status"] != "not_started")]
    slots = slots[slots["weekend"].isin(slots.loc[slots["grid_position"].notna(), "weekend"])]
    starters = results[~results["status"].isin(NON_STARTERS)]
    on_grid = keys.isin(pd.MultiIndex.from_frame(slots[["weekend", "driver"]]))
    started = keys.isin(pd.MultiIndex.from_frame(starters[["weekend", "driver"]]))
    takes_part = pd.Series(True, index=entry.index)
    takes_part = takes_part.mask(entry["weekend"].isin(slots["weekend"]), on_grid)
    return takes_part.mask(entry["weekend"].isin(results["weekend"]), started)
