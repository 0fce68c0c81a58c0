"""Fallback inputs of a trained ranker, and its stored probabilities."""
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from f1_pipelines.checkpoints.store import CheckpointError
from f1_pipelines.models.checkpoints import load_checkpoint, save_checkpoint
from f1_pipelines.models.config import RANKER
from f1_pipelines.models.position_model import PositionModel
from f1_pipelines.models.trained import FALLBACK_INPUTS, with_fallback_inputs
from f1_pipelines.models.training import train


def test_only_inputs_that_no_car_has_are_replaced():
    race = pd.DataFrame({"weekend": ["a", "a", "b", "b"], "grid_place": [pd.NA, pd.NA, 0.3, pd.NA],
                         "qualifying_place": [0.0, 1.0, 0.0, 1.0]}).astype({"grid_place": "Float64"})
    filled = with_fallback_inputs(race)
    assert filled["grid_place"].tolist()[:3] == [0.0, 1.0, 0.3]
    assert pd.isna(filled["grid_place"].iloc[3]), "a car without a slot stays unknown if others have one"
    assert with_fallback_inputs(race.drop(columns="qualifying_place")).equals(race.drop(columns="qualifying_place"))


def test_a_missing_input_scores_like_its_fallback(seasons):
    trained, _ = train(seasons, RANKER)
    race = seasons[seasons["weekend"] == "2024-race-03"]
    for missing, fallback in FALLBACK_INPUTS.items():
        unknown = race.assign(**{missing: pd.array([pd.NA] * len(race), dtype="Float64")})
        filled = race.assign(**{missing: race[fallback]})
        assert (trained.scores(unknown) == trained.scores(filled)).all()


def test_probabilities_are_stored_with_the_ranker_and_part_of_its_id(seasons, tmp_path):
    trained, _ = train(seasons, replace(RANKER, epochs=1))
    weights = {"entry": np.arange(8.0).reshape(2, 4), "grid": np.ones((2, 4))}
    stops = {"entry": np.array([-2.0, 0.1]), "grid": np.array([-1.0, 0.0])}
    with_probabilities = replace(trained, places=PositionModel(("score", "start"), weights, stops))
    stored = save_checkpoint(with_probabilities, tmp_path, kind="pretrained", data_version="x")
    loaded = load_checkpoint(stored.path).trained.places
    assert loaded.inputs == ("score", "start") and set(loaded.weights) == {"entry", "grid"}
    assert all((loaded.weights[stage] == weights[stage]).all() for stage in weights)
    assert all((loaded.stops[stage] == stops[stage]).all() for stage in weights)
    assert save_checkpoint(with_probabilities, tmp_path, kind="pretrained", data_version="x").id == stored.id
    other = replace(trained, places=PositionModel(("score", "start"), {**weights, "grid": np.zeros((2, 4))}, stops))
    ids = {save_checkpoint(ranker, tmp_path, kind="pretrained", data_version="x").id for ranker in (trained, other)}
    assert stored.id not in ids and len(ids) == 2
    assert load_checkpoint(save_checkpoint(trained, tmp_path, kind="pretrained", data_version="x").path
                           ).trained.places is None


def test_probabilities_without_chances_of_retiring_are_refused(seasons, tmp_path):
    trained, _ = train(seasons, replace(RANKER, epochs=1))
    places = PositionModel(("score", "start"), {"grid": np.ones((2, 4))}, stops={})
    stored = save_checkpoint(replace(trained, places=places), tmp_path, kind="pretrained", data_version="x")
    with pytest.raises(CheckpointError, match="do not include how often cars stop.*train again"):
        load_checkpoint(stored.path)
