"""Features of each car from the weekend's own sessions: practice, qualifying and grid.

Lap times in seconds differ by circuit more than by car, so features that are compared between weekends are places and
gaps in per cent.
"""
from __future__ import annotations

import pandas as pd

PRACTICES = ("practice_1", "practice_2", "practice_3")
SEGMENTS = ["q1_s", "q2_s", "q3_s"]
# A lap more than 10 % slower than the best was no attempt (rain, a breakdown), so the size of its gap is not pace.
GAP_CAP_PCT = 10.0

_CAR = ["weekend", "driver"]


def place(values: pd.Series, by: pd.Series) -> pd.Series:
    """Relative rank of each value within its weekend: 0 = lowest, 1 = highest, ties get the mean rank.

    It is a share of the field, so that fields of 18 and 22 cars are comparable. A single known value gets 0.

    Args:
        values: Values to rank; missing values stay missing and do not count.
        by: Weekend of each value.
    """
    ranks = values.groupby(by).rank()
    field_size = values.groupby(by).transform("count")
    return (ranks - 1) / (field_size - 1).clip(lower=1)


def gap_to_best_pct(times_s: pd.Series, by: pd.Series | list[pd.Series]) -> pd.Series:
    """Gap to the best time of the group [% of the best time], at most `GAP_CAP_PCT`."""
    best_s = times_s.groupby(by).transform("min")
    return ((times_s / best_s - 1) * 100).clip(upper=GAP_CAP_PCT)


def qualifying_pace(qualifying: pd.DataFrame) -> pd.DataFrame:
    """Place, best lap and gaps in the qualifying that sets the grid, not in sprint qualifying.

    Args:
        qualifying: Rows of `race.qualifying`: `position` (missing if excluded or without a time), `q1_s`..`q3_s`.

    Returns:
        On (weekend, driver): qualifying_position, qualifying_place (0..1), qualifying_time_s (best of all segments),
        delta_to_pole_s (to the best of them), qualifying_gap_pct.
    """
    rows = qualifying[qualifying["session"] == "qualifying"].sort_values(_CAR).set_index(_CAR)
    weekend = rows.index.get_level_values("weekend")
    time_s = rows[SEGMENTS].astype("float64").min(axis=1)
    position = rows["position"].astype("float64")
    return pd.DataFrame({
        "qualifying_position": position,
        "qualifying_place": place(position, weekend),
        "qualifying_time_s": time_s,
        "delta_to_pole_s": time_s - time_s.groupby(weekend).transform("min"),
        "qualifying_gap_pct": gap_to_best_pct(time_s, weekend),
    })


def practice_pace(practice: pd.DataFrame) -> pd.DataFrame:
    """Pace in practice from each car's best lap of each session (average laps hardly predict anything).

    Args:
        practice: Rows of `race.practice`: `session`, `best_lap_s` (missing without a timed lap).

    Returns:
        On (weekend, driver): practice_pace_s (mean of the session bests), practice_1_gap_pct .. practice_3_gap_pct,
        practice_gap_pct (mean of the known gaps), practice_place (0..1, by that mean).
    """
    rows = practice.sort_values([*_CAR, "session"])
    best_lap_s = rows["best_lap_s"].astype("float64")
    rows = rows.assign(best_lap_s=best_lap_s, gap=gap_to_best_pct(best_lap_s, [rows["weekend"], rows["session"]]))
    # pivot, not pivot_table: a car listed twice in a session must fail, not be averaged.
    gaps = rows.pivot(index=_CAR, columns="session", values="gap").reindex(columns=list(PRACTICES))  # noqa: PD010
    mean_gap = gaps.mean(axis=1)
    pace = gaps.add_suffix("_gap_pct").rename_axis(columns=None)
    return pace.assign(
        practice_pace_s=rows.groupby(_CAR)["best_lap_s"].mean(),
        practice_gap_pct=mean_gap,
        practice_place=place(mean_gap, mean_gap.index.get_level_values("weekend")),
    )


def grid_slots(grid: pd.DataFrame, results: pd.DataFrame) -> pd.DataFrame:
    """Starting slots from `race.grid` if it has any for the weekend, else from the classification.

    The two are never mixed within a weekend: they differ by late moves to the pit lane, so two cars could share a slot.
    Pit-lane starters are last, as stored; an unknown slot stays missing.

    Returns:
        On (weekend, driver): grid_position, grid_place (0..1).
    """
    from_grid = grid.loc[(grid["session"] == "race") & grid["grid_position"].notna(), [*_CAR, "grid_position"]]
    from_results = results.loc[results["grid_position"].notna() & ~results["weekend"].isin(from_grid["weekend"]),
                               [*_CAR, "grid_position"]]
    rows = pd.concat([slots.astype({"weekend": object, "driver": object, "grid_position": "float64"})
                      for slots in (from_grid, from_results)])
    position = rows.sort_values(_CAR).set_index(_CAR)["grid_position"]
    return pd.DataFrame({
        "grid_position": position,
        "grid_place": place(position, position.index.get_level_values("weekend")),
    })
