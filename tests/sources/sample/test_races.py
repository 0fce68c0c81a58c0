"""Races of the sample are consistent and realistic. The bounds are around docs/physics.md and the real results."""
from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

SLICKS = ["SOFT", "MEDIUM", "HARD"]


@pytest.fixture(scope="module")
def laps(all_tables) -> pd.DataFrame:
    return all_tables["race.laps"].sort_values(["weekend", "driver", "lap"], ignore_index=True)


@pytest.fixture(scope="module")
def starters(all_tables) -> pd.DataFrame:
    results = all_tables["race.results"]
    return results[results["status"] != "not_started"].assign(season=lambda f: f["weekend"].str[:4].astype(int))


@pytest.fixture(scope="module")
def wet(laps) -> set[str]:
    rain_tyres = laps["compound"].isin(["INTERMEDIATE", "WET"]).groupby(laps["weekend"]).any()
    return set(rain_tyres.index[rain_tyres])


def test_laps_have_no_holes_and_add_up(laps, all_tables):
    car = [laps["weekend"], laps["driver"]]
    assert (laps["lap"] == laps.groupby(["weekend", "driver"]).cumcount() + 1).all()
    clock = laps["session_time_s"].groupby(car).diff().fillna(laps["session_time_s"] - 3600.0)
    assert (clock - laps["lap_time_s"]).abs().max() < 0.002
    results = all_tables["race.results"].set_index(["weekend", "driver"])
    count = laps.groupby(["weekend", "driver"]).size()
    assert (results.loc[count.index, "laps"] == count).all()
    total = laps["lap_time_s"].groupby(car).sum()
    race_time = results["race_time_s"].dropna()
    assert (total.loc[race_time.index].astype(float) - race_time.astype(float)).abs().max() < 0.1


def test_places_at_the_line_are_those_of_the_clock(laps):
    order = laps.groupby(["weekend", "lap"])["session_time_s"].rank()
    assert (laps["position"] == order).mean() > 0.9999  # two cars may share a millisecond


def test_stops_stints_and_tyre_ages_belong_together(laps, all_tables):
    same_car = laps["driver"].eq(laps["driver"].shift()) & laps["weekend"].eq(laps["weekend"].shift())
    after_stop = laps["is_pit_in"].shift(fill_value=False) & same_car
    assert (laps["is_pit_out"] == after_stop).all()
    assert (laps.loc[after_stop, "tyre_age_laps"] == 1).all()
    assert (laps["stint"].diff()[same_car] == after_stop[same_car].astype(int)).all()
    assert (laps["tyre_age_laps"].diff()[same_car & ~after_stop] == 1).all()
    stops = all_tables["race.pit_stops"]
    last = ~laps["driver"].eq(laps["driver"].shift(-1)) | ~laps["weekend"].eq(laps["weekend"].shift(-1))
    retired = all_tables["race.results"].query("status == 'retired'")[["weekend", "driver"]]
    retired_after_stop = laps[laps["is_pit_in"] & last].merge(retired)  # left the pits and stopped in that lap
    assert len(stops) == after_stop.sum() + len(retired_after_stop)
    assert not laps.loc[laps["is_pit_in"] | laps["is_pit_out"], "is_accurate"].any()


def test_two_compounds_in_the_dry(laps, starters, wet):
    dry = laps[~laps["weekend"].isin(wet)]
    kinds = dry[dry["compound"].isin(SLICKS)].groupby(["weekend", "driver"])["compound"].nunique().rename("kinds")
    finishers = starters[starters["status"].isin(["finished", "lapped"])].merge(kinds, on=["weekend", "driver"])
    assert (finishers["kinds"] >= 2).all()


def test_track_status_agrees_with_the_messages(laps, all_tables):
    leaders = laps[laps["position"] == 1].set_index(["weekend", "lap"])["track_status"]
    assert set(laps["track_status"]) == {"1", "4", "5", "6", "67"}
    messages = all_tables["race.race_control"].query("session == 'race' and category == 'SafetyCar'")
    deployed = messages[messages["message"] == "SAFETY CAR DEPLOYED"]
    assert (leaders.loc[list(zip(deployed["weekend"], deployed["lap"], strict=True))] == "4").all()
    assert set(leaders[leaders == "4"].index.get_level_values(0)) == set(deployed["weekend"])
    green = laps[(laps["track_status"] == "1") & laps["is_accurate"]].groupby("weekend")["lap_time_s"].median()
    slow = laps[laps["track_status"] == "4"].groupby("weekend")["lap_time_s"].median()
    ratio = (slow / green.reindex(slow.index)).astype(float)
    assert ratio.between(1.1, 1.9).all() and 1.25 < ratio.median() < 1.6


def test_rain_is_on_the_sensor_where_cars_run_on_rain_tyres(laps, all_tables, wet):
    weather = all_tables["race.weather"].query("session == 'race'")
    assert wet <= set(weather.loc[weather["rainfall"], "weekend"])
    assert 0.04 < len(wet) / laps["weekend"].nunique() < 0.25


def test_orders_are_as_predictable_as_real_ones(starters, all_tables):
    def rho(frame: pd.DataFrame, by: str) -> float:
        return float(np.mean([sheet[by].astype(float).corr(sheet["official_order"].astype(float), method="spearman")
                              for _, sheet in frame.groupby("weekend")]))

    qualifying = all_tables["race.qualifying"].query("session == 'qualifying'")[["weekend", "driver", "position"]]
    both = starters.merge(qualifying, on=["weekend", "driver"])
    assert 0.57 < rho(starters, "grid_position") < 0.70
    assert rho(both, "position") > rho(both, "grid_position")
    for _, season in starters.groupby("season"):
        assert 0.52 < rho(season, "grid_position") < 0.76
    finishers = starters[starters["classified"].astype(bool)]
    assert 0.68 < rho(finishers, "grid_position") < 0.86


def test_retirements_and_stops_are_as_frequent_as_real_ones(starters, all_tables, laps, wet):
    assert 0.08 < (starters["status"] == "retired").mean() < 0.15
    red = set(laps.loc[laps["track_status"] == "5", "weekend"])
    stops = all_tables["race.pit_stops"].groupby(["weekend", "driver"]).size().rename("stops").reset_index()
    finishers = starters[starters["status"].isin(["finished", "lapped"])].merge(stops, how="left")
    dry = finishers[~finishers["weekend"].isin(wet | red)]
    by_season = dry["stops"].fillna(0).groupby(dry["season"]).mean()
    assert by_season.between(1.0, 2.5).all()
    lane_s = all_tables["race.pit_stops"].query("pit_lane_time_s < 100")["pit_lane_time_s"]
    assert 20 < lane_s.median() < 30


def test_strengths_persist_between_seasons_until_the_rules_of_2026():
    from f1_pipelines.sources.sample.strengths import car_levels

    def correlation(season: int) -> float:
        before, after = car_levels(season - 1), car_levels(season)
        both = sorted(before.keys() & after.keys())
        return float(np.corrcoef([before[line] for line in both], [after[line] for line in both])[0, 1])

    assert min(correlation(season) for season in (2023, 2024, 2025)) > 0.5 > correlation(2026)
    assert all(abs(sum(car_levels(season).values())) < 1e-9 for season in range(2022, 2027))


def test_penalties_and_pit_lane_starts_are_rare(starters, all_tables):
    qualifying = all_tables["race.qualifying"].query("session == 'qualifying'")[["weekend", "driver", "position"]]
    both = starters.merge(qualifying, on=["weekend", "driver"])
    both = both[~both["weekend"].isin(all_tables["race.sprint_results"]["weekend"]) & both["position"].notna()]
    dropped = (both["grid_position"] - both["position"] >= 3).groupby(both["weekend"]).sum()
    assert 0.3 < dropped.mean() < 2.5
    assert 0.003 < (starters["grid_status"] == "pit_lane").mean() < 0.03
