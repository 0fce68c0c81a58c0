"""Orders of replays are compared exactly: no BLAS, no rounding past 1."""
import numpy as np
import pytest

from f1_pipelines.calibration.scores import order_scores


@pytest.mark.parametrize("cars", [2, 3, 5, 10, 17, 20, 24])
def test_the_real_order_is_exactly_one_however_the_rows_lie(cars):
    rng = np.random.default_rng(cars)
    for _ in range(200):
        finish = rng.permutation(cars) + 1.0
        assert order_scores(finish * 1.7, finish) == {"spearman": 1.0, "places_off": 0.0, "winner_right": 1.0}
        assert order_scores(-finish, finish)["spearman"] == -1.0


def test_a_replay_without_an_order_says_nothing_and_an_unknown_place_stays_unknown():
    finish = np.arange(1.0, 6.0)
    assert order_scores(np.zeros(5), finish)["spearman"] == 0.0
    assert np.isnan(order_scores(np.array([1.0, np.nan, 3, 4, 5]), finish)["spearman"])
    assert np.isnan(order_scores(np.array([1.0]), np.array([1.0]))["spearman"])
