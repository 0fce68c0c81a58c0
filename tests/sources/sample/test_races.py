"""That what was driven is a race, and looks like one. The bands are around physics.md and ranking.md."""
from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

SLICKS = ["SOFT", "MEDIUM", "HARD"]


@pytest.fixture(scope="module")
def laps(everything) -> pd.DataFrame:
    return everything["race.laps"].sort_values(["weekend", "driver", "lap"], ignore_index=True)


@pytest.fixture(scope="module")
def starters(everything) -> pd.DataFrame:
    results = everything["race.results"]
    return results[results["status"] != "not_started"].assign(season=lambda f: f["weekend"].str[:4].astype(int))


@pytest.fixture(scope="module")
def wet(laps) -> set[str]:
    rain_tyres = laps["compound"].isin(["INTERMEDIATE", "WET"]).groupby(laps["weekend"]).any()
    return set(rain_tyres.index[rain_tyres])


def test_laps_have_no_holes_and_add_up(laps, everything):
    car = [laps["weekend"], laps["driver"]]
    assert (laps["lap"] == laps.groupby(["weekend", "driver"]).cumcount() + 1).all()
    clock = laps["session_time_s"].groupby(car).diff().fillna(laps["session_time_s"] - 3600.0)
    assert (clock - laps["lap_time_s"]).abs().max() < 0.002
    results = everything["race.results"].set_index(["weekend", "driver"])
    counted = laps.groupby(["weekend", "driver"]).size()
    assert (results.loc[counted.index, "laps"] == counted).all()
    total = laps["lap_time_s"].groupby(car).sum()
    lead = results["race_time_s"].dropna()
    assert (total.loc[lead.index].astype(float) - lead.astype(float)).abs().max() < 0.1


def test_places_at_the_line_are_those_of_the_clock(laps):
    order = laps.groupby(["weekend", "lap"])["session_time_s"].rank()
    assert (laps["position"] == order).mean() > 0.9999  # two cars may share a millisecond


def test_stops_stints_and_tyre_ages_belong_together(laps, everything):
    same_car = laps["driver"].eq(laps["driver"].shift()) & laps["weekend"].eq(laps["weekend"].shift())
    came_in = laps["is_pit_in"].shift(fill_value=False) & same_car
    assert (laps["is_pit_out"] == came_in).all()
    assert (laps.loc[came_in, "tyre_age_laps"] == 1).all()
    assert (laps["stint"].diff()[same_car] == came_in[same_car].astype(int)).all()
    assert (laps["tyre_age_laps"].diff()[same_car & ~came_in] == 1).all()
    stops = everything["race.pit_stops"]
    last = ~laps["driver"].eq(laps["driver"].shift(-1)) | ~laps["weekend"].eq(laps["weekend"].shift(-1))
    retired = everything["race.results"].query("status == 'retired'")[["weekend", "driver"]]
    stopped_later = laps[laps["is_pit_in"] & last].merge(retired)  # left the pits and came to a halt in that lap
    assert len(stops) == came_in.sum() + len(stopped_later)
    assert not laps.loc[laps["is_pit_in"] | laps["is_pit_out"], "is_accurate"].any()


def test_two_compounds_in_the_dry(laps, starters, wet):
    dry = laps[~laps["weekend"].isin(wet)]
    kinds = dry[dry["compound"].isin(SLICKS)].groupby(["weekend", "driver"])["compound"].nunique().rename("kinds")
    saw_flag = starters[starters["status"].isin(["finished", "lapped"])].merge(kinds, on=["weekend", "driver"])
    assert (saw_flag["kinds"] >= 2).all()


def test_track_status_is_told_with_its_messages(laps, everything):
    leaders = laps[laps["position"] == 1].set_index(["weekend", "lap"])["track_status"]
    assert set(laps["track_status"]) == {"1", "4", "5", "6", "67"}
    messages = everything["race.race_control"].query("session == 'race' and category == 'SafetyCar'")
    begun = messages[messages["message"] == "SAFETY CAR DEPLOYED"]
    assert (leaders.loc[list(zip(begun["weekend"], begun["lap"], strict=True))] == "4").all()
    assert set(leaders[leaders == "4"].index.get_level_values(0)) == set(begun["weekend"])
    green = laps[(laps["track_status"] == "1") & laps["is_accurate"]].groupby("weekend")["lap_time_s"].median()
    slow = laps[laps["track_status"] == "4"].groupby("weekend")["lap_time_s"].median()
    ratio = (slow / green.reindex(slow.index)).astype(float)
    assert ratio.between(1.1, 1.9).all() and 1.25 < ratio.median() < 1.6


def test_rain_is_on_the_sensor_where_cars_run_on_rain_tyres(laps, everything, wet):
    weather = everything["race.weather"].query("session == 'race'")
    rained = set(weather.loc[weather["rainfall"], "weekend"])
    assert wet <= rained
    assert 0.04 < len(wet) / laps["weekend"].nunique() < 0.25


def test_orders_are_as_predictable_as_real_ones(starters, everything):
    def rho(frame: pd.DataFrame, by: str) -> float:
        return float(np.mean([sheet[by].astype(float).corr(sheet["official_order"].astype(float), method="spearman")
                              for _, sheet in frame.groupby("weekend")]))

    qualified = everything["race.qualifying"].query("session == 'qualifying'")[["weekend", "driver", "position"]]
    both = starters.merge(qualified, on=["weekend", "driver"])
    assert 0.57 < rho(starters, "grid_position") < 0.70
    assert rho(both, "position") > rho(both, "grid_position")
    for _, season in starters.groupby("season"):
        assert 0.52 < rho(season, "grid_position") < 0.76
    finishers = starters[starters["classified"].astype(bool)]
    assert 0.68 < rho(finishers, "grid_position") < 0.86


def test_retirements_and_stops_are_as_frequent_as_real_ones(starters, everything, laps, wet):
    assert 0.08 < (starters["status"] == "retired").mean() < 0.15
    red = set(laps.loc[laps["track_status"] == "5", "weekend"])
    stops = everything["race.pit_stops"].groupby(["weekend", "driver"]).size().rename("stops").reset_index()
    finishers = starters[starters["status"].isin(["finished", "lapped"])].merge(stops, how="left")
    dry = finishers[~finishers["weekend"].isin(wet | red)]
    by_season = dry["stops"].fillna(0).groupby(dry["season"]).mean()
    assert by_season.between(1.0, 2.5).all()
    lane_s = everything["race.pit_stops"].query("pit_lane_time_s < 100")["pit_lane_time_s"]
    assert 20 < lane_s.median() < 30


def test_strengths_last_within_a_season_and_are_reshuffled_by_the_rules_of_2026():
    from f1_pipelines.sources.sample.strengths import car_levels

    def kept(season: int) -> float:
        before, after = car_levels(season - 1), car_levels(season)
        both = sorted(before.keys() & after.keys())
        return float(np.corrcoef([before[line] for line in both], [after[line] for line in both])[0, 1])

    assert min(kept(season) for season in (2023, 2024, 2025)) > 0.5 > kept(2026)
    assert all(abs(sum(car_levels(season).values())) < 1e-9 for season in range(2022, 2027))


def test_penalties_and_pit_lane_starts_are_there_and_rare(starters, everything):
    qualified = everything["race.qualifying"].query("session == 'qualifying'")[["weekend", "driver", "position"]]
    both = starters.merge(qualified, on=["weekend", "driver"])
    both = both[~both["weekend"].isin(everything["race.sprint_results"]["weekend"]) & both["position"].notna()]
    dropped = (both["grid_position"] - both["position"] >= 3).groupby(both["weekend"]).sum()
    assert 0.3 < dropped.mean() < 2.5
    assert 0.003 < (starters["grid_status"] == "pit_lane").mean() < 0.03
