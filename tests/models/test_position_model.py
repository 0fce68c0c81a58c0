import itertools
import math

import numpy as np
import pandas as pd
import pytest

from f1_pipelines.backtest.predictors import GridLogit, draw
from f1_pipelines.evaluation.probabilities import position_probabilities
from f1_pipelines.evaluation.targets import with_targets
from f1_pipelines.features.ranking import as_known_at
from f1_pipelines.models.plackett_luce import HEADS, fit_heads, fit_stops, sample_places
from f1_pipelines.models.position_model import GRID_INPUTS, fit_position_model, race_inputs
from f1_pipelines.tables.features import STAGES


def log_likelihood(strengths, classified=None):
    """Log likelihood of the rows' order: all cars compete for the win, then the classified ones."""
    total = 0.0
    for place in range(len(strengths) if classified is None else classified):
        head = sum(place >= last for last in HEADS)
        remaining = strengths[place:classified if place else None, head]
        total += remaining[0] - np.log(np.exp(remaining).sum())
    return total


def order_probability(strengths, stops, order):
    """Probability of one order, summed over the numbers of retired cars at its end."""
    order, chance = list(order), 0.0
    for classified in range(1, len(order) + 1):
        finished, stopped = order[1:classified], order[classified:]
        chance += (np.exp(log_likelihood(strengths[order], classified)) * np.prod(1 - stops[finished])
                   * np.prod(stops[stopped]) / math.factorial(len(stopped)))
    return chance


def test_sampled_orders_have_the_frequencies_of_the_model():
    rng = np.random.default_rng(0)
    strengths, stops = rng.normal(size=(4, 4)), rng.uniform(0.1, 0.6, size=4)
    orders = list(itertools.permutations(range(4)))
    chance = [order_probability(strengths, stops, order) for order in orders]
    assert sum(chance) == pytest.approx(1)
    places = sample_places(strengths, stops, 40_000, np.random.default_rng(1))
    drawn = [(places[:, list(order)] == [1, 2, 3, 4]).all(axis=1).mean() for order in orders]
    assert drawn == pytest.approx(chance, abs=0.01)


@pytest.mark.parametrize("cars", range(1, 27))
def test_samples_of_any_field_size_are_permutations_and_probabilities_add_up(cars):
    rng = np.random.default_rng(cars)
    places = sample_places(rng.normal(size=(cars, 4)), rng.random(cars), 300, np.random.default_rng(0))
    assert (np.sort(places, axis=1) == np.arange(1, cars + 1)).all()
    probabilities = position_probabilities(places, pd.Series([f"team-{car // 2}" for car in range(cars)]))
    assert probabilities["p_win"].sum() == pytest.approx(1)
    assert probabilities["p_podium"].sum() == pytest.approx(min(cars, 3))
    assert probabilities["p_points"].sum() == pytest.approx(min(cars, 10))
    assert probabilities["expected_position"].sum() == pytest.approx(cars * (cars + 1) / 2)
    assert (probabilities["p_win"] <= probabilities["p_podium"]).all()
    assert (probabilities["p_podium"] <= probabilities["p_points"]).all()


def test_win_frequencies_match_win_probabilities_to_within_one_draw():
    strengths = np.random.default_rng(2).normal(scale=2, size=(20, 4))
    exact = np.exp(strengths[:, 0]) / np.exp(strengths[:, 0]).sum()
    won = (sample_places(strengths, np.full(20, 0.3), 10_000, np.random.default_rng(0)) == 1).mean(axis=0)
    assert won == pytest.approx(exact, abs=1e-4)


def test_a_strength_far_above_all_others_always_wins_without_overflow():
    strengths = np.zeros((5, 4))
    strengths[3] = 800.0
    assert (sample_places(strengths, np.full(5, 0.3), 50, np.random.default_rng(0))[:, 3] == 1).all()


def test_retired_cars_finish_last_and_limit_the_chance_of_points():
    strengths, stops = np.zeros((20, 4)), np.full(20, 0.2)
    strengths[0, 1:] = 70.0  # wins no more often than others, but passes all cars behind the winner
    stops[1] = 1.0
    places = sample_places(strengths, stops, 20_000, np.random.default_rng(0))
    assert (places[:, 0] <= 10).mean() == pytest.approx(1 - 0.95 * 0.2, abs=0.02)
    assert set(places[places[:, 0] > 2, 0]) <= set(range(8, 21)), "below second place only when retired"
    assert places[places[:, 1] > 1, 1].min() > 2 and (places[:, 1] <= 10).mean() < 0.1


def test_team_mates_are_the_cars_of_the_same_team_in_this_race():
    places = np.array([[1, 2, 3, 4, 5, 6], [2, 1, 6, 5, 4, 3]])
    teams = pd.Series(["a", "a", "b", "c", "c", "c"], index=list("uvwxyz"))
    beats_teammate = position_probabilities(places, teams)["p_beats_teammate"]
    assert beats_teammate[["u", "v"]].tolist() == [0.5, 0.5]
    assert np.isnan(beats_teammate["w"]), "alone in its team"
    assert beats_teammate[["x", "y", "z"]].tolist() == [0.5, 0.0, 0.5], "of three: the chance to beat both others"
    assert np.isnan(position_probabilities(places, pd.Series([None] * 6))["p_beats_teammate"]).all()


def test_the_fit_recovers_the_true_weights_and_is_a_local_maximum():
    rng, truth = np.random.default_rng(3), np.array([[2.0, 1.0, 0.5, 0.2], [0.0, -0.5, 0.3, 0.0]])
    races, classified = [], []
    for cars in rng.integers(2, 22, size=400):
        x = rng.normal(size=(cars, 2))
        stopped = (rng.random(cars) < 1 / (1 + np.exp(1.5 + x[:, 0]))).astype(float)
        order = sample_places(x @ truth, stopped, 1, rng)[0].argsort()
        races.append(x[order])
        classified.append(1 + int((1 - stopped[order[1:]]).sum()))
    weights = fit_heads(races, classified, prior=0.3)
    assert weights == pytest.approx(truth, abs=0.25)
    assert fit_stops(races, classified, prior=0.3) == pytest.approx([-1.5, -1.0], abs=0.15)

    def posterior(w):
        mean = w.sum(axis=1, keepdims=True) / (len(HEADS) + 2)  # best split into mean and deviations
        return sum(log_likelihood(race @ w, n) for race, n in zip(races, classified, strict=True)) - 0.3 * (
            (mean**2).sum() + ((w - mean) ** 2).sum())

    for _ in range(5):
        assert posterior(weights) > posterior(weights + rng.normal(scale=0.02, size=weights.shape))


def test_a_fit_on_few_races_gives_no_certainty():
    races = [np.array([[1.0], [0.0], [-1.0]])] * 3  # always in the order of the input
    weights = fit_heads(races, [3] * 3, prior=0.3)
    assert 0.5 < weights[0, 0] < 5
    level, _ = fit_stops(races, [3] * 3, prior=0.3)
    assert -5 < level < -0.5, "even though no car retired"


@pytest.fixture(scope="module")
def grid_season(real, real_features):
    rows = with_targets(real_features[real_features["season"] == 2024], real["results"])
    return rows[rows["started"]].reset_index(drop=True)


@pytest.fixture(scope="module")
def position_model(grid_season):
    known = {stage: as_known_at(grid_season, stage) for stage in STAGES}
    scores = {stage: -rows["driver_finish_form"].astype("float64").fillna(0.5).to_numpy()
              for stage, rows in known.items()}
    return fit_position_model(known, scores)


@pytest.mark.parametrize("stage", STAGES[:3])
def test_an_earlier_stage_ignores_later_data(position_model, grid_season, stage):
    race = grid_season[grid_season["weekend"] == "2024-monaco"]
    changed = race.copy()
    later = {"entry": ["practice_place", "practice_gap_pct"], "practice": ["qualifying_position"], "qualifying": []}
    for name in ["grid_position", "grid_place", *later[stage]]:
        changed[name] = changed[name].array[::-1]
    expected, places = (draw(position_model, as_known_at(rows, stage), np.arange(len(race), dtype=float), "x")
                        for rows in (race, changed))
    assert (expected == places).all()


def test_win_probabilities_are_less_certain_at_an_earlier_stage(position_model, grid_season):
    def sharpness(stage):
        rows = as_known_at(grid_season, stage)
        score = -rows["driver_finish_form"].astype("float64").fillna(0.5)
        return np.mean([(draw(position_model, race, score[race.index].to_numpy(), "x") == 1).mean(axis=0).max()
                        for _, race in rows.groupby("weekend")])

    assert sharpness("entry") < sharpness("grid")


def test_samples_are_reproducible_and_independent_of_the_order_of_rows(position_model, grid_season):
    race = grid_season[grid_season["weekend"] == "2024-monaco"]
    scores = np.linspace(1, -1, len(race))
    first = draw(position_model, race, scores, "a")
    assert (draw(position_model, race, scores, "a") == first).all()
    assert (draw(position_model, race, scores, "b") != first).any()
    reverse = position_model.of(race.iloc[::-1], scores[::-1])
    for expected, values in zip(position_model.of(race, scores), reverse, strict=True):
        assert values[::-1] == pytest.approx(expected)


def test_inputs_are_zero_for_equal_cars_and_unknown_values(grid_season):
    race = grid_season[grid_season["weekend"] == "2024-monaco"].copy()
    race["grid_position"], race["driver_finish_form"] = 1.0, 0.5
    assert race_inputs(race, np.zeros(len(race))) == pytest.approx(0)
    race["grid_position"] = race["qualifying_position"] = race["practice_gap_pct"] = race["driver_finish_form"] = np.nan
    assert race_inputs(race, np.zeros(len(race))) == pytest.approx(0)
    single_car = race.iloc[:1]
    assert race_inputs(single_car, np.array([5.0])) == pytest.approx(0)


def test_a_stage_that_was_not_fitted_is_refused(grid_season):
    rows = as_known_at(grid_season, "entry")
    only_grid = fit_position_model({"grid": grid_season}, {"grid": np.zeros(len(grid_season))}, GRID_INPUTS)
    with pytest.raises(ValueError, match="fitted for grid, not for entry"):
        only_grid.of(rows[rows["weekend"] == "2024-monaco"], np.zeros(20))


def test_the_grid_baseline_favours_pole(grid_season):
    predictor = GridLogit()
    predictor.fit(grid_season)
    race = grid_season[grid_season["weekend"] == "2024-monaco"]
    won = (predictor.drawn(race) == 1).mean(axis=0)
    assert won.argmax() == race["grid_position"].to_numpy("float64").argmin() == predictor.scores(race).argmax()
