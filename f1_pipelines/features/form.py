"""Form of a driver and a team in earlier races. Time is `race_start`: rounds get renumbered, starts do not.

Every function takes rows in the order of race start and gives each row what was known before it: its own race never
counts, so a first start has no form.
"""
from __future__ import annotations

import pandas as pd

from f1_pipelines.features.pace import GAP_CAP_PCT, gap_to_best_pct, place
from f1_pipelines.tables.race import NON_STARTERS

# Form halves in weight every so many races. Between 5 and 8 a ridge on 2019-2025 moves by .001: nothing to tune.
HALF_LIFE_RACES = 6.0
# 2021 Spa counted one lap behind the safety car: gaps and laps of such a race are no pace, its order and points are.
MIN_RACING_LAPS = 10

_CAR = ["weekend", "driver"]


def performance(results: pd.DataFrame) -> pd.DataFrame:
    """What each start was worth, in terms that compare between races.

    Args:
        results: Rows of `race.results`, one per (weekend, driver).

    Returns:
        On (weekend, driver), starters only: finish (1..n in official order), finish_place (0..1), race_gap_pct (% of
        the winner's time; a lap down costs the average lap), fastest_lap_gap_pct, dnf (0 or 1), points. The gaps are
        of cars that finished: a retirement says nothing about pace.
    """
    rows = results[~results["status"].isin(NON_STARTERS)].sort_values(_CAR).set_index(_CAR)
    rows = rows.astype({name: "float64" for name in (
        "official_order", "finish_position", "points", "laps", "race_time_s", "gap_s", "gap_laps", "fastest_lap_s")})
    weekend = rows.index.get_level_values("weekend")
    won = rows["finish_position"] == 1
    winner_laps = rows["laps"].where(won).groupby(weekend).transform("max")
    winner_time_s = rows["race_time_s"].where(won).groupby(weekend).transform("max")
    full_pace = rows["status"].isin(["finished", "lapped"]) & (winner_laps >= MIN_RACING_LAPS)
    gap_pct = rows["gap_s"].mask(won, 0.0) / winner_time_s * 100
    gap_pct = gap_pct.where(~(rows["gap_laps"] > 0), rows["gap_laps"] / winner_laps * 100)
    return pd.DataFrame({
        "finish": rows["official_order"].groupby(weekend).rank(),
        "finish_place": place(rows["official_order"], weekend),
        "race_gap_pct": gap_pct.where(full_pace).clip(upper=GAP_CAP_PCT),
        "fastest_lap_gap_pct": gap_to_best_pct(rows["fastest_lap_s"].where(full_pace), weekend),
        # Without an order the sheet is not to be trusted (`features.history`), whoever retired by it.
        "dnf": rows["status"].eq("retired").astype("float64").where(rows["official_order"].notna()),
        "points": rows["points"],
    })


def weighted_form(values: pd.DataFrame, who: pd.Series, half_life_races: float = HALF_LIFE_RACES) -> pd.DataFrame:
    """Exponentially weighted mean of everything before each row.

    Args:
        values: One row per (who, race) in order of race start; missing values are passed over, not counted as zero.
        who: Driver or team line of each row.
        half_life_races: Races after which a value weighs half [races with a value].
    """
    form = values.groupby(who.to_numpy()).ewm(halflife=half_life_races, ignore_na=True).mean()
    return form.droplevel(0).reindex(values.index).groupby(who.to_numpy()).shift()


def last_mean(values: pd.Series, who: pd.Series, races: int = 3) -> pd.Series:
    """Plain mean of the last `races` known values before each row, fewer while there are fewer."""
    known = values.dropna()
    means = known.groupby(who[known.index]).rolling(races, min_periods=1).mean().droplevel(0)
    return means.reindex(values.index).groupby(who).ffill().groupby(who).shift()


def season_mean(values: pd.Series, who: pd.Series, season: pd.Series) -> pd.Series:
    """Plain mean of the season's values before each row; missing before the first one."""
    group = [who, season]
    total = values.fillna(0).groupby(group).cumsum().groupby(group).shift()
    count = values.notna().groupby(group).cumsum().groupby(group).shift()
    return total / count.where(count > 0)


def points_before(points: pd.Series, who: pd.Series, season: pd.Series) -> pd.Series:
    """Grand Prix points of the season before each row; a newcomer of mid-season has none [points]."""
    group = [who, season]
    return points.fillna(0).groupby(group).cumsum().groupby(group).shift(fill_value=0)
