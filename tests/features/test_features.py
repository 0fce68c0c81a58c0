"""Each feature on weekends small enough to compute by hand."""
import numpy as np
import pandas as pd
import pytest

from f1_pipelines.features.form import HALF_LIFE_RACES
from f1_pipelines.features.pace import place
from f1_pipelines.features.ranking import build_ranking_features
from f1_pipelines.tables.schema import InvalidRows

ONE, TWO, THREE = "2024-one", "2024-two", "2024-three"
# Form after a first place followed by a last place.
LAST_OF_TWO = 1 / (1 + 0.5 ** (1 / HALF_LIFE_RACES))


def test_place_is_a_share_of_the_field():
    values = pd.Series([4.0, 1.0, 1.0, np.nan, 9.0])
    race = pd.Series(["a", "a", "a", "a", "alone"])
    assert place(values, race).tolist()[:3] == [1.0, 0.25, 0.25]
    assert np.isnan(place(values, race)[3])
    assert place(values, race)[4] == 0


def test_a_first_start_has_no_form_and_the_own_race_never_counts(season):
    season.weekend(ONE, "2024-03-01", race="abc").weekend(TWO, "2024-03-08", race="bac")
    rows = season.features()
    form = [name for name in rows.columns if "form" in name or "dnf" in name or "season" in name or "last3" in name]
    assert rows.loc[ONE, [name for name in form if name != "season"]].isna().all(axis=None)
    assert rows.loc[ONE, "points_place"].isna().all()
    assert rows.loc[TWO, "driver_finish_form"].tolist() == [0, 0.5, 1]
    assert rows.loc[TWO, "mean_last3_finish"].tolist() == [1, 2, 3]
    assert rows.loc[TWO, "points_place"].tolist() == [0, 0.5, 1]
    assert rows.loc[TWO, "driver_race_gap_form_pct"].tolist() == [0, 1, 2]  # 50 s of 5,000 s a place
    assert rows.loc[TWO, "driver_fastest_lap_gap_form_pct"].tolist() == pytest.approx([0, 100 / 90, 200 / 90])


def test_recent_races_by_start_weigh_more(season):
    season.weekend(TWO, "2024-03-08", race="ba").weekend(THREE, "2024-03-15", race="ab")
    season.weekend(ONE, "2024-03-01", race="ab")  # the calendar lists it last
    rows = season.features()
    assert rows.loc[(THREE, "a"), "driver_finish_form"] == pytest.approx(LAST_OF_TWO)
    assert rows.loc[(THREE, "a"), "season_mean_finish"] == 1.5


def test_a_race_not_started_does_not_decay_form(season):
    season.weekend(ONE, "2024-03-01", race="ab")
    season.weekend(TWO, "2024-03-08", race="ba", a={"status": "not_started", "classified": False,
                                                    "finish_position": None})
    season.weekend(THREE, "2024-03-15", race="ba").weekend("2024-four", "2024-03-22", race="ab")
    rows = season.features()
    assert rows.loc[(THREE, "a"), "driver_finish_form"] == 0
    assert rows.loc[("2024-four", "a"), "driver_finish_form"] == pytest.approx(LAST_OF_TWO)


def test_the_last_three_starts_skip_a_race_not_started_and_span_seasons(season):
    for number, order in enumerate(["abcd", "bacd", "cbad"]):
        season.weekend(f"2023-{number}", f"2023-11-0{number + 1}", race=order)
    season.weekend(ONE, "2024-03-01", race="bcda", a={"status": "not_started", "classified": False,
                                                      "finish_position": None})
    season.weekend(TWO, "2024-03-08", race="abcd")
    rows = season.features()
    assert rows.loc[(TWO, "a"), "mean_last3_finish"] == 2
    assert rows.loc[(TWO, "b"), "mean_last3_finish"] == pytest.approx((1 + 2 + 1) / 3)
    assert pd.isna(rows.loc[(TWO, "a"), "season_mean_finish"])
    assert not rows.loc[(ONE, "a"), "entered"]


def test_a_lap_down_costs_the_winners_average_lap_and_a_retirement_has_no_pace(season):
    lapped = {"status": "lapped", "gap_s": None, "race_time_s": None, "gap_laps": 2, "laps": 48}
    out = {"status": "retired", "gap_s": None, "race_time_s": None, "laps": 3, "classified": False,
           "finish_position": None}
    season.weekend(ONE, "2024-03-01", race="abcd", c=lapped, d=out).weekend(TWO, "2024-03-08", race="abcd")
    rows = season.features().loc[TWO]
    assert rows["driver_race_gap_form_pct"].tolist()[:3] == [0, 1, 4]  # 2 of 50 laps
    assert pd.isna(rows.loc["d", ["driver_race_gap_form_pct", "driver_fastest_lap_gap_form_pct"]]).all()
    assert rows["driver_dnf_rate"].tolist() == [0, 0, 0, 1]
    assert rows.loc["d", "driver_finish_form"] == 1


def test_a_race_of_one_counted_lap_has_an_order_but_no_pace(season):
    short = {"laps": 1, "fastest_lap_s": None}
    season.weekend(ONE, "2024-03-01", race="ab", a=short, b=short).weekend(TWO, "2024-03-08", race="ab")
    rows = season.features().loc[TWO]
    assert rows["driver_finish_form"].tolist() == [0, 1]
    assert rows[["driver_race_gap_form_pct", "driver_fastest_lap_gap_form_pct"]].isna().all(axis=None)


def test_team_form_is_the_mean_of_its_cars(season):
    season.teams = {"a": "red", "c": "red"}
    season.weekend(ONE, "2024-03-01", race="abc").weekend(TWO, "2024-03-08", race="dabc")
    rows = season.features().loc[TWO]
    assert rows.loc[["a", "b", "c"], "constructor_finish_form"].tolist() == [0.5, 0.5, 0.5]
    assert rows.loc["a", "constructor_season_mean_finish"] == 2
    assert pd.isna(rows.loc["d", "constructor_finish_form"])


def test_pace_features_come_from_the_weekends_sessions(season):
    season.weekend(ONE, "2024-03-01", race="abc", qualifying="abc", grid="bca", practice=["ab", "ba"])
    rows = season.features().loc[ONE]
    assert rows["qualifying_gap_pct"].tolist() == pytest.approx([0, 1, 2])
    assert rows["delta_to_pole_s"].tolist() == pytest.approx([0, 0.8, 1.6])
    assert rows["grid_position"].tolist() == [3, 1, 2]
    assert rows["grid_place"].tolist() == [1, 0, 0.5]
    assert rows["out_of_position_places"].tolist() == [2, -1, -1]
    assert rows["practice_pace_s"].tolist()[:2] == [105.5, 105.5]
    assert rows["practice_1_gap_pct"].tolist()[:2] == pytest.approx([0, 1])
    assert rows["practice_2_gap_pct"].tolist()[:2] == pytest.approx([100 / 110, 0])
    assert rows.loc["c", ["practice_pace_s", "practice_2_gap_pct", "practice_place"]].isna().all()


def test_no_grid_is_unknown_and_no_slot_is_ahead_of_pole(season):
    season.weekend(ONE, "2024-03-01", race="abc", qualifying="abc", grid="abc")
    for row in season.rows["grid"]:
        row.update(grid_position=None, grid_status="unknown")
    rows = season.features().loc[ONE]
    assert rows["grid_position"].isna().all()
    assert rows["stage"].eq("qualifying").all()
    season.rows["grid"][0].update(grid_position=3, grid_status="pit_lane")
    season.rows["grid"][1].update(grid_position=1, grid_status="grid")
    assert season.features().loc[ONE, "grid_place"].tolist() == [1, 0, pd.NA]


def test_grid_position_0_is_refused(season):
    frames = season.weekend(ONE, "2024-03-01", race="abc", grid="abc").frames()
    frames["grid"].loc[0, "grid_position"] = 0
    season.frames = lambda: frames
    with pytest.raises(InvalidRows, match="grid_position"):
        season.features()


def test_the_grid_of_the_classification_is_only_a_fallback(season):
    slot = {driver: {"grid_position": place, "grid_status": "grid"} for place, driver in enumerate("cba", start=1)}
    season.weekend(ONE, "2024-03-01", race="abc", **slot)
    season.weekend(TWO, "2024-03-08", race="abc", grid="ab", **slot)
    rows = season.features()
    assert rows.loc[ONE, "grid_position"].tolist() == [3, 2, 1]
    assert rows.loc[TWO, "grid_position"].tolist() == [1, 2, pd.NA]


def test_the_entry_list_of_a_future_weekend_follows_its_sessions(season):
    season.teams = {"a": "red", "b": "red", "junior": "red", "c": "blue", "d": "blue"}
    season.weekend(ONE, "2024-03-01", race="abcd")
    season.weekend(TWO, "2024-03-08", state="upcoming", practice=[["junior", "b", "c", "d"], ["a", "b", "c", "d"]])
    season.weekend(THREE, "2024-03-15", state="upcoming")
    season.weekend("2024-off", "2024-03-22", state="cancelled", practice=["abcd"])
    season.weekend("2025-one", "2025-03-01", state="upcoming")
    rows = season.features()
    assert list(rows.loc[TWO].index) == ["a", "b", "c", "d"]  # the junior drove only first practice
    assert rows.loc[TWO, "stage"].eq("practice").all()
    assert list(rows.loc[THREE].index) == ["a", "b", "c", "d"]
    assert rows.loc[THREE, "stage"].eq("entry").all()
    assert rows.loc[THREE, "driver_finish_form"].notna().all()
    assert {ONE, TWO, THREE} == set(rows.index.get_level_values("weekend"))


def test_a_driver_who_raced_is_entered_without_any_session(season):
    season.teams = dict.fromkeys(["a", "b", "junior"], "red")
    season.weekend(ONE, "2024-03-01", race="ab", practice=[["a", "junior"]])
    rows = season.features().loc[ONE]
    assert rows["entered"].to_dict() == {"a": True, "b": True, "junior": False}


def test_a_first_weekend_has_features_without_history(season):
    season.weekend(ONE, "2024-03-01", state="upcoming")
    assert season.features().empty
    season.weekend(TWO, "2024-03-08", state="upcoming", practice=["ab"])
    rows = season.features()
    assert rows["practice_place"].tolist() == [0, 1]
    assert rows[["driver_finish_form", "mean_last3_finish", "points_place", "grid_place"]].isna().all(axis=None)


def test_empty_untyped_tables_of_a_new_warehouse_are_accepted(season):
    frames = season.weekend(ONE, "2024-03-01", race="ab", qualifying="ab", practice=["ab"], grid="ba").frames()
    for name in ("results", "qualifying", "practice", "grid"):
        frames_without = frames | {name: pd.DataFrame(columns=frames[name].columns)}
        assert len(build_ranking_features(**frames_without, lineage=str)) == 2


def test_a_car_that_missed_qualifying_is_entered_until_a_grid_lacks_it(season):
    season.teams = {"a": "red", "b": "red", "c": "blue", "d": "blue"}
    season.weekend(ONE, "2024-03-01", state="upcoming", practice=["abcd"], qualifying="abc")
    assert season.features().loc[(ONE, "d"), "entered"]
    season.weekend(TWO, "2024-03-08", state="upcoming", practice=["abcd"], qualifying="abc", grid="abc")
    rows = season.features().loc[TWO]
    assert rows["entered"].tolist() == [True, True, True, False]
    assert pd.isna(rows.loc["d", "qualifying_place"])


def test_a_car_listed_twice_in_a_session_is_refused(season):
    frames = season.weekend(ONE, "2024-03-01", race="abc", qualifying="abc").frames()
    frames["qualifying"] = pd.concat([frames["qualifying"], frames["qualifying"].head(1)])
    season.frames = lambda: frames
    with pytest.raises(ValueError, match="not unique|not a one-to-one"):
        season.features()
