"""A stored pretraining is not trained again and gives bit-identical results."""
from dataclasses import replace

import pandas as pd
import pytest

from f1_pipelines.backtest import continual_predictors
from f1_pipelines.backtest.continual_predictors import ContinualPredictor
from f1_pipelines.backtest.pretraining_cache import FOLDER, PretrainingCache
from f1_pipelines.backtest.protocols import evaluate_races
from f1_pipelines.features.history import data_version
from f1_pipelines.features.ranking import CORE_FEATURES
from f1_pipelines.models.checkpoints import WEIGHTS, save_checkpoint, stored_checkpoints
from f1_pipelines.models.config import F1NET, RANKER
from f1_pipelines.models.continual.settings import UpdateConfig
from f1_pipelines.models.pretrain import pretrain_one
from f1_pipelines.models.training import train

QUICK = UpdateConfig(epochs=1, lr=0.01)
PRETRAINED_ON = (2022, 2023, 2024)


@pytest.fixture
def races(seasons, planted):
    rows = pd.concat([seasons, planted({2026: 3}, seed=6)], ignore_index=True)
    return rows.assign(grid_position=rows["qualifying_gap_pct"].groupby(rows["weekend"]).rank(),
                       qualifying_position=pd.NA, practice_gap_pct=pd.NA)


@pytest.fixture(params=[RANKER, F1NET], ids=lambda config: config.model)
def config(request):
    return replace(request.param, epochs=3, lr=0.01, seasons=None)


@pytest.fixture
def trainings(monkeypatch):
    calls = []
    monkeypatch.setattr(continual_predictors, "train", lambda *args: calls.append(1) or train(*args))
    return calls


def evaluation_of(races, config, folder=None):
    stored = PretrainingCache(folder) if folder else None
    evaluation = evaluate_races([ContinualPredictor(QUICK, config, stored=stored)], races, "prequential_2026")
    return evaluation.races, evaluation.cars


def assert_identical(evaluation, expected):
    for frame, other in zip(evaluation, expected, strict=True):
        pd.testing.assert_frame_equal(frame, other, check_exact=True)


def test_a_checkpoint_of_the_same_settings_and_rows_is_reused(races, config, tmp_path, trainings):
    fresh = evaluation_of(races, config)
    rows = races[races["season"].isin(PRETRAINED_ON)]
    pretrain_one(races, replace(config, seasons=PRETRAINED_ON), data_version=data_version(rows), folder=tmp_path,
                 created_at=None, log=lambda line: None)
    assert len(trainings) == 1
    assert_identical(evaluation_of(races, config, tmp_path), fresh)
    assert len(trainings) == 1 and not (tmp_path / FOLDER).exists()
    evaluation_of(races, replace(config, seed=1), tmp_path)
    assert len(trainings) == 2, "other settings need another training"
    amended = races.copy()
    amended.loc[amended["weekend"] == "2023-race-01", CORE_FEATURES[0]] = 7.0
    assert_identical(evaluation_of(amended, config, tmp_path), evaluation_of(amended, config))
    assert len(trainings) == 4, "other rows need another training"


def test_a_pretraining_of_an_evaluation_is_stored_apart_and_replaced_when_damaged(races, config, tmp_path, trainings):
    fresh = evaluation_of(races, config, tmp_path)
    assert_identical(evaluation_of(races, config, tmp_path), fresh)
    assert len(trainings) == 1 and stored_checkpoints(tmp_path) == []
    [stored] = stored_checkpoints(tmp_path / FOLDER)
    (stored / WEIGHTS).write_bytes(b"half of it")
    assert_identical(evaluation_of(races, config, tmp_path), fresh)
    assert len(trainings) == 2


def test_a_checkpoint_without_a_fisher_is_not_reused(races, config, tmp_path):
    rows = races[races["season"].isin(PRETRAINED_ON)]
    config = replace(config, seasons=PRETRAINED_ON)
    save_checkpoint(train(rows, config)[0], tmp_path, kind="pretrained", data_version=data_version(rows))
    assert PretrainingCache(tmp_path).load(config, data_version(rows)) is None
