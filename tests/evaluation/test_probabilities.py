"""Probabilities from simulated races are shares of a count, so rounding cannot make them exceed 1."""
import numpy as np
import pandas as pd
import pytest

from f1_pipelines.evaluation.probabilities import PROBABILITIES, position_probabilities
from f1_pipelines.models.plackett_luce import sample_places
from f1_pipelines.tables.ranking import CHANCE_COLUMNS

BOUNDS = {column.name: (column.minimum, np.inf if column.maximum is None else column.maximum)
          for column in CHANCE_COLUMNS}


def places_of(cars: int, draws: int) -> np.ndarray:
    return np.random.default_rng(cars).permuted(np.tile(np.arange(1, cars + 1), (draws, 1)), axis=1)


def check(table: pd.DataFrame, cars: int) -> None:
    for name in PROBABILITIES:
        assert table[name].dropna().between(*BOUNDS[name]).all(), name
    sums = table[["p_win", "p_podium", "p_points", "expected_position"]].sum()
    np.testing.assert_allclose(sums, [1, min(3, cars), min(10, cars), cars * (cars + 1) / 2], rtol=1e-12)


@pytest.mark.parametrize("cars", [2, 3, 10, 19, 20, 22])
@pytest.mark.parametrize("draws", [1, 3, 7, 49, 1000, 9999])
def test_probabilities_are_within_bounds_and_sum_up_for_any_number_of_draws(cars, draws):
    places, teams = places_of(cars, draws), pd.Series([f"team {car // 2}" for car in range(cars)])
    table = position_probabilities(places, teams)
    check(table, cars)
    assert table.groupby(teams)["p_beats_teammate"].sum(min_count=1).dropna().between(1 - 1e-12, 1 + 1e-12).all()
    rows = np.random.default_rng(0).permutation(cars)
    shuffled = position_probabilities(places[:, rows], teams.iloc[rows])
    pd.testing.assert_frame_equal(shuffled.sort_index(), table, check_exact=True)


@pytest.mark.parametrize("draws", [3, 7, 10, 49, 10_000])
def test_certain_events_have_probability_1(draws):
    order = np.tile(np.arange(1, 21), (draws, 1))
    table = position_probabilities(order, pd.Series(["a", "a", "b", "b"] * 5))
    assert table["p_win"].tolist() == [1.0] + [0.0] * 19
    assert table["p_podium"].sum() == 3.0 and table["p_points"].sum() == 10.0
    assert table["expected_position"].tolist() == list(range(1, 21))


@pytest.mark.parametrize("cars", [1, 2, 3, 11, 22])
def test_probabilities_of_uneven_and_equal_fields_are_within_bounds(cars):
    """Very different strengths give probabilities near rounding error; equal strengths give many small ones."""
    for spread in (0.0, 1e-12, 40.0, 800.0):
        strengths = np.linspace(0, -spread, cars)[:, None].repeat(4, axis=1)
        places = sample_places(strengths, np.full(cars, 0.1), 500, np.random.default_rng(0))
        assert (np.sort(places, axis=1) == np.arange(1, cars + 1)).all()
        check(position_probabilities(places, pd.Series([None] * cars, dtype=object)), cars)
