"""A pretraining that is stored is not made again, and gives the same to the last bit."""
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
    made = []
    monkeypatch.setattr(continual_predictors, "train", lambda *given: made.append(1) or train(*given))
    return made


def judged(races, config, folder=None):
    stored = PretrainingCache(folder) if folder else None
    found = evaluate_races([ContinualPredictor(QUICK, config, stored=stored)], races, "prequential_2026")
    return found.races, found.cars


def same(found, expected):
    for frame, other in zip(found, expected, strict=True):
        pd.testing.assert_frame_equal(frame, other, check_exact=True)


def test_the_checkpoint_of_the_same_settings_and_rows_stands_in(races, config, tmp_path, trainings):
    fresh = judged(races, config)
    taught = races[races["season"].isin(PRETRAINED_ON)]
    pretrain_one(races, replace(config, seasons=PRETRAINED_ON), data_version=data_version(taught), folder=tmp_path,
                 created_at=None, log=lambda line: None)
    assert len(trainings) == 1
    same(judged(races, config, tmp_path), fresh)
    assert len(trainings) == 1 and not (tmp_path / FOLDER).exists()
    judged(races, replace(config, seed=1), tmp_path)
    assert len(trainings) == 2, "other settings are another training"
    amended = races.copy()
    amended.loc[amended["weekend"] == "2023-race-01", CORE_FEATURES[0]] = 7.0
    same(judged(amended, config, tmp_path), judged(amended, config))
    assert len(trainings) == 4, "other rows are another training"


def test_its_own_is_kept_apart_and_made_again_when_damaged(races, config, tmp_path, trainings):
    fresh = judged(races, config, tmp_path)
    same(judged(races, config, tmp_path), fresh)
    assert len(trainings) == 1 and stored_checkpoints(tmp_path) == []
    [kept] = stored_checkpoints(tmp_path / FOLDER)
    (kept / WEIGHTS).write_bytes(b"half of it")
    same(judged(races, config, tmp_path), fresh)
    assert len(trainings) == 2


def test_one_without_a_fisher_does_not_stand_in(races, config, tmp_path):
    taught = races[races["season"].isin(PRETRAINED_ON)]
    wanted = replace(config, seasons=PRETRAINED_ON)
    save_checkpoint(train(taught, wanted)[0], tmp_path, kind="pretrained", data_version=data_version(taught))
    assert PretrainingCache(tmp_path).find(wanted, data_version(taught)) is None
