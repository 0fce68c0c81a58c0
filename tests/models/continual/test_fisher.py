"""Fisher information: values, checks and storage, and the EWC penalty around its anchor."""
import json
from dataclasses import replace

import pytest
import torch

from f1_pipelines.checkpoints.store import CheckpointError
from f1_pipelines.models.checkpoints import load_checkpoint, save_checkpoint
from f1_pipelines.models.continual.ewc import ewc_penalty
from f1_pipelines.models.continual.fisher import check_fisher, fisher_information, load_fisher
from f1_pipelines.models.training import objective


def test_the_fisher_has_the_shapes_of_the_weights_and_no_negative_value(pretrained):
    model = pretrained.trained.model
    check_fisher(pretrained.fisher, model)
    assert {name: values.shape for name, values in pretrained.fisher.items()} == {
        name: weight.shape for name, weight in model.named_parameters()}
    assert all((values >= 0).all() for values in pretrained.fisher.values())
    assert sum(values.sum() for values in pretrained.fisher.values()) > 0


def test_the_fisher_is_the_mean_of_squared_gradients_of_each_race(pretrained, seasons):
    trained, races = pretrained.trained, seasons[seasons["season"] == 2023]
    trained.model.eval()
    batch, config = trained.batch(races), replace(trained.config, rookie_share=0.0)
    expected = {name: torch.zeros_like(weight) for name, weight in trained.model.named_parameters()}
    for race in range(len(batch)):
        trained.model.zero_grad()
        objective(trained.model, batch.races(torch.tensor([race])), config, torch.Generator()).backward()
        for name, weight in trained.model.named_parameters():
            expected[name] += weight.grad.square() / len(batch)
    trained.model.zero_grad()
    fisher = fisher_information(trained, races)
    for name, values in expected.items():
        torch.testing.assert_close(fisher[name], values)


def test_the_fisher_uses_no_dropout_and_no_replaced_ids(f1net, seasons):
    """In training mode, dropout would give another result in each call."""
    f1net.trained.model.train()
    torch.manual_seed(7)
    again = fisher_information(f1net.trained, seasons)
    assert not f1net.trained.model.training
    assert all(torch.equal(again[name], values) for name, values in f1net.fisher.items())
    assert not again["driver.weight"][0].any(), "the unknown row was used, although all drivers are known"


def test_the_penalty_is_zero_at_the_anchor_and_quadratic_in_the_distance(pretrained):
    model = pretrained.trained.model
    anchor = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    assert ewc_penalty(model, anchor, pretrained.fisher).item() == 0.0
    away = {name: weight + 0.1 for name, weight in anchor.items()}
    further = {name: weight + 0.2 for name, weight in anchor.items()}
    near = ewc_penalty(model, away, pretrained.fisher).item()
    assert near == pytest.approx(0.5 * 0.01 * sum(f.sum().item() for f in pretrained.fisher.values()), rel=1e-3)
    assert ewc_penalty(model, further, pretrained.fisher).item() == pytest.approx(4 * near, rel=1e-3)


@pytest.mark.parametrize(("damage", "message"), [
    (lambda fisher: fisher.pop(next(iter(fisher))), "has shape None"),
    (lambda fisher: fisher.update({name: values[..., :-1] for name, values in fisher.items()}), "of another model"),
    (lambda fisher: fisher.update({name: -values - 1 for name, values in fisher.items()}), "negative"),
    (lambda fisher: fisher.update({name: values / 0 for name, values in fisher.items()}), "not finite"),
])
def test_a_fisher_that_does_not_fit_is_refused(pretrained, damage, message):
    fisher = dict(pretrained.fisher)
    damage(fisher)
    with pytest.raises(ValueError, match=message):
        check_fisher(fisher, pretrained.trained.model)


@pytest.fixture
def stored(pretrained, tmp_path):
    return save_checkpoint(pretrained.trained, tmp_path, kind="pretrained", data_version="data-1",
                           fisher=pretrained.fisher)


def test_the_fisher_is_stored_beside_the_weights_and_loads_unchanged(stored, pretrained):
    loaded = load_fisher(load_checkpoint(stored.path))
    assert all(torch.equal(loaded[name], values) for name, values in pretrained.fisher.items())
    assert sorted(path.name for path in stored.path.iterdir()) == [
        "fisher.safetensors", "meta.json", "model.safetensors"]


def test_a_checkpoint_without_a_fisher_loads_but_its_fisher_does_not(pretrained, tmp_path):
    checkpoint = save_checkpoint(pretrained.trained, tmp_path, kind="pretrained", data_version="data-1")
    with pytest.raises(CheckpointError, match="without a Fisher.*materialize pretrained_ranker"):
        load_fisher(load_checkpoint(checkpoint.path))


@pytest.mark.parametrize(("damage", "message"), [
    (lambda path: path.unlink(), "can't be read"),
    (lambda path: path.write_bytes(path.read_bytes()[:-9]), "damaged"),
    (lambda path: replace_fisher(path, b"no safetensors at all"), "fisher.safetensors"),
])
def test_a_damaged_fisher_is_refused_and_saving_again_repairs_it(stored, pretrained, damage, message):
    damage(stored.path / "fisher.safetensors")
    with pytest.raises(CheckpointError, match=message) as caught:
        load_fisher(load_checkpoint(stored.path))
    assert str(caught.value).startswith(str(stored.path))
    again = save_checkpoint(pretrained.trained, stored.path.parent, kind="pretrained", data_version="data-1",
                            fisher=pretrained.fisher)
    assert again.id == stored.id
    load_fisher(load_checkpoint(stored.path))


def replace_fisher(path, content):
    """Replace the file, and its digest in meta.json."""
    import hashlib

    path.write_bytes(content)
    meta = json.loads((path.parent / "meta.json").read_text())
    meta["fisher_sha256"] = hashlib.sha256(content).hexdigest()
    (path.parent / "meta.json").write_text(json.dumps(meta))
