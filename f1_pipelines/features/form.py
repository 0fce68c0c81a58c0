"""Form of drivers and teams in earlier races. The order is by `race_start`, because rounds get renumbered.

Each function takes rows ordered by race start and uses only earlier rows for each: the own race never counts, so a
first start has no form.
"""
from __future__ import annotations

import pandas as pd

from f1_pipelines.features.pace import GAP_CAP_PCT, gap_to_best_pct, place
from f1_pipelines.tables.race import NON_STARTERS

# A ridge regression on 2019-2025 changes by only .001 between half-lives of 5 and 8 races: nothing to tune.
HALF_LIFE_RACES = 6.0
# 2021 Spa had one lap, behind the safety car: its order and points count, but its gaps and laps show no pace.
MIN_RACING_LAPS = 10

_CAR = ["weekend", "driver"]


def performance(results: pd.DataFrame) -> pd.DataFrame:
    """Performance of each start in values that are comparable between races.

    Args:
        results: Rows of `race.results`, one per (weekend, driver).

    Returns:
        On (weekend, driver), starters only: finish (1..n in official order), finish_place (0..1), race_gap_pct (% of
        the winner's time; a lap down costs the winner's average lap), fastest_lap_gap_pct, dnf (0 or 1), points. Only
        cars that finished have gaps.
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
        # A classification without an order is faulty (`features.history`), and so are its retirements.
        "dnf": rows["status"].eq("retired").astype("float64").where(rows["official_order"].notna()),
        "points": rows["points"],
    })


def weighted_form(values: pd.DataFrame, entrant: pd.Series, half_life_races: float = HALF_LIFE_RACES) -> pd.DataFrame:
    """Exponentially weighted mean of the values before each row.

    Args:
        values: One row per (entrant, race) ordered by race start; missing values are skipped, not counted as zero.
        entrant: Driver or team lineage of each row.
        half_life_races: Races after which a value weighs half [races with a value].
    """
    form = values.groupby(entrant.to_numpy()).ewm(halflife=half_life_races, ignore_na=True).mean()
    return form.droplevel(0).reindex(values.index).groupby(entrant.to_numpy()).shift()


def last_mean(values: pd.Series, entrant: pd.Series, races: int = 3) -> pd.Series:
    """Mean of the last `races` known values before each row, or of all if there are fewer."""
    known = values.dropna()
    means = known.groupby(entrant[known.index]).rolling(races, min_periods=1).mean().droplevel(0)
    return means.reindex(values.index).groupby(entrant).ffill().groupby(entrant).shift()


def season_mean(values: pd.Series, entrant: pd.Series, season: pd.Series) -> pd.Series:
    """Mean of the season's values before each row; missing before the first one."""
    group = [entrant, season]
    total = values.fillna(0).groupby(group).cumsum().groupby(group).shift()
    count = values.notna().groupby(group).cumsum().groupby(group).shift()
    return total / count.where(count > 0)


def points_before(points: pd.Series, entrant: pd.Series, season: pd.Series) -> pd.Series:
    """Grand Prix points of the season before each row [points]; 0 before the driver's first start in it."""
    group = [entrant, season]
    return points.fillna(0).groupby(group).cumsum().groupby(group).shift(fill_value=0)
