"""No future data leaks into features: checked on the real seasons, bit by bit."""
import numpy as np
import pandas as pd
import pytest

from f1_pipelines.evaluation.metrics import spearman
from f1_pipelines.evaluation.targets import with_targets

OUTCOME = ["official_order", "finish_position", "classified", "status", "points", "laps", "race_time_s", "gap_s",
           "gap_laps", "fastest_lap_s"]


def shuffled_outcomes(results, weekends, seed=7):
    """Shuffle the outcomes among the cars of each of these races."""
    rng, changed = np.random.default_rng(seed), results.copy()
    for _, rows in results[results["weekend"].isin(weekends)].groupby("weekend"):
        shuffled = results.loc[rng.permutation(rows.index), OUTCOME].set_axis(rows.index)
        changed.loc[rows.index, OUTCOME] = shuffled
    return changed


def from_race_on(calendar, weekend):
    start = calendar.set_index("weekend").loc[weekend, "race_start"]
    return set(calendar.loc[calendar["race_start"] >= start, "weekend"])


def inputs_of(features, weekends):
    """All columns except `entered`, which is no input."""
    return features[features["weekend"].isin(list(weekends))].drop(columns="entered").reset_index(drop=True)


@pytest.mark.parametrize(("weekend", "following"), [("2019-monaco", "2019-canada"), ("2024-hungary", "2024-belgium"),
                                                    ("2026-monaco", "2026-barcelona-catalunya")])
def test_results_of_a_race_and_all_later_ones_move_none_of_its_features(real, real_features, build, weekend, following):
    later = from_race_on(real["calendar"], weekend)
    changed = build(real, results=shuffled_outcomes(real["results"], later))
    known = (set(real["calendar"]["weekend"]) - later) | {weekend}
    pd.testing.assert_frame_equal(inputs_of(changed, known), inputs_of(real_features, known), check_exact=True)
    assert not inputs_of(changed, [following]).equals(inputs_of(real_features, [following]))


def test_a_changed_result_of_2024_spain_shows_first_in_austria(real, real_features, build):
    rows = real["results"].copy()
    swapped = rows[(rows["weekend"] == "2024-spain") & rows["official_order"].isin([1, 20])].index
    rows.loc[swapped, OUTCOME] = rows.loc[swapped[::-1], OUTCOME].to_numpy()
    changed = build(real, results=rows)
    for weekend, moves in (("2024-canada", False), ("2024-spain", False), ("2024-austria", True), ("2024-italy", True)):
        assert inputs_of(changed, [weekend]).equals(inputs_of(real_features, [weekend])) != moves


def test_on_the_evening_before_a_race_its_features_are_what_they_are_today(real, real_features, build):
    later = from_race_on(real["calendar"], "2025-singapore")
    past = real["results"][~real["results"]["weekend"].isin(later)]
    sessions = {name: real[name][~real[name]["weekend"].isin(later - {"2025-singapore"})]
                for name in ("qualifying", "practice", "grid")}
    features = build(real, results=past, **sessions)
    pd.testing.assert_frame_equal(inputs_of(features, ["2025-singapore"]), inputs_of(real_features, ["2025-singapore"]),
                                  check_exact=True)


def test_features_know_nothing_of_random_results(real, build):
    results = shuffled_outcomes(real["results"], set(real["results"]["weekend"]))
    rows = with_targets(build(real, results=results), results)
    rows = rows[rows["started"]]
    for name in ("grid_place", "driver_finish_form", "mean_last3_finish", "points_place", "constructor_finish_form"):
        known = rows[rows[name].notna()]
        rho = [spearman(-race[name].to_numpy("float64"), race["official_order"].to_numpy("float64"))
               for _, race in known.groupby("weekend")]
        assert abs(np.nanmean(rho)) < 0.06  # four standard errors over 184 races


def test_row_order_and_selected_weekends_change_no_row(real, real_features, build):
    shuffled = {name: frame.sample(frac=1, random_state=3) for name, frame in real.items()}
    pd.testing.assert_frame_equal(build(shuffled), real_features, check_exact=True)
    selected = ["2024-monaco", "2026-spain"]
    assert build(real, weekends=selected).equals(
        real_features[real_features["weekend"].isin(selected)].reset_index(drop=True))
