"""Features of real weekends with unusual sessions, entries or results."""
import time

import pandas as pd

from f1_pipelines.evaluation.baselines import BASELINES
from f1_pipelines.features.ranking import CORE_FEATURES, REFERENCE_FEATURES, as_known_at
from f1_pipelines.tables.features import RANKING
from f1_pipelines.tables.race import NON_STARTERS

QUALIFYING = ["qualifying_position", "qualifying_time_s", "qualifying_gap_pct"]


def test_features_of_all_seasons_take_less_than_5_s(real, build):
    start = time.perf_counter()
    build(real)
    assert time.perf_counter() - start < 5


def test_inputs_are_numeric_columns_of_the_feature_table():
    types = {column.name: column.type for column in RANKING.columns}
    assert {types[name] for name in (*CORE_FEATURES, *REFERENCE_FEATURES)} == {"DOUBLE"}


def test_two_grands_prix_of_one_name_do_not_meet(features_of):
    past, future = features_of("2025-spain"), features_of("2026-spain")
    assert past.loc["oscar-piastri", "qualifying_position"] == 1
    assert future["stage"].eq("entry").all()
    assert future[[*QUALIFYING, "grid_position", "practice_pace_s"]].isna().all(axis=None)
    assert features_of("2026-barcelona-catalunya")["grid_position"].notna().all()


def test_a_weekend_is_predicted_from_its_first_practice(features_of):
    cars = features_of("2026-netherlands")
    assert len(cars) == 22
    assert cars["stage"].eq("practice").all()
    assert cars["entered"].all()
    assert cars.loc["liam-lawson", "constructor"] == "red-bull"  # from racing-bulls in the race before
    assert cars.loc["yuki-tsunoda", "constructor"] == "racing-bulls"
    assert "isack-hadjar" not in cars.index
    assert cars["practice_1_gap_pct"].notna().all()
    assert cars[[*QUALIFYING, "grid_position", "practice_2_gap_pct"]].isna().all(axis=None)
    for baseline in BASELINES:
        assert len(baseline.scores(cars.reset_index())) == 22


def test_weekends_without_sessions_have_the_last_entry_list_of_the_season(features_of):
    assert set(features_of("2026-italy").index) == set(features_of("2026-hungary").index)


def test_cancelled_weekends_have_no_rows(real, real_features):
    calendar = real["calendar"]
    cancelled = set(calendar.loc[calendar["state"] == "cancelled", "weekend"])
    assert cancelled
    assert not cancelled & set(real_features["weekend"])


def test_a_weekend_has_each_of_its_cars_once_whatever_is_joined(real, real_features):
    starters = real["results"][~real["results"]["status"].isin(NON_STARTERS)].groupby("weekend").size()
    entered = real_features[real_features["entered"]].groupby("weekend").size()
    assert len(starters) == 184
    assert (entered[starters.index] == starters).all()
    assert not real_features.duplicated(["weekend", "driver"]).any()


def test_practices_that_were_not_held_are_missing_and_the_weekend_goes_on(features_of):
    """2020 Eifel: no car left the garage on Friday. 2021 Russia: third practice was cancelled."""
    for weekend, missing, held in (("2020-eifel", ["practice_1_gap_pct", "practice_2_gap_pct"], "practice_3_gap_pct"),
                                   ("2021-russia", ["practice_3_gap_pct"], "practice_1_gap_pct")):
        cars = features_of(weekend)
        assert cars[missing].isna().all(axis=None)
        assert cars[held].notna().sum() >= 19
        assert cars["practice_place"].notna().sum() >= 19
        assert cars["stage"].eq("grid").all()


def test_after_a_race_without_a_racing_lap_form_is_finite_and_its_order_counts(real, features_of):
    """2021 Belgium: one counted lap behind the safety car, half points, no fastest lap."""
    belgium = real["results"].query("weekend == '2021-belgium'")
    assert belgium["points"].max() == 12.5
    assert belgium["fastest_lap_s"].isna().all()
    before, after = features_of("2021-belgium"), features_of("2021-netherlands")
    same = after.index.intersection(before.index)
    pace = ["driver_race_gap_form_pct", "driver_fastest_lap_gap_form_pct"]
    assert after.loc[same, pace].equals(before.loc[same, pace])
    assert after.loc["george-russell", "driver_finish_form"] < before.loc["george-russell", "driver_finish_form"]


def test_a_driver_replaced_after_practice_is_not_entered(real, features_of):
    for weekend, replaced, substitute in (("2021-netherlands", "kimi-raikkonen", "robert-kubica"),
                                          ("2024-saudi-arabia", "carlos-sainz-jr", "oliver-bearman")):
        practised = real["practice"].query("weekend == @weekend")["driver"]
        assert {replaced, substitute} <= set(practised)
        assert replaced not in features_of(weekend).index
        assert features_of(weekend).loc[substitute, "entered"]


def test_who_did_not_start_keeps_his_row_but_does_not_take_part(features_of):
    crashed = features_of("2023-singapore").loc["lance-stroll"]  # in qualifying, so was not on the grid
    assert not crashed["entered"]
    assert crashed["qualifying_position"] == 20
    assert not features_of("2024-australia").loc["logan-sargeant", "entered"]  # without a car after practice
    assert features_of("2024-australia")["entered"].sum() == 19


def test_grid_place_ranges_from_0_to_1_for_any_field_size(real_features):
    starters = real_features[real_features["entered"]].groupby("weekend").size()
    assert {18, 19, 20, 22} <= set(starters[starters.index.isin(
        real_features.loc[real_features["stage"] == "grid", "weekend"])])
    places = real_features[real_features["stage"] == "grid"].groupby("weekend")["grid_place"]
    assert (places.min() == 0).all()
    assert (places.max() == 1).all()


def test_a_renamed_team_keeps_its_form_and_a_new_one_has_none(features_of):
    assert features_of("2026-australia").loc["nico-hulkenberg", "constructor"] == "audi"
    assert features_of("2026-australia").loc["nico-hulkenberg", "constructor_finish_form"] > 0.5
    new_team = features_of("2026-australia").loc["sergio-perez"]
    assert new_team[["constructor_finish_form", "constructor_dnf_rate"]].isna().all()
    assert pd.notna(new_team["driver_finish_form"])  # the driver's own, from two years before


def test_an_earlier_stage_hides_later_features(real_features):
    on_friday = as_known_at(real_features, "practice").set_index("weekend").loc["2024-monaco"]
    assert on_friday["stage"].eq("practice").all()
    assert on_friday[[*QUALIFYING, "grid_place", "out_of_position_places"]].isna().all(axis=None)
    assert on_friday[["practice_place", "driver_finish_form"]].notna().all(axis=None)
    assert as_known_at(real_features, "grid").equals(real_features)
    assert RANKING.conform(as_known_at(real_features, "entry"))["stage"].eq("entry").all()
