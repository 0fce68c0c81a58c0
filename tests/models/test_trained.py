"""What a trained ranker makes of inputs that nobody in a race has yet."""
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


def test_what_nobody_has_is_stood_for_and_what_somebody_has_is_not():
    race = pd.DataFrame({"weekend": ["a", "a", "b", "b"], "grid_place": [pd.NA, pd.NA, 0.3, pd.NA],
                         "qualifying_place": [0.0, 1.0, 0.0, 1.0]}).astype({"grid_place": "Float64"})
    filled = with_fallback_inputs(race)
    assert filled["grid_place"].tolist()[:3] == [0.0, 1.0, 0.3]
    assert pd.isna(filled["grid_place"].iloc[3]), "one car without a slot is unknown among those that have one"
    assert with_fallback_inputs(race.drop(columns="qualifying_place")).equals(race.drop(columns="qualifying_place"))


def test_before_the_grid_a_race_is_ranked_as_if_it_were_the_order_of_qualifying(seasons):
    trained, _ = train(seasons, RANKER)
    race = seasons[seasons["weekend"] == "2024-race-03"]
    for missing, other in FALLBACK_INPUTS.items():
        unknown = race.assign(**{missing: pd.array([pd.NA] * len(race), dtype="Float64")})
        told = race.assign(**{missing: race[other]})
        assert (trained.scores(unknown) == trained.scores(told)).all()


def test_probabilities_are_stored_with_the_ranker_and_are_part_of_what_it_is(seasons, tmp_path):
    trained, _ = train(seasons, replace(RANKER, epochs=1))
    weights = {"entry": np.arange(8.0).reshape(2, 4), "grid": np.ones((2, 4))}
    stops = {"entry": np.array([-2.0, 0.1]), "grid": np.array([-1.0, 0.0])}
    with_chances = replace(trained, places=PositionModel(("score", "start"), weights, stops))
    stored = save_checkpoint(with_chances, tmp_path, kind="pretrained", data_version="x")
    back = load_checkpoint(stored.path).trained.places
    assert back.inputs == ("score", "start") and set(back.weights) == {"entry", "grid"}
    assert all((back.weights[stage] == weights[stage]).all() for stage in weights)
    assert all((back.stops[stage] == stops[stage]).all() for stage in weights)
    assert save_checkpoint(with_chances, tmp_path, kind="pretrained", data_version="x").id == stored.id
    other = replace(trained, places=PositionModel(("score", "start"), {**weights, "grid": np.zeros((2, 4))}, stops))
    ids = {save_checkpoint(one, tmp_path, kind="pretrained", data_version="x").id for one in (trained, other)}
    assert stored.id not in ids and len(ids) == 2
    assert load_checkpoint(save_checkpoint(trained, tmp_path, kind="pretrained", data_version="x").path
                           ).trained.places is None


def test_probabilities_of_code_that_knew_no_stopping_are_refused(seasons, tmp_path):
    trained, _ = train(seasons, replace(RANKER, epochs=1))
    places = PositionModel(("score", "start"), {"grid": np.ones((2, 4))}, stops={})
    stored = save_checkpoint(replace(trained, places=places), tmp_path, kind="pretrained", data_version="x")
    with pytest.raises(CheckpointError, match="do not know how often cars stop.*train again"):
        load_checkpoint(stored.path)
