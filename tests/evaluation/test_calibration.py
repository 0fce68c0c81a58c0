import numpy as np
import pandas as pd
import pytest

from f1_pipelines.backtest.slices import by_slice, kinds_of_race
from f1_pipelines.evaluation.calibration import (
    LEAST_PROBABILITY,
    chance_metrics,
    expected_calibration_error,
    reliability,
)


def cars(p_win, p_podium, p_points, order, predictor="us", protocol="holdout_2025"):
    return pd.DataFrame({"p_win": p_win, "p_podium": p_podium, "p_points": p_points, "official_order": order,
                         "predictor": predictor, "protocol": protocol})


FOUR = cars([0.5, 0.25, 0.25, 0.0], [1.0, 0.75, 0.75, 0.5], [1.0] * 4, [2, 1, 3, 4])


def test_metrics_of_one_race_equal_a_calculation_by_hand():
    metrics = chance_metrics(FOUR)
    assert metrics["log_loss_win"] == pytest.approx(-np.log(0.25))
    assert metrics["brier_win"] == pytest.approx(0.5**2 + 0.75**2 + 0.25**2 + 0)
    assert metrics["brier_podium"] == pytest.approx((0 + 0.25**2 + 0.25**2 + 0.5**2) / 4)
    assert metrics["brier_points"] == 0


def test_correct_certainty_has_no_loss_and_a_winner_of_probability_0_a_finite_one():
    certain = cars([1.0, 0, 0, 0], [1.0, 1, 1, 0], [1.0] * 4, [1, 2, 3, 4])
    assert chance_metrics(certain) == {"log_loss_win": 0, "brier_win": 0, "brier_podium": 0, "brier_points": 0}
    wrong = certain.assign(official_order=[2, 1, 3, 4])
    assert chance_metrics(wrong)["log_loss_win"] == pytest.approx(-np.log(LEAST_PROBABILITY))


def test_each_car_is_in_one_bin_with_its_mean_and_frequency():
    table = reliability(FOUR).set_index(["event", "bin"])
    assert table.loc[("win", 1), ["n", "mean_probability", "frequency"]].tolist() == [1, 0, 0]
    assert table.loc[("win", 3), ["n", "mean_probability", "frequency"]].tolist() == [2, 0.25, 0.5]
    assert table.loc[("win", 6), ["n", "mean_probability", "frequency"]].tolist() == [1, 0.5, 0]
    assert table.loc[("points", 10), ["n", "mean_probability", "frequency"]].tolist() == [4, 1, 1]
    assert table.groupby("event")["n"].sum().eq(4).all()


@pytest.mark.parametrize("share", range(11))
def test_a_probability_on_an_edge_belongs_to_the_upper_bin(share):
    edge = share / 10
    table = reliability(cars([edge], [edge], [edge], [1]))
    assert table["bin"].eq(min(share, 9) + 1).all()


def test_the_calibration_error_is_the_mean_distance_over_cars():
    errors = expected_calibration_error(reliability(FOUR)).loc[("us", "holdout_2025")]
    assert errors["ece_win"] == pytest.approx((2 * 0.25 + 0.5) / 4)
    assert errors["ece_podium"] == pytest.approx((0 + 2 * 0.25 + 0.5) / 4)
    assert errors["ece_points"] == 0


def test_correct_probabilities_have_a_small_calibration_error():
    rng = np.random.default_rng(0)
    probability = rng.random(50_000)
    order = np.where(rng.random(50_000) < probability, 1, 11)
    errors = expected_calibration_error(reliability(cars(probability, probability, probability, order)))
    assert (errors < 0.01).all(axis=None)


def test_calibration_is_by_predictor():
    both = pd.concat([FOUR, FOUR.assign(predictor="them", p_win=[0.0, 1.0, 0.0, 0.0])])
    errors = expected_calibration_error(reliability(both))["ece_win"].droplevel("protocol")
    assert errors["them"] == 0 < errors["us"]


CALENDAR = pd.DataFrame({"weekend": ["2025-monaco", "2025-italy", "2025-nowhere"], "season": 2025,
                         "circuit": ["monaco", "monza", "atlantis"], "layout": ["monaco-6", "monza-7", "atlantis-1"]})


def test_races_are_classified_by_weather_circuit_and_season():
    laps = pd.DataFrame({"weekend": ["2025-monaco"] * 50 + ["2025-italy"] * 100,
                         "compound": ["SOFT"] * 48 + ["INTERMEDIATE"] * 2 + ["HARD"] * 99 + ["WET"]})
    kinds = kinds_of_race(CALENDAR, laps)
    assert kinds["weather"].tolist() == ["wet", "dry", "unknown"]
    assert kinds["circuit"].tolist() == ["street", "race", "unknown"]
    assert kinds["season"].eq("2025").all()
    no_compounds = kinds_of_race(CALENDAR, laps.assign(compound="UNKNOWN"))
    assert no_compounds["weather"].eq("unknown").all()


def test_slices_compare_within_the_same_races():
    races = pd.DataFrame([
        {"weekend": weekend, "predictor": predictor, "protocol": "holdout_2025", "population": population,
         "spearman": rho}
        for population, less in (("starters", 0.0), ("classified", 9.0))
        for predictor, values in (("grid", [0.5, 0.7, 0.1]), ("us", [0.6, 0.7, 0.4]))
        for weekend, rho in zip(CALENDAR["weekend"], np.array(values) - less, strict=True)])
    table = by_slice(races, kinds_of_race(CALENDAR, pd.DataFrame({"weekend": [], "compound": []})))
    us = table[table["predictor"] == "us"].set_index(["kind", "slice"])
    assert us.loc[("season", "2025"), "n_races"] == 3
    assert us.loc[("season", "2025"), "delta_spearman"] == pytest.approx(0.4 / 3)
    assert us.loc[("circuit", "street"), ["spearman", "delta_spearman", "delta_low", "delta_high"]].tolist() == \
        pytest.approx([0.6, 0.1, 0.1, 0.1])
    assert us.loc[("weather", "unknown"), "n_races"] == 3
    assert table[table["predictor"] == "grid"]["delta_spearman"].eq(0).all()
