"""At a season boundary newcomers get rows, known rows stay, and no ranking changes."""
import numpy as np
import pytest
import torch

from f1_pipelines.models.continual.adaptation import adapt, grow_fisher, may_learn
from f1_pipelines.models.continual.settings import UpdateConfig
from f1_pipelines.models.vocabulary import UNKNOWN


def test_newcomers_start_as_the_unknown_row_and_scores_stay_the_same(pretrained, new_season):
    before = pretrained.trained
    adapted = adapt(before, new_season)
    assert adapted.drivers.names == (*before.drivers.names, "a-newcomer", "z-newcomer")
    assert adapted.constructors.names == (*before.constructors.names, "a-new-team", "team-2-renamed")
    np.testing.assert_array_equal(adapted.scores(new_season), before.scores(new_season))
    for name in ("driver.weight", "constructor.weight") if hasattr(before.model, "driver") else ():
        old, new = before.model.get_parameter(name), adapted.model.get_parameter(name)
        assert torch.equal(new[:len(old)], old)
        assert torch.equal(new[len(old):], old[UNKNOWN].expand(2, -1))


def test_adapting_without_newcomers_changes_nothing(pretrained, known_season):
    adapted = adapt(pretrained.trained, known_season)
    assert adapted.drivers == pretrained.trained.drivers and adapted.constructors == pretrained.trained.constructors
    for name, weight in pretrained.trained.model.named_parameters():
        assert torch.equal(adapted.model.get_parameter(name), weight)
        assert adapted.model.get_parameter(name) is not weight, "the weights are a copy"


def test_a_second_boundary_keeps_the_rows_of_the_first(f1net, new_season):
    once = adapt(f1net.trained, new_season)
    twice = adapt(once, new_season.replace({"driver": {"driver-01": "b-newcomer"}}))
    assert twice.drivers.names == (*once.drivers.names, "b-newcomer")


def test_the_fisher_of_new_rows_is_zero(f1net, new_season):
    adapted = adapt(f1net.trained, new_season)
    grown = grow_fisher(f1net.fisher, adapted.model)
    known = len(f1net.trained.drivers)
    assert torch.equal(grown["driver.weight"][:known], f1net.fisher["driver.weight"])
    assert not grown["driver.weight"][known:].any()


@pytest.mark.parametrize(("settings", "drivers", "constructors", "first_layer", "read_out"), [
    (UpdateConfig(), False, True, True, True),
    (UpdateConfig(freeze_drivers=False), True, True, True, True),
    (UpdateConfig(method="freeze"), False, False, False, True),
    (UpdateConfig(method="constructors"), False, True, False, False),
])
def test_masks_of_the_learning_weights(f1net, new_season, settings, drivers, constructors, first_layer, read_out):
    """The rows of newcomers always learn; the other weights depend on the method."""
    masks = may_learn(adapt(f1net.trained, new_season), f1net.trained, settings)
    known = len(f1net.trained.drivers), len(f1net.trained.constructors)
    assert masks["driver.weight"][:known[0]].all() == masks["driver.weight"][:known[0]].any() == drivers
    assert masks["constructor.weight"][:known[1]].all() == masks["constructor.weight"][:known[1]].any() == constructors
    assert masks["driver.weight"][known[0]:].all() and masks["constructor.weight"][known[1]:].all()
    assert (masks["mlp.0.weight"].all(), masks["mlp.6.bias"].all()) == (first_layer, read_out)
