import itertools

import numpy as np
import pytest
from scipy.stats import kendalltau, spearmanr

from f1_pipelines.evaluation.bootstrap import mean_interval
from f1_pipelines.evaluation.metrics import GAINS, METRICS, kendall, mae_positions, race_metrics, spearman

ORDER = np.arange(1, 21)
CHANCE = {"spearman": 0, "kendall": 0, "mae_positions": (20 ** 2 - 1) / (3 * 20), "top1": 1 / 20,
          "podium_overlap": 3 / 20}


def test_the_official_order_has_the_best_metrics_and_its_reverse_the_worst():
    assert race_metrics(-ORDER, ORDER) == pytest.approx(
        {"spearman": 1, "kendall": 1, "ndcg10": 1, "mae_positions": 0, "top1": 1, "podium_overlap": 1})
    worst = race_metrics(ORDER, ORDER)
    assert worst["spearman"] == worst["kendall"] == pytest.approx(-1)
    assert worst["top1"] == worst["podium_overlap"] == worst["ndcg10"] == 0
    assert worst["mae_positions"] == 10


@pytest.mark.parametrize("order", [ORDER, ORDER[::-1]])
def test_a_constant_score_is_chance_however_the_rows_lie(order):
    tied = race_metrics(np.zeros(20), order)
    assert {name: tied[name] for name in CHANCE} == pytest.approx(CHANCE)
    rng = np.random.default_rng(0)
    shuffled = np.mean([METRICS["ndcg10"](rng.permutation(20), order) for _ in range(3000)])
    assert tied["ndcg10"] == pytest.approx(shuffled, abs=0.01)


@pytest.mark.parametrize("name", ["ndcg10", "mae_positions", "top1", "podium_overlap"])
def test_a_tie_scores_the_mean_over_all_ways_to_break_it(name):
    scores, order = np.array([3.0, 2, 2, 2, 1, 1]), np.array([2, 1, 3, 6, 4, 5])
    broken = [METRICS[name](np.array([10, *ahead, *behind]), order)
              for ahead in itertools.permutations([7, 8, 9]) for behind in itertools.permutations([1, 2])]
    assert METRICS[name](scores, order) == pytest.approx(np.mean(broken))


def test_correlations_equal_those_of_scipy():
    rng = np.random.default_rng(1)
    for _ in range(20):
        scores, order = rng.integers(0, 8, 19), rng.permutation(19) + 1
        assert spearman(scores, order) == pytest.approx(spearmanr(-scores, order).statistic)
        assert kendall(scores, order) == pytest.approx(kendalltau(-scores, order).statistic)


def test_ndcg_gains_are_the_points_of_the_first_ten():
    assert GAINS.tolist() == [25, 18, 15, 12, 10, 8, 6, 4, 2, 1]
    swapped = np.array([2, 1, *range(3, 21)])
    ideal = (GAINS / np.log2(np.arange(10) + 2)).sum()
    lost = (25 - 18) * (1 - 1 / np.log2(3))
    assert METRICS["ndcg10"](-swapped, ORDER) == pytest.approx(1 - lost / ideal)


@pytest.mark.parametrize("cars", [2, 3, 9, 19, 22])
def test_the_official_order_is_perfect_for_any_field_size(cars):
    order = np.arange(1, cars + 1)
    assert race_metrics(-order, order)["ndcg10"] == pytest.approx(1)
    assert race_metrics(-order, order)["podium_overlap"] == 1


def test_one_car_has_no_order():
    assert np.isnan(list(race_metrics([1.0], [1]).values())).all()


def test_orders_with_gaps_are_ranked():
    assert mae_positions([9, 8, 7], [1, 3, 7]) == 0


def test_missing_scores_and_shared_places_are_refused():
    with pytest.raises(ValueError, match="1 scores and 0 places of 2 cars are NaN"):
        spearman([1, np.nan], [1, 2])
    with pytest.raises(ValueError, match="one score per car"):
        spearman([1, 2, 3], [1, 2])
    with pytest.raises(ValueError, match="share a place"):
        mae_positions([1, 2], [1, 1])


def test_the_interval_contains_the_mean_and_is_reproducible():
    values = np.random.default_rng(2).normal(0.02, 0.09, 150)
    low, high = mean_interval(values)
    assert low < values.mean() < high
    assert high - low == pytest.approx(2 * 1.96 * values.std() / np.sqrt(150), rel=0.05)
    assert mean_interval(values) == (low, high)
    assert mean_interval(values, seed=1) != (low, high)
    assert mean_interval([*values, np.nan]) == (low, high)
    assert np.isnan(mean_interval([])).all()
