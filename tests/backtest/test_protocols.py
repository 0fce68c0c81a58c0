import numpy as np
import pandas as pd
import pytest

from f1_pipelines.backtest.predictors import GridLogit
from f1_pipelines.backtest.protocols import POPULATIONS, PROTOCOLS, evaluate, evaluate_races, folds, summarise
from f1_pipelines.evaluation.baselines import BASELINES
from f1_pipelines.evaluation.targets import TARGETS


class Recorder:
    """Scores all cars 0 and records the rows it gets."""

    name = "recorder"

    def __init__(self):
        self.trained, self.scored = [], []

    def fit(self, train):
        self.trained.append(train)

    def scores(self, race):
        self.scored.append((self.trained[-1]["race_start"].max(), race))
        return np.zeros(len(race))


@pytest.fixture(scope="module")
def summaries(races):
    return {name: summarise(evaluate(BASELINES, races, name)).set_index(["population", "predictor"])
            for name in ("rolling_2019_2025", "holdout_2025")}


@pytest.mark.parametrize(("protocol", "population", "predictor", "metric", "expected"), [
    ("rolling_2019_2025", "starters", "grid", "spearman", 0.629),
    ("rolling_2019_2025", "starters", "qualifying", "spearman", 0.642),
    ("rolling_2019_2025", "starters", "rank_sum", "spearman", 0.664),
    ("rolling_2019_2025", "starters", "rank_sum", "delta", 0.034),
    ("rolling_2019_2025", "starters", "rank_sum", "delta_low", 0.022),
    ("rolling_2019_2025", "starters", "rank_sum", "delta_high", 0.048),
    ("holdout_2025", "starters", "grid", "spearman", 0.648),
    ("holdout_2025", "starters", "grid", "kendall", 0.509),
    ("holdout_2025", "starters", "grid", "ndcg10", 0.886),
    ("holdout_2025", "starters", "grid", "top1", 0.667),
    ("holdout_2025", "starters", "grid", "podium_overlap", 0.750),
    ("holdout_2025", "starters", "grid", "mae_positions", 3.34),
    ("holdout_2025", "starters", "qualifying", "spearman", 0.652),
    ("holdout_2025", "starters", "last3", "spearman", 0.496),
    ("holdout_2025", "starters", "season_mean", "spearman", 0.533),
    ("holdout_2025", "classified", "grid", "spearman", 0.736),
])
def test_baselines_have_their_documented_metrics(summaries, protocol, population, predictor, metric, expected):
    assert summaries[protocol].loc[(population, predictor), metric] == pytest.approx(expected, abs=0.003)


def test_the_races_are_those_of_the_protocol(summaries):
    assert summaries["rolling_2019_2025"]["races"].eq(152).all()
    assert summaries["holdout_2025"]["races"].eq(24).all()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_training_races_come_before_all_test_races(races, protocol):
    started = races[races["started"]]
    tested = [weekend for train, test in folds(started, protocol) for weekend in test["weekend"].unique()
              if train["race_start"].max() < test["race_start"].min()]
    season_of = {"rolling_2019_2025": range(2019, 2026), "holdout_2025": [2025], "prequential_2026": [2026]}[protocol]
    assert sorted(tested) == sorted(started.loc[started["season"].isin(season_of), "weekend"].unique())


def test_a_predictor_gets_starters_by_driver_without_outcomes(races):
    recorder = Recorder()
    evaluation = evaluate([recorder], races.sample(frac=1, random_state=0), "holdout_2025")
    assert evaluation["spearman"].eq(0).all()
    assert set(evaluation["population"]) == set(POPULATIONS)
    assert recorder.trained[0]["official_order"].notna().all()
    for trained_through, race in recorder.scored:
        assert not set(TARGETS) & set(race.columns)
        assert race["driver"].is_monotonic_increasing
        assert race["entered"].all()
        assert trained_through < race["race_start"].min()


def test_rows_in_the_order_of_the_result_change_nothing(races):
    by_result = races.sort_values(["race_start", "official_order"])
    pd.testing.assert_frame_equal(evaluate(BASELINES, by_result, "prequential_2026"),
                                  evaluate(BASELINES, races, "prequential_2026"))


def test_only_starters_of_completed_races_have_targets(races):
    orders = races[races["started"]].groupby("weekend")["official_order"]
    assert (orders.max() == orders.size()).all()
    assert (orders.min() == 1).all()
    assert races.loc[~races["started"], "official_order"].isna().all()
    assert not races.loc[races["weekend"] == "2026-italy", "started"].any()
    absent = races[(races["weekend"] == "2023-singapore") & (races["driver"] == "lance-stroll")]
    assert not absent["started"].any()


def test_an_unknown_protocol_and_a_missing_comparison_are_refused(races):
    with pytest.raises(ValueError, match="holdout_2025, rolling_2019_2025, prequential_2026"):
        evaluate(BASELINES, races, "random_split")
    evaluation = evaluate([Recorder()], races, "holdout_2025")
    with pytest.raises(ValueError, match='no rows of "grid"'):
        summarise(evaluation)


def test_a_fold_that_two_protocols_share_is_evaluated_once_with_the_same_results(races):
    def predictors():
        return [*BASELINES, GridLogit(), Recorder()]

    known, rolling, recorder = {}, predictors(), Recorder()
    evaluate_races(rolling, races, "rolling_2019_2025", known)
    shared = evaluate_races([*BASELINES, GridLogit(), recorder], races, "holdout_2025", known)
    assert not recorder.trained and not recorder.scored
    alone = evaluate_races(predictors(), races, "holdout_2025")
    pd.testing.assert_frame_equal(shared.races, alone.races, check_exact=True)
    pd.testing.assert_frame_equal(shared.cars, alone.cars, check_exact=True)
    amended = races.copy()
    amended.loc[(amended["weekend"] == "2018-australia") & (amended["driver"] == "sebastian-vettel"),
                "grid_position"] = 9
    evaluate_races([recorder], amended, "holdout_2025", known)
    assert len(recorder.trained) == 1, "a changed training race makes another fold"
