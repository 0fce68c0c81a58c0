"""Training learns a planted signal, is reproducible, and uses only the chosen rows."""
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import save

from f1_pipelines.backtest.predictors import TrainedPredictor, champion, f1net_reference
from f1_pipelines.evaluation.metrics import spearman
from f1_pipelines.models.config import F1NET, RANKER
from f1_pipelines.models.training import train

QUICK = {"champion": replace(RANKER, epochs=60, lr=0.03, seasons=None),
         "f1net_reference": replace(F1NET, epochs=40, lr=3e-3, seasons=None)}


@pytest.fixture(params=list(QUICK))
def config(request):
    return QUICK[request.param]


def mean_spearman(scores: np.ndarray, races: pd.DataFrame) -> float:
    scored = races.assign(score=scores)
    return float(np.mean([spearman(race["score"], race["official_order"].astype("float64"))
                          for _, race in scored.groupby("weekend")]))


def test_a_planted_signal_is_learnt_and_predicts_new_races(config, seasons, planted):
    unseen = planted({2025: 20}, seed=9)
    trained, history = train(seasons, config)
    assert mean_spearman(trained.scores(unseen), unseen) > 0.75
    assert mean_spearman(np.random.default_rng(0).random(len(unseen)), unseen) < 0.15
    assert history[-1]["loss"] < history[0]["loss"] * 0.8
    assert len(history) == config.epochs


def test_pure_noise_is_not_learnt(config, seasons, planted):
    rng = np.random.default_rng(5)
    noise = planted({2022: 12}, seed=2)
    noise["official_order"] = noise.groupby("weekend")["driver"].transform(lambda cars: rng.permutation(len(cars)) + 1)
    unseen = planted({2025: 20}, seed=9)
    trained, _ = train(noise, replace(config, epochs=20))
    assert abs(mean_spearman(trained.scores(unseen), unseen)) < 0.5


def test_training_is_reproducible_to_the_byte_and_depends_on_the_seed(config, seasons):
    config = replace(config, epochs=5)
    torch.manual_seed(99)
    first = save(train(seasons, config)[0].model.state_dict())
    state = torch.get_rng_state()
    second = save(train(seasons.sample(frac=1, random_state=1), config)[0].model.state_dict())
    assert first == second
    assert save(train(seasons, replace(config, seed=1))[0].model.state_dict()) != first
    assert torch.equal(torch.get_rng_state(), state), "the caller's random state changed"


def test_the_callers_number_of_threads_does_not_change_the_bytes(config, seasons):
    before, config = torch.get_num_threads(), replace(config, epochs=2)
    results = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        try:
            results.append(save(train(seasons, config)[0].model.state_dict()))
            assert torch.get_num_threads() == threads
        finally:
            torch.set_num_threads(before)
    assert results[0] == results[1]


def test_only_the_asked_seasons_and_the_starters_are_learnt_from(config, seasons):
    config = replace(config, epochs=2, seasons=(2022, 2023))
    starters = seasons[seasons["driver"] != "driver-05"]
    expected = save(train(starters, config)[0].model.state_dict())
    later = seasons.copy()
    later.loc[later["season"] == 2024, "official_order"] = 1
    later.loc[later["driver"] == "driver-05", "started"] = False
    trained, _ = train(later, config)
    assert save(trained.model.state_dict()) == expected
    assert (trained.seasons, trained.trained_from, trained.trained_through, trained.n_races) == (
        (2022, 2023), "2022-race-00", "2023-race-11", 24)


def test_progress_is_reported_and_training_without_races_is_refused(config, seasons):
    reported = []
    _, history = train(seasons, replace(config, epochs=3), progress=lambda epoch, loss: reported.append((epoch, loss)))
    assert reported == [(row["epoch"], row["loss"]) for row in history]
    with pytest.raises(ValueError, match="0 races with an official order in 2031"):
        train(seasons, replace(config, seasons=(2031,)))


def test_races_with_one_car_or_only_retired_cars_are_harmless(config, seasons, planted):
    edge_cases = planted({2021: 2}, cars=(1, 20))
    edge_cases["classified"] = False
    trained, history = train(pd.concat([edge_cases, seasons]), replace(config, epochs=3))
    assert all(np.isfinite(row["loss"]) for row in history)
    assert np.isfinite(trained.scores(seasons)).all()


def test_predictors_train_on_the_latest_seasons_and_refuse_to_score_before_fit(seasons):
    predictor = TrainedPredictor(replace(RANKER, epochs=2), last_seasons=2)
    race = seasons[seasons["weekend"] == "2024-race-03"]
    with pytest.raises(RuntimeError, match="call fit first"):
        predictor.scores(race)
    predictor.fit(seasons)
    assert predictor.trained.seasons == (2023, 2024)
    assert predictor.scores(race).shape == (len(race),)
    assert (champion().name, f1net_reference().name) == ("champion", "f1net_reference")
    assert (champion().last_seasons, f1net_reference().last_seasons) == (None, 4)
