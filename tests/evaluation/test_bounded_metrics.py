"""Metrics and their means stay within the bounds of their tables, for any row order and summation."""
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from f1_pipelines.backtest.protocols import summarise
from f1_pipelines.backtest.slices import by_slice
from f1_pipelines.evaluation.calibration import chance_metrics, expected_calibration_error, reliability
from f1_pipelines.evaluation.metrics import METRICS, race_metrics
from f1_pipelines.tables.evaluation import CALIBRATION, EVALUATION, EVALUATION_SLICES
from f1_pipelines.tables.schema import InvalidRows

FIELDS = (2, 3, 10, 19, 20, 22)
ROW_ORDERS = 200
BOUNDS = {column.name: (column.minimum, np.inf if column.maximum is None else column.maximum)
          for column in EVALUATION.columns if column.name in METRICS}
PERFECT = {"spearman": 1.0, "kendall": 1.0, "ndcg10": 1.0, "mae_positions": 0.0, "top1": 1.0, "podium_overlap": 1.0}
TIES = {
    "all": lambda place: 0 * place, "pairs": lambda place: -(place // 2), "threes": lambda place: -((place - 1) // 3),
    "behind_the_winner": lambda place: -(place > 1).astype(float), "last_two": lambda place: -np.minimum(place, 18),
    "shuffled_pairs": lambda place: (place * 7 % 11) // 2,
}


def over_row_orders(scores: np.ndarray, order: np.ndarray) -> dict[str, float]:
    """Return the metrics of one race after checking that they are within bounds and equal for 200 row orders."""
    rng = np.random.default_rng(len(order))
    values = race_metrics(scores, order)
    for _ in range(ROW_ORDERS):
        rows = rng.permutation(len(order))
        assert race_metrics(scores[rows], order[rows]) == values
    for name, value in values.items():
        low, high = BOUNDS[name]
        assert low <= value <= high, name
    return values


@pytest.mark.parametrize("cars", FIELDS)
def test_a_perfect_order_and_its_reverse_have_exact_metrics(cars):
    order = np.arange(1, cars + 1)
    assert over_row_orders(-order.astype(float), order) == PERFECT
    assert over_row_orders(1.0 / order, order) == PERFECT
    worst = over_row_orders(order.astype(float), order)
    assert (worst["spearman"], worst["kendall"], worst["top1"]) == (-1.0, -1.0, 0.0)
    assert worst["mae_positions"] == pytest.approx((cars**2 // 2) / cars, abs=1e-12)
    assert worst["podium_overlap"] == pytest.approx(max(6 - cars, 0) / 3 if cars > 2 else 1.0, abs=1e-12)
    if cars >= 20:
        assert worst["ndcg10"] == 0.0


@pytest.mark.parametrize("cars", FIELDS)
@pytest.mark.parametrize("tie", TIES)
def test_metrics_of_tied_scores_are_within_bounds(cars, tie):
    place = np.arange(1, cars + 1)
    values = over_row_orders(TIES[tie](place), place)
    if tie == "all":
        assert (values["spearman"], values["kendall"]) == (0.0, 0.0)
        assert values["top1"] == pytest.approx(1 / cars, abs=1e-15)
    if tie == "threes":  # the podium has the right three cars, in any order
        assert values["podium_overlap"] == 1.0


@given(st.lists(st.integers(0, 6), min_size=2, max_size=26), st.randoms(use_true_random=False))
@settings(max_examples=150, deadline=None)
def test_metrics_of_any_scores_are_within_bounds(scores, random):
    scores, order = np.array(scores, dtype=float), np.arange(1, len(scores) + 1)
    values = race_metrics(scores, order)
    assert all(BOUNDS[name][0] <= value <= BOUNDS[name][1] for name, value in values.items())
    rows = random.sample(range(len(order)), len(order))
    assert race_metrics(scores[rows], order[rows]) == values


@pytest.mark.parametrize("races", [1, 2, 3, 7, 10, 24, 42, 49, 152, 187])
def test_means_of_perfect_races_are_perfect(races):
    per_race = pd.DataFrame([
        {"weekend": f"2025-{race}", "season": 2025, "protocol": "holdout_2025", "population": "starters",
         "predictor": predictor, **PERFECT}
        for race in range(races) for predictor in ("grid", "ours")])
    means = summarise(per_race, draws=10)
    for name, value in PERFECT.items():
        assert means[name].tolist() == [value, value]
    kinds = pd.DataFrame({"season": "2025"}, index=per_race["weekend"].unique())
    slices = by_slice(per_race, kinds).assign(data_version="sample-1")
    assert EVALUATION_SLICES.conform(slices)["spearman"].tolist() == [1.0, 1.0]


def certain(cars: int, probability: float = 1.0, happens: bool = True) -> pd.DataFrame:
    """Rows of cars whose events are all certain, and happen to all of them or to none."""
    return pd.DataFrame({"predictor": "ours", "protocol": "holdout_2025", "p_win": probability,
                         "p_podium": probability, "p_points": probability,
                         "official_order": np.full(cars, 1 if happens else 99)})


@pytest.mark.parametrize("cars", [1, 3, 6, 7, 9, 10, 20, 42, 49, 440, 3553])
def test_the_calibration_error_of_certain_events_is_exactly_0_or_1(cars):
    for happens, error in ((True, 0.0), (False, 1.0)):
        table = CALIBRATION.conform(reliability(certain(cars, happens=happens)).assign(data_version="sample-1"))
        assert table["mean_probability"].eq(1.0).all()
        assert expected_calibration_error(table).eq(error).all(axis=None)


def test_a_probability_above_1_by_rounding_counts_as_1_and_a_larger_one_is_refused():
    rounded = certain(20, 1.0000000000000002)
    assert CALIBRATION.conform(reliability(rounded).assign(data_version="x"))["mean_probability"].eq(1.0).all()
    race = rounded.assign(official_order=np.arange(1, 21))
    metrics = chance_metrics(race)
    assert metrics["log_loss_win"] == 0.0
    assert metrics == chance_metrics(race.assign(p_win=1.0, p_podium=1.0, p_points=1.0))
    with pytest.raises(InvalidRows, match="mean_probability: wanted 0 to 1"):
        CALIBRATION.conform(reliability(certain(20, 1.01)).assign(data_version="x"))


@pytest.mark.parametrize("cars", FIELDS)
def test_metrics_of_probabilities_do_not_depend_on_row_order(cars):
    rng = np.random.default_rng(cars)
    race = pd.DataFrame({name: rng.random(cars) for name in ("p_win", "p_podium", "p_points")}).assign(
        official_order=rng.permutation(cars) + 1)
    metrics = chance_metrics(race)
    assert all(chance_metrics(race.sample(frac=1, random_state=n)) == metrics for n in range(50))


def test_calibration_does_not_depend_on_row_order():
    rng = np.random.default_rng(0)
    cars = certain(440).assign(p_win=rng.random(440), p_podium=rng.random(440), official_order=rng.integers(1, 21, 440))
    table = reliability(cars)
    errors = expected_calibration_error(table)
    for n in range(50):
        shuffled = reliability(cars.sample(frac=1, random_state=n))
        np.testing.assert_allclose(shuffled["mean_probability"], table["mean_probability"], rtol=0, atol=1e-12)
        np.testing.assert_allclose(expected_calibration_error(shuffled), errors, rtol=0, atol=1e-12)
