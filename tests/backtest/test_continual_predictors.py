"""The predictor updates as the chain does, on earlier races only, and computes no update twice."""
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from f1_pipelines.backtest import continual_predictors
from f1_pipelines.backtest.continual_predictors import ContinualPredictor
from f1_pipelines.backtest.protocols import evaluate
from f1_pipelines.models.config import RANKER
from f1_pipelines.models.continual.settings import UpdateConfig
from f1_pipelines.models.continual.update import learn, window_of

CONFIG = replace(RANKER, epochs=3, lr=0.03)
QUICK = UpdateConfig(epochs=1, lr=0.01)


@pytest.fixture
def races(seasons, planted):
    return pd.concat([seasons, planted({2025: 2, 2026: 5}, seed=6)], ignore_index=True)


def before(rows, weekend):
    return rows[rows["race_start"] < rows.loc[rows["weekend"] == weekend, "race_start"].iloc[0]]


def test_it_pretrains_on_earlier_seasons_and_updates_after_each_race_of_this_one(races):
    predictor = ContinualPredictor(QUICK, CONFIG, last_seasons=2)
    predictor.fit(before(races, "2026-race-02"))
    known = predictor.known_before(2026)
    assert known.trained.seasons == (2024, 2025, 2026) and known.trained.trained_through == "2026-race-01"
    root = predictor.known_before(2026 + 1)
    assert root.trained.seasons == (2025, 2026), "for the next season these races are pretraining"
    predictor.fit(races[races["season"] < 2026])
    pretrained = expected = predictor.known_before(2026)
    season = races[races["season"] == 2026]
    for weekend in ("2026-race-00", "2026-race-01"):
        expected = learn(expected, pretrained, window_of(season, weekend, QUICK.window_races), QUICK).known
    race = races[races["weekend"] == "2026-race-02"].reset_index(drop=True)
    np.testing.assert_array_equal(known.trained.scores(race), expected.trained.scores(race))


def test_each_new_race_costs_one_update(races, monkeypatch):
    calls = []
    monkeypatch.setattr(continual_predictors, "learn", lambda *args: calls.append(1) or learn(*args))
    predictor = ContinualPredictor(QUICK, CONFIG)
    evaluation = evaluate([predictor], races, "prequential_2026")
    assert evaluation["weekend"].nunique() == 5 and len(calls) == 4
    assert set(evaluation["predictor"]) == {"champion_ewc"}


def test_the_future_does_not_leak(races):
    def scores(rows):
        predictor = ContinualPredictor(QUICK, CONFIG)
        predictor.fit(before(rows, "2026-race-03"))
        return predictor.scores(rows[rows["weekend"] == "2026-race-03"].reset_index(drop=True))

    other = races.copy()
    later = other["weekend"] >= "2026-race-03"
    other.loc[later, "official_order"] = other[later].groupby("weekend")["official_order"].transform(lambda o: 1 - o)
    np.testing.assert_array_equal(scores(races), scores(other))


def test_method_none_is_the_pretrained_ranker_and_scoring_before_fit_is_refused(races):
    predictor = ContinualPredictor(UpdateConfig(method="none"), CONFIG)
    race = races[races["weekend"] == "2026-race-04"].reset_index(drop=True)
    with pytest.raises(RuntimeError, match="call fit first"):
        predictor.scores(race)
    predictor.fit(before(races, "2026-race-04"))
    scores = predictor.scores(race)
    predictor.fit(before(races, "2026-race-00"))
    np.testing.assert_array_equal(scores, predictor.scores(race))
