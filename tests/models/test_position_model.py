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
    """Of the places from the front in the order of the rows, among all for the win, then among the classified."""
    total = 0.0
    for place in range(len(strengths) if classified is None else classified):
        head = sum(place >= last for last in HEADS)
        left = strengths[place:classified if place else None, head]
        total += left[0] - np.log(np.exp(left).sum())
    return total


def by_hand(strengths, stops, order):
    """Probability of one order, whoever of its last cars stopped."""
    order, chance = list(order), 0.0
    for classified in range(1, len(order) + 1):
        going, stopped = order[1:classified], order[classified:]
        chance += (np.exp(log_likelihood(strengths[order], classified)) * np.prod(1 - stops[going])
                   * np.prod(stops[stopped]) / math.factorial(len(stopped)))
    return chance


def test_orders_are_drawn_as_often_as_their_likelihood_says():
    rng = np.random.default_rng(0)
    strengths, stops = rng.normal(size=(4, 4)), rng.uniform(0.1, 0.6, size=4)
    orders = list(itertools.permutations(range(4)))
    chance = [by_hand(strengths, stops, order) for order in orders]
    assert sum(chance) == pytest.approx(1)
    places = sample_places(strengths, stops, 40_000, np.random.default_rng(1))
    drawn = [(places[:, list(order)] == [1, 2, 3, 4]).all(axis=1).mean() for order in orders]
    assert drawn == pytest.approx(chance, abs=0.01)


@pytest.mark.parametrize("cars", range(1, 27))
def test_a_field_of_any_size_is_drawn_as_permutations_whose_chances_add_up(cars):
    rng = np.random.default_rng(cars)
    places = sample_places(rng.normal(size=(cars, 4)), rng.random(cars), 300, np.random.default_rng(0))
    assert (np.sort(places, axis=1) == np.arange(1, cars + 1)).all()
    told = position_probabilities(places, pd.Series([f"team-{car // 2}" for car in range(cars)]))
    assert told["p_win"].sum() == pytest.approx(1)
    assert told["p_podium"].sum() == pytest.approx(min(cars, 3))
    assert told["p_points"].sum() == pytest.approx(min(cars, 10))
    assert told["expected_position"].sum() == pytest.approx(cars * (cars + 1) / 2)
    assert (told["p_win"] <= told["p_podium"]).all() and (told["p_podium"] <= told["p_points"]).all()


def test_a_winner_is_drawn_as_often_as_he_should_to_within_one_draw():
    strengths = np.random.default_rng(2).normal(scale=2, size=(20, 4))
    exact = np.exp(strengths[:, 0]) / np.exp(strengths[:, 0]).sum()
    won = (sample_places(strengths, np.full(20, 0.3), 10_000, np.random.default_rng(0)) == 1).mean(axis=0)
    assert won == pytest.approx(exact, abs=1e-4)


def test_a_strength_far_above_all_others_wins_always_and_is_a_number():
    strengths = np.zeros((5, 4))
    strengths[3] = 800.0
    assert (sample_places(strengths, np.full(5, 0.3), 50, np.random.default_rng(0))[:, 3] == 1).all()


def test_who_stops_is_behind_all_that_go_on_and_no_car_is_surer_of_points_than_of_going_on():
    strengths, stops = np.zeros((20, 4)), np.full(20, 0.2)
    strengths[0, 1:] = 70.0  # does not win more often than others, but passes everybody behind the winner
    stops[1] = 1.0
    places = sample_places(strengths, stops, 20_000, np.random.default_rng(0))
    assert (places[:, 0] <= 10).mean() == pytest.approx(1 - 0.95 * 0.2, abs=0.02)
    assert set(places[places[:, 0] > 2, 0]) <= set(range(8, 21)), "stopped, so no place that it fought for"
    assert places[places[:, 1] > 1, 1].min() > 2 and (places[:, 1] <= 10).mean() < 0.1


def test_team_mates_are_those_of_this_race():
    places = np.array([[1, 2, 3, 4, 5, 6], [2, 1, 6, 5, 4, 3]])
    teams = pd.Series(["a", "a", "b", "c", "c", "c"], index=list("uvwxyz"))
    told = position_probabilities(places, teams)["p_beats_teammate"]
    assert told[["u", "v"]].tolist() == [0.5, 0.5]
    assert np.isnan(told["w"]), "alone in its team"
    assert told[["x", "y", "z"]].tolist() == [0.5, 0.0, 0.5], "of three the chance to be the first of them"
    assert np.isnan(position_probabilities(places, pd.Series([None] * 6))["p_beats_teammate"]).all()


def test_the_fit_finds_the_weights_that_drew_the_races_and_no_better_ones_are_near():
    rng, truth = np.random.default_rng(3), np.array([[2.0, 1.0, 0.5, 0.2], [0.0, -0.5, 0.3, 0.0]])
    races, classified = [], []
    for cars in rng.integers(2, 22, size=400):
        x = rng.normal(size=(cars, 2))
        stopped = (rng.random(cars) < 1 / (1 + np.exp(1.5 + x[:, 0]))).astype(float)
        order = sample_places(x @ truth, stopped, 1, rng)[0].argsort()
        races.append(x[order])
        classified.append(1 + int((1 - stopped[order[1:]]).sum()))
    found = fit_heads(races, classified, prior=0.3)
    assert found == pytest.approx(truth, abs=0.25)
    assert fit_stops(races, classified, prior=0.3) == pytest.approx([-1.5, -1.0], abs=0.15)

    def posterior(weights):
        mean = weights.sum(axis=1, keepdims=True) / (len(HEADS) + 2)  # best split of mean and own parts
        return sum(log_likelihood(race @ weights, n) for race, n in zip(races, classified, strict=True)) - 0.3 * (
            (mean**2).sum() + ((weights - mean) ** 2).sum())

    for _ in range(5):
        assert posterior(found) > posterior(found + rng.normal(scale=0.02, size=found.shape))


def test_a_first_season_does_not_end_in_certainty():
    races = [np.array([[1.0], [0.0], [-1.0]])] * 3  # always in the order of the input
    found = fit_heads(races, [3] * 3, prior=0.3)
    assert 0.5 < found[0, 0] < 5
    level, _ = fit_stops(races, [3] * 3, prior=0.3)
    assert -5 < level < -0.5, "that nobody stopped"


@pytest.fixture(scope="module")
def grid_season(real, real_features):
    rows = with_targets(real_features[real_features["season"] == 2024], real["results"])
    return rows[rows["started"]].reset_index(drop=True)


@pytest.fixture(scope="module")
def places(grid_season):
    known = {stage: as_known_at(grid_season, stage) for stage in STAGES}
    scores = {stage: -rows["driver_finish_form"].astype("float64").fillna(0.5).to_numpy()
              for stage, rows in known.items()}
    return fit_position_model(known, scores)


@pytest.mark.parametrize("stage", STAGES[:3])
def test_an_earlier_stage_knows_nothing_of_what_came_later(places, grid_season, stage):
    race = grid_season[grid_season["weekend"] == "2024-monaco"]
    changed = race.copy()
    later = {"entry": ["practice_place", "practice_gap_pct"], "practice": ["qualifying_position"], "qualifying": []}
    for name in ["grid_position", "grid_place", *later[stage]]:
        changed[name] = changed[name].array[::-1]
    seen = [draw(places, as_known_at(rows, stage), np.arange(len(race), dtype=float), "x") for rows in (race, changed)]
    assert (seen[0] == seen[1]).all()


def test_the_less_is_known_the_less_sure_the_win(places, grid_season):
    def sharpness(stage):
        rows = as_known_at(grid_season, stage)
        score = -rows["driver_finish_form"].astype("float64").fillna(0.5)
        return np.mean([(draw(places, race, score[race.index].to_numpy(), "x") == 1).mean(axis=0).max()
                        for _, race in rows.groupby("weekend")])

    assert sharpness("entry") < sharpness("grid")


def test_the_same_names_draw_the_same_and_the_order_of_rows_is_nothing(places, grid_season):
    race = grid_season[grid_season["weekend"] == "2024-monaco"]
    scores = np.linspace(1, -1, len(race))
    first = draw(places, race, scores, "a")
    assert (draw(places, race, scores, "a") == first).all()
    assert (draw(places, race, scores, "b") != first).any()
    for told, backwards in zip(places.of(race, scores), places.of(race.iloc[::-1], scores[::-1]), strict=True):
        assert backwards[::-1] == pytest.approx(told)


def test_equal_cars_have_equal_inputs_and_unknown_is_the_middle(grid_season):
    race = grid_season[grid_season["weekend"] == "2024-monaco"].copy()
    race["grid_position"], race["driver_finish_form"] = 1.0, 0.5
    assert race_inputs(race, np.zeros(len(race))) == pytest.approx(0)
    race["grid_position"] = race["qualifying_position"] = race["practice_gap_pct"] = race["driver_finish_form"] = np.nan
    assert race_inputs(race, np.zeros(len(race))) == pytest.approx(0)
    one = race.iloc[:1]
    assert race_inputs(one, np.array([5.0])) == pytest.approx(0)


def test_a_stage_that_was_not_fitted_is_refused(grid_season):
    rows = as_known_at(grid_season, "entry")
    only_grid = fit_position_model({"grid": grid_season}, {"grid": np.zeros(len(grid_season))}, GRID_INPUTS)
    with pytest.raises(ValueError, match="fitted for grid, not for entry"):
        only_grid.of(rows[rows["weekend"] == "2024-monaco"], np.zeros(20))


def test_the_grid_alone_favours_pole(grid_season):
    predictor = GridLogit()
    predictor.fit(grid_season)
    race = grid_season[grid_season["weekend"] == "2024-monaco"]
    won = (predictor.drawn(race) == 1).mean(axis=0)
    assert won.argmax() == race["grid_position"].to_numpy("float64").argmin() == predictor.scores(race).argmax()
