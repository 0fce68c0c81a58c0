"""Scores of orders are exact: no BLAS, no rounding above 1."""
import numpy as np
import pytest

from f1_pipelines.calibration.scores import order_scores


@pytest.mark.parametrize("cars", [2, 3, 5, 10, 17, 20, 24])
def test_the_real_order_scores_exactly_1_in_any_row_order(cars):
    rng = np.random.default_rng(cars)
    for _ in range(200):
        finish = rng.permutation(cars) + 1.0
        assert order_scores(finish * 1.7, finish) == {"spearman": 1.0, "places_off": 0.0, "winner_right": 1.0}
        assert order_scores(-finish, finish)["spearman"] == -1.0


def test_tied_places_score_0_and_an_unknown_place_gives_nan():
    finish = np.arange(1.0, 6.0)
    assert order_scores(np.zeros(5), finish)["spearman"] == 0.0
    assert np.isnan(order_scores(np.array([1.0, np.nan, 3, 4, 5]), finish)["spearman"])
    assert np.isnan(order_scores(np.array([1.0]), np.array([1.0]))["spearman"])
