"""The evaluation of all real races with fast predictors fits the tables, on any processor."""
import pandas as pd
import pytest

from f1_pipelines.backtest import report
from f1_pipelines.backtest.predictors import GridLogit
from f1_pipelines.backtest.slices import kinds_of_race
from f1_pipelines.evaluation.baselines import BASELINES
from f1_pipelines.tables.evaluation import CALIBRATION, EVALUATION, EVALUATION_SLICES, PROTOCOLS


def test_the_evaluation_of_all_real_races_fits_the_tables(races, real, monkeypatch):
    monkeypatch.setattr(report, "default_predictors", lambda protocol, results, checkpoints: [*BASELINES, GridLogit()])
    kinds, folds, stored = kinds_of_race(real["calendar"], pd.DataFrame({"weekend": [], "compound": []})), {}, []
    rows = races[races["started"]]
    for protocol in PROTOCOLS:
        evaluation = report.evaluate_protocol(report.rows_of(rows, protocol), real["results"], kinds, protocol,
                                              lambda message: None, folds)
        CALIBRATION.conform(evaluation.calibration)
        EVALUATION_SLICES.conform(evaluation.slices)
        stored.append(EVALUATION.conform(evaluation.races))
    grid = pd.concat(stored).query("predictor == 'grid' and population == 'starters'")
    means = grid.groupby("protocol")["spearman"].mean()
    assert means.round(3).to_dict() == {"holdout_2025": 0.648, "prequential_2026": 0.684, "rolling_2019_2025": 0.629}
    monaco = grid.query("weekend == '2024-monaco'")["ndcg10"]
    assert monaco.tolist() == [pytest.approx(1, abs=0)]
