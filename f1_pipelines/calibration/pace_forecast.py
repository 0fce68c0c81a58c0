"""Forecast each car's race pace before lights out from qualifying and earlier races.

A Huber regression of race pace on the qualifying gap, the team's best gap, and the driver's and the team's running race
pace, fitted on earlier seasons only (docs/physics.md#replay). All are in per cent of a lap, relative to the median of
the field.
"""
from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from f1_pipelines.calibration.lap_model import LEAST_LAPS, RaceFit
from f1_pipelines.calibration.robust import RobustFit, huber_ridge

FEATURES = ("qualifying_pct", "team_qualifying_pct", "driver_form_pct", "team_form_pct")
HALF_LIFE_RACES = 4.0
GAP_CAP_PCT = 5.0  # larger gaps tell nothing about pace: a spoilt qualifying lap, a race with a broken wing
LEAST_ENTRIES = 100
NO_TIME_PCT = 0.5  # gap to the slowest for a car without a qualifying lap


def race_pace(fits: Mapping[str, RaceFit]) -> pd.DataFrame:
    """One row per race and driver: `weekend`, `driver`, `pace_pct` (+ = slower than the median of the field)."""
    rows = []
    for weekend, fit in fits.items():
        pace = pd.Series({d: p for d, p in fit.pace_s.items() if fit.laps_of[d] >= LEAST_LAPS}, dtype=float)
        pct = (100.0 * (pace / pace.median() - 1.0)).clip(-GAP_CAP_PCT, GAP_CAP_PCT)
        rows.append(pd.DataFrame({"weekend": weekend, "driver": pct.index, "pace_pct": pct.to_numpy()}))
    return pd.concat(rows, ignore_index=True)


def qualifying_gaps(qualifying: pd.DataFrame, starters: pd.DataFrame, race_order: list[str]) -> pd.DataFrame:
    """Add qualifying gaps to the starters, in the order of the races.

    Args:
        qualifying: Rows of `race.qualifying` with session `qualifying`.
        starters: `weekend`, `driver`, `constructor` of the cars on the grid.
        race_order: Weekends, oldest first.
    """
    best = qualifying.assign(best_s=qualifying[["q1_s", "q2_s", "q3_s"]].astype("Float64").min(axis=1))
    rows = starters.merge(best[["weekend", "driver", "best_s"]], on=["weekend", "driver"], how="left")
    rows["race"] = rows["weekend"].map({weekend: n for n, weekend in enumerate(race_order)})
    rows = rows[rows["race"].notna()].sort_values(["race", "driver"], ignore_index=True)
    time = rows["best_s"].astype(float)
    by_race = time.groupby(rows["weekend"])
    gap = 100.0 * (time / by_race.transform("min") - 1.0)
    slowest = gap.clip(upper=GAP_CAP_PCT).groupby(rows["weekend"]).transform("max")
    gap = gap.fillna(slowest + NO_TIME_PCT).clip(upper=GAP_CAP_PCT).fillna(0.0)
    team = gap.groupby([rows["weekend"], rows["constructor"]]).transform("min")
    rows["qualifying_pct"] = gap - gap.groupby(rows["weekend"]).transform("median")
    rows["team_qualifying_pct"] = team - team.groupby(rows["weekend"]).transform("median")
    return rows


def with_form(rows: pd.DataFrame, pace: pd.DataFrame, earlier_seasons_only: bool = False) -> pd.DataFrame:
    """Add the running race pace (form) of driver and team before each race, with a half-life of 4 races.

    Form uses the races before this one, or with `earlier_seasons_only` those before its season. Races without a fitted
    pace (wet, few laps) do not count. A driver without form gets the team's; a team without form gets 0.75 of its
    qualifying gap (docs/physics.md#replay: the best single predictor).
    """
    frame = rows.merge(pace, on=["weekend", "driver"], how="left")
    season = frame["weekend"].str[:4]
    until = frame["race"].groupby(season).transform("min") if earlier_seasons_only else frame["race"]
    fallback = 0.75 * frame["team_qualifying_pct"]
    team_pace = frame.groupby(["weekend", "constructor"])["pace_pct"].transform("min")
    frame["team_form_pct"] = _running(frame["constructor"], team_pace, frame["race"], until)
    frame["driver_form_pct"] = _running(frame["driver"], frame["pace_pct"], frame["race"], until)
    frame["team_form_pct"] = frame["team_form_pct"].fillna(fallback)
    frame["driver_form_pct"] = frame["driver_form_pct"].fillna(frame["team_form_pct"])
    return frame


def _running(name: pd.Series, value: pd.Series, race: pd.Series, until: pd.Series) -> pd.Series:
    """Mean of each name's values in races before `until`, weighted by 2^(-races ago / half-life); NaN without any."""
    means = np.full(len(name), np.nan)
    has_value = value.notna().to_numpy()
    number, limit, values = race.to_numpy(float), until.to_numpy(float), value.to_numpy(float)
    for rows in name.groupby(name).indices.values():
        with_pace = rows[has_value[rows]]
        ago = number[rows][:, None] - number[with_pace][None]
        weight = np.where(number[with_pace][None] < limit[rows][:, None], 0.5 ** (np.maximum(ago, 0) / HALF_LIFE_RACES),
                          0.0)
        total = weight.sum(axis=1)
        known = total > 0
        means[rows[known]] = (weight[known] @ values[with_pace]) / total[known]
    return pd.Series(means, name.index)


def design(frame: pd.DataFrame) -> np.ndarray:
    """(n, 4) regressors."""
    return np.column_stack([*(frame[name].to_numpy(float) for name in FEATURES)])


def fit_pace(frame: pd.DataFrame) -> RobustFit:
    """Fit the regression on entries with a race pace; constant first. Weak priors: half of a gap shows in the race."""
    train = frame[frame["pace_pct"].notna()]
    return huber_ridge(design(train), train["pace_pct"].to_numpy(float), np.zeros(len(train), dtype=int), 1,
                       np.array([0.0, 0.2, 0.1, 0.2, 0.3]), np.full(1 + len(FEATURES), 0.5))


def forecast_pace(frame: pd.DataFrame, season: int) -> pd.Series:
    """Forecast race pace [% of a lap against the median car] of a season's entries, fitted on earlier seasons only.

    Args:
        frame: Entries of all seasons, as `with_form` returns them.

    Raises:
        ValueError: Fewer than `LEAST_ENTRIES` earlier entries have race pace.
    """
    year = frame["weekend"].str[:4].astype(int)
    earlier = frame[year < season]
    if earlier["pace_pct"].notna().sum() < LEAST_ENTRIES:
        raise ValueError(f"{season}: fewer than {LEAST_ENTRIES} entries of earlier seasons have race pace to fit on")
    target = frame[year == season]
    coef = fit_pace(earlier).coef
    return pd.Series(coef[0] + design(target) @ coef[1:], target.index)
