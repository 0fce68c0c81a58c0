"""An update learns from its window, keeps frozen weights, and is reproducible."""
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import save

from f1_pipelines.models.continual.ewc import ewc_penalty
from f1_pipelines.models.continual.settings import METHODS, UpdateConfig
from f1_pipelines.models.continual.update import LearntState, learn, window_of

LEARNING = [method for method in METHODS if method != "none"]
QUICK = UpdateConfig(epochs=2)


def weights(trained):
    return {name: weight.detach().clone() for name, weight in trained.model.named_parameters()}


def moved(before, after):
    """Names of the weights that are not bit-identical."""
    return {name for name, weight in weights(before).items()
            if not torch.equal(weight, weights(after)[name][tuple(slice(size) for size in weight.shape)])}


def methods_of(known):
    return [m for m in LEARNING if m != "constructors" or hasattr(known.trained.model, "constructor")]


def test_every_method_learns_and_is_reproducible(pretrained, new_season, seasons):
    state = torch.get_rng_state()
    for method in methods_of(pretrained):
        settings = replace(QUICK, method=method)
        before = save(pretrained.trained.model.state_dict())
        first = learn(pretrained, pretrained, new_season, settings, seasons)
        second = learn(pretrained, pretrained, new_season.sample(frac=1, random_state=3), settings, seasons)
        assert save(first.known.trained.model.state_dict()) == save(second.known.trained.model.state_dict()), method
        assert moved(pretrained.trained, first.known.trained), method
        assert save(pretrained.trained.model.state_dict()) == before, f"{method} changed the parent"
        assert not first.known.trained.model.training
    other = learn(pretrained, pretrained, new_season, replace(QUICK, seed=1)).known.trained
    assert save(other.model.state_dict()) != save(learn(pretrained, pretrained, new_season, QUICK).known.trained.model
                                                  .state_dict())
    assert torch.equal(torch.get_rng_state(), state), "the caller's random state changed"


def test_known_drivers_stay_bit_identical_and_newcomers_learn(f1net, new_season):
    learnt, known = f1net, len(f1net.trained.drivers)
    for races in (2, 5, 8):
        window = new_season[new_season["weekend"] < f"2025-race-{races:02d}"]
        learnt = learn(learnt, f1net, window, QUICK).known
    before, after = f1net.trained.model.driver.weight, learnt.trained.model.driver.weight
    assert torch.equal(after[:known], before)
    assert len(after) == known + 2 and (after[known:] != before[0]).any(dim=1).all()
    assert moved(f1net.trained, learnt.trained) == set(weights(f1net.trained)) - {"driver.weight"}


def test_only_the_last_layers_learn_with_method_freeze(pretrained, known_season):
    frozen = learn(pretrained, pretrained, known_season, replace(QUICK, method="freeze")).known.trained
    model = pretrained.trained.model
    assert moved(pretrained.trained, frozen) == {
        name for name, _ in model.named_parameters() if name.startswith(model.READ_OUT)}


def test_the_harder_the_pull_the_less_moves(pretrained, known_season):
    def distance(settings):
        after = learn(pretrained, pretrained, known_season, settings).known.trained.model
        return ewc_penalty(after, weights(pretrained.trained), pretrained.fisher).item()

    free = distance(UpdateConfig(method="finetune"))
    assert distance(UpdateConfig(ewc_lambda=0.0)) == free
    assert distance(UpdateConfig(ewc_lambda=1e6)) < distance(UpdateConfig(ewc_lambda=1e4)) < free


def test_the_anchor_is_the_pretrained_ranker_after_any_number_of_updates(pretrained, known_season):
    """A strong penalty moves a drifted ranker back; with an online anchor it stays."""
    drifted = learn(pretrained, pretrained, known_season, UpdateConfig(method="finetune", lr=0.03)).known
    drifted = LearntState(drifted.trained, pretrained.fisher)

    def distance(known):
        return ewc_penalty(known.trained.model, weights(pretrained.trained), pretrained.fisher).item()

    settings = UpdateConfig(ewc_lambda=1e7, epochs=20)
    back = learn(drifted, pretrained, known_season, settings).known
    online = learn(drifted, pretrained, known_season, replace(settings, method="online_ewc")).known
    assert distance(back) < 0.5 * distance(drifted)
    assert distance(back) < distance(online)


def test_restart_ignores_earlier_updates_but_keeps_newcomers(f1net, new_season, known_season):
    settings = replace(QUICK, restart=True)
    drifted = learn(f1net, f1net, new_season, QUICK).known
    fresh = learn(f1net, f1net, known_season, settings).known.trained
    restarted = learn(drifted, f1net, known_season, settings).known.trained
    assert "a-newcomer" in restarted.drivers.names
    assert all(torch.equal(restarted.model.get_parameter(f"mlp.{layer}.weight"),
                           fresh.model.get_parameter(f"mlp.{layer}.weight")) for layer in (0, 3, 6))


def test_the_online_fisher_moves_and_grows(f1net, new_season):
    learnt = learn(f1net, f1net, new_season, replace(QUICK, method="online_ewc", fisher_decay=0.5)).known
    assert learnt.fisher["driver.weight"].shape[0] == len(f1net.trained.drivers) + 2
    again = learn(learnt, f1net, new_season, replace(QUICK, method="online_ewc"))
    assert again.history[0]["penalty"] < again.history[-1]["penalty"], "the anchor is the start of the update"


def test_replay_returns_the_old_races_it_used(pretrained, known_season, seasons):
    learnt = learn(pretrained, pretrained, known_season, replace(QUICK, method="replay"), seasons)
    old = set(learnt.rows["weekend"]) - set(known_season["weekend"])
    assert len(old) == 16 and old < set(seasons["weekend"])
    with pytest.raises(ValueError, match="replay needs races of the pretraining"):
        learn(pretrained, pretrained, known_season, replace(QUICK, method="replay"))


def test_the_updated_ranker_records_its_training_races(pretrained, known_season):
    learnt = learn(pretrained, pretrained, known_season[known_season["weekend"] == "2025-race-00"], QUICK).known.trained
    before = pretrained.trained
    assert (learnt.trained_from, learnt.trained_through) == (before.trained_from, "2025-race-00")
    assert (learnt.n_races, learnt.seasons) == (before.n_races + 1, (2022, 2023, 2024, 2025))


def test_the_history_has_loss_and_penalty_of_each_epoch(pretrained, known_season):
    history = learn(pretrained, pretrained, known_season, UpdateConfig(ewc_lambda=1e4)).history
    assert [epoch["epoch"] for epoch in history] == list(range(1, 11))
    assert all(np.isfinite(epoch["loss"]) and epoch["penalty"] >= 0 for epoch in history)
    assert history[-1]["penalty"] > 0


def test_the_window_has_the_latest_races(known_season):
    def weekends(last, races):
        return sorted(window_of(known_season, f"2025-race-{last:02d}", races)["weekend"].unique())

    assert weekends(0, 6) == ["2025-race-00"]
    assert weekends(7, 6) == [f"2025-race-{race:02d}" for race in range(2, 8)]
    assert weekends(3, 1) == ["2025-race-03"]


@pytest.mark.parametrize(("change", "message"), [
    ({"method": "hope"}, '"hope" is no update method; wanted one of none, finetune'),
    ({"ewc_lambda": -1.0}, "ewc_lambda is -1.0; wanted 0 or more"),
    ({"ewc_lambda": float("nan")}, "ewc_lambda"),
    ({"lr": 0.0}, "lr is 0.0; wanted a rate above 0"),
    ({"epochs": 0}, "epochs is 0; wanted at least 1"),
    ({"window_races": 0}, "window_races is 0"),
    ({"fisher_decay": 1.5}, "fisher_decay is 1.5; wanted a share"),
])
def test_invalid_settings_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        UpdateConfig(**change)


def test_impossible_updates_are_refused(pretrained, known_season):
    with pytest.raises(ValueError, match="method none learns nothing"):
        learn(pretrained, pretrained, known_season, UpdateConfig(method="none"))
    with pytest.raises(ValueError, match="needs the Fisher of the pretrained"):
        learn(LearntState(pretrained.trained), LearntState(pretrained.trained), known_season, QUICK)
    if pretrained.trained.config.model == "champion":
        with pytest.raises(ValueError, match="champion has no constructor embedding"):
            learn(pretrained, pretrained, known_season, replace(QUICK, method="constructors"))
