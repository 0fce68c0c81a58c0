"""Input features of the ranker: everything known of each car before lights out, one row per (weekend, driver).

Unknown values are missing, never 0 or -1. No future data leak in: a row uses the sessions of its own weekend before the
race, and otherwise only weekends that started earlier.
"""
from __future__ import annotations

from collections.abc import Callable, Collection

import pandas as pd

from f1_pipelines.features import form, pace
from f1_pipelines.features.entries import entry_list
from f1_pipelines.identity.entrants import lineage as constructor_lineage
from f1_pipelines.tables.bounds import clip_columns
from f1_pipelines.tables.features import RANKING, STAGES

FEATURE_VERSION = "1"

# The published features of F1Net-V2, absolute lap times included, for comparison.
REFERENCE_FEATURES = ("qualifying_time_s", "delta_to_pole_s", "practice_pace_s", "grid_position", "mean_last3_finish")

# The best set measured on 2019-2024 (docs/lab-notes/ranker.md): only places and gaps within the race.
CORE_FEATURES = (
    "grid_place", "qualifying_place", "qualifying_gap_pct", "out_of_position_places",
    "practice_place", "practice_1_gap_pct", "practice_2_gap_pct", "practice_3_gap_pct",
    "driver_finish_form", "driver_qualifying_gap_form_pct", "driver_race_gap_form_pct",
    "driver_fastest_lap_gap_form_pct", "driver_dnf_rate",
    "constructor_finish_form", "constructor_qualifying_gap_form_pct", "constructor_race_gap_form_pct",
    "constructor_fastest_lap_gap_form_pct", "constructor_dnf_rate",
    "points_place",
)

# Features that each stage adds to the one before; form is known from stage `entry` on.
_ADDED_BY_STAGE = {
    "practice": ["practice_pace_s", *(f"{name}_gap_pct" for name in pace.PRACTICES), "practice_gap_pct",
                 "practice_place"],
    "qualifying": ["qualifying_position", "qualifying_place", "qualifying_time_s", "delta_to_pole_s",
                   "qualifying_gap_pct"],
    "grid": ["grid_position", "grid_place", "out_of_position_places"],
}
_CAR = ["weekend", "driver"]
_FORM_NAMES = {
    "finish_place": "finish_form", "qualifying_gap_pct": "qualifying_gap_form_pct", "race_gap_pct": "race_gap_form_pct",
    "fastest_lap_gap_pct": "fastest_lap_gap_form_pct", "dnf": "dnf_rate",
}


def build_ranking_features(
    calendar: pd.DataFrame, results: pd.DataFrame, qualifying: pd.DataFrame, practice: pd.DataFrame,
    grid: pd.DataFrame, weekends: Collection[str] | None = None,
    lineage: Callable[[str], str] = constructor_lineage,
) -> pd.DataFrame:
    """Build the rows of `features.ranking` for past and future weekends.

    Args:
        calendar: Rows of `race.calendar`; rows are ordered by its `race_start`.
        results: Rows of `race.results`, current version only: one per (weekend, driver).
        qualifying: Rows of `race.qualifying`.
        practice: Rows of `race.practice`.
        grid: Rows of `race.grid`.
        weekends: Weekends to return; default all. The others still count as history.
        lineage: Function from a constructor id to its lineage, which renames do not change.

    Returns:
        A frame that conforms to `features.ranking`, ordered by race start and driver id.
    """
    entry = entry_list(calendar, results, qualifying, practice, grid)
    sessions = entry
    for part in (pace.grid_slots(grid, results), pace.qualifying_pace(qualifying), pace.practice_pace(practice)):
        sessions = sessions.join(part, on=_CAR, validate="1:1")
    sessions["out_of_position_places"] = sessions["grid_position"] - sessions["qualifying_position"]
    features = pd.concat([sessions, _driver_form(sessions, results), _constructor_form(sessions, results, lineage)],
                         axis=1).assign(feature_version=FEATURE_VERSION)
    if weekends is not None:
        features = features[features["weekend"].isin(list(weekends))]
    return RANKING.conform(clip_columns(features[RANKING.column_names], RANKING))  # means may exceed bounds by rounding


def as_known_at(features: pd.DataFrame, stage: str) -> pd.DataFrame:
    """Set all features from after `stage` to missing, to train and evaluate forecasts at that stage.

    The line-up stays that of the last session: a change known on Saturday is not undone for Friday.

    Args:
        features: Rows of `features.ranking`, with or without targets.
        stage: One of `STAGES`.

    Raises:
        ValueError: Unknown stage.
    """
    if stage not in STAGES:
        raise ValueError(f'"{stage}" is no stage; wanted one of {", ".join(STAGES)}')
    later = STAGES[STAGES.index(stage) + 1:]
    unknown = {name: pd.NA for added in later for name in _ADDED_BY_STAGE[added]}
    rows = features.assign(**unknown).astype({name: features[name].dtype for name in unknown})
    return rows.assign(stage=features["stage"].mask(features["stage"].isin(later), stage))


def _driver_form(sessions: pd.DataFrame, results: pd.DataFrame) -> pd.DataFrame:
    """Driver form on the rows of `sessions`."""
    past = sessions[[*_CAR, "season", "qualifying_gap_pct"]].join(form.performance(results), on=_CAR, validate="1:1")
    driver, season = past["driver"], past["season"]
    points = form.points_before(past["points"], driver, season)
    scored = points.groupby(past["weekend"]).transform("max") > 0
    return form.weighted_form(past[list(_FORM_NAMES)], driver).rename(columns=_FORM_NAMES).add_prefix("driver_").assign(
        mean_last3_finish=form.last_mean(past["finish"], driver),
        season_mean_finish=form.season_mean(past["finish"], driver, season),
        points_place=pace.place(-points.where(scored), past["weekend"]),
    )


def _constructor_form(sessions: pd.DataFrame, results: pd.DataFrame, lineage: Callable[[str], str]) -> pd.DataFrame:
    """Constructor form (mean of the lineage's cars in each race) on the rows of `sessions`."""
    line = sessions["constructor"].map({name: lineage(name) for name in sessions["constructor"].dropna().unique()})
    past = sessions[[*_CAR, "season", "race_start", "qualifying_gap_pct"]]
    past = past.join(form.performance(results), on=_CAR, validate="1:1")
    team = past.assign(line=line).groupby(["race_start", "weekend", "season", "line"], as_index=False)[
        [*_FORM_NAMES, "finish"]].mean()
    team_form = form.weighted_form(team[list(_FORM_NAMES)], team["line"]).rename(columns=_FORM_NAMES).assign(
        season_mean_finish=form.season_mean(team["finish"], team["line"], team["season"]),
    ).add_prefix("constructor_").assign(weekend=team["weekend"], line=team["line"])
    rows = sessions[["weekend"]].assign(line=line).merge(team_form, on=["weekend", "line"], how="left")
    return rows.set_index(sessions.index).drop(columns=["weekend", "line"])
