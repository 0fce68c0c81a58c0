"""The acceptance test refuses broken weights, however good the forecasts of their ancestors were."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pandas as pd
import pytest
import torch

from f1_pipelines.evaluation.targets import with_targets
from f1_pipelines.features.history import data_version
from f1_pipelines.models.checkpoints import Checkpoint, load_checkpoint, save_checkpoint
from f1_pipelines.models.config import RANKER
from f1_pipelines.models.continual.chain import Link, bring_up_to_date
from f1_pipelines.models.continual.settings import DEFAULT
from f1_pipelines.models.pretrain import pretrain_one
from f1_pipelines.promotion import LIMITS, decide, record, store_checkpoints
from f1_pipelines.tables.learning import UPDATES
from f1_pipelines.warehouse.database import WarehouseFile
from tests.promotion.conftest import NOW, Store, row_of

# Weights of the qualifying gap and the form.
GOOD, NEAR = (-1.0, -1.0), (-1.0, -0.6)
pytestmark = pytest.mark.xdist_group("acceptance")  # shared fixtures are built once
BROKEN = {
    "negated": ((1.0, 1.0), "its own weights have Spearman -0."),
    "constant": ((0.0, 0.0), "its own weights give all cars the same score in 8 of 8 races"),
    "not a number": ((float("nan"), -1.0), "weights that are not finite can't score"),
    "infinite": ((float("inf"), -1.0), "weights that are not finite can't score"),
    "too large": ((3e38, -3e38), "its own weights give scores that are not finite"),
    "random": ((0.4, -0.3), "its own weights have Spearman"),
}


@pytest.fixture(params=BROKEN, ids=str)
def broken(request) -> tuple[tuple[float, float], str]:
    return BROKEN[request.param]


def test_a_broken_ranker_does_not_become_the_first_champion(store, decide_on, broken):
    weights, reason_part = broken
    decision = decide_on(store.add(weights))
    assert decision.decision == "candidate" and reason_part in decision.reason
    assert store.rows("SELECT count(*) FROM ranking.checkpoints WHERE promoted") == [(0,)]
    [(candidate, reason)] = store.rows("SELECT candidate, reason FROM ranking.promotions")
    assert (candidate, reason) == (decision.candidate, decision.reason)


def test_a_broken_next_link_does_not_replace_the_champion(store, decide_on, broken):
    weights, reason_part = broken
    champion = store.add(GOOD, through="2026-race-6", parent=store.add(GOOD))
    decide_on(champion)
    decision = decide_on(store.add(weights, through="2026-race-7", parent=champion))
    assert decision.decision == "candidate" and reason_part in decision.reason
    assert store.champion == champion


def test_a_broken_new_pretraining_does_not_replace_the_champion(store, decide_on, broken):
    weights, reason_part = broken
    champion = store.add(GOOD, through="2026-race-7")
    decide_on(champion)
    decision = decide_on(store.add(weights, through="2026-race-7"))
    assert decision.decision == "candidate" and reason_part in decision.reason
    assert store.champion == champion


def test_a_broken_ranker_does_not_replace_an_unusable_champion(store, decide_on, broken):
    weights, reason_part = broken
    champion = store.add(GOOD)
    decide_on(champion)
    (store.folder / champion / "model.safetensors").write_bytes(b"damaged")
    assert reason_part in decide_on(store.add(weights)).reason
    assert store.champion == champion


def test_a_link_that_disagrees_with_its_parent_waits_even_if_it_is_no_worse(store, decide_on):
    champion = store.add(GOOD, through="2026-race-6", parent=store.add(GOOD))
    decide_on(champion)
    decision = decide_on(store.add((-1.0, -0.2), through="2026-race-7", parent=champion))
    assert decision.decision == "candidate" and f"disagree with those of its parent {champion}" in decision.reason
    assert decision.agreement < LIMITS.link_agreement < decision.own_spearman + 0.2


def test_a_link_with_a_missing_parent_is_refused(store, decide_on):
    parent = store.add(GOOD)
    link = store.add(NEAR, through="2026-race-7", parent=parent)
    (store.folder / parent / "model.safetensors").unlink()
    decision = decide_on(link)
    assert decision.decision == "candidate" and "can't be compared with those" in decision.reason


def test_a_good_candidate_with_failed_blocking_checks_waits(store, races):
    candidate = store.add(GOOD)
    with store.file.write("test") as connection:
        decision = decide(connection, candidate, races, store.folder, failed_checks=["keys_are_unique of x failed"])
    assert decision.decision == "candidate"
    assert decision.reason == "blocking checks did not pass: keys_are_unique of x failed"


def test_few_races_refuse_and_the_floor_is_far_from_chance_and_from_healthy_rankers(store, decide_on, races):
    decision = decide_on(store.add(GOOD), rows=races[races["weekend"] < "2026-race-2"])
    assert decision.decision == "candidate" and "2 races are stored to examine it by (needs 3)" in decision.reason
    healthy = {3: 0.346, 6: 0.461, 12: 0.508, 24: 0.556}  # the lowest of any window of 2018-2026
    for count, lowest in healthy.items():
        chance = 19**-0.5 / count**0.5
        assert 1.8 * chance < LIMITS.floor(count) < lowest - 0.08
    assert LIMITS.floor(24) > 8 * 19**-0.5 / 24**0.5


@pytest.fixture(scope="module")
def rows(real_features, real) -> pd.DataFrame:
    """Starters of 2024 to 2026."""
    rows = with_targets(real_features[real_features["season"] >= 2024], real["results"])
    return rows[rows["started"]]


@pytest.fixture(scope="module")
def chain(rows, tmp_path_factory) -> tuple[Store, list[Link]]:
    """A small ranker pretrained on 2024 and 2025, and its links over 2026."""
    folder = tmp_path_factory.mktemp("real")
    store = Store(WarehouseFile(folder / "f1.duckdb"), folder / "checkpoints")
    old = rows[rows["season"] < 2026]
    pretrained = pretrain_one(old, replace(RANKER, seasons=(2024, 2025), epochs=120), data_version=data_version(old),
                              folder=store.folder, created_at=NOW, log=lambda _: None)
    root = load_checkpoint(store.folder / pretrained.row["checkpoint"])
    chain = bring_up_to_date(root, rows, datetime(2026, 12, 31, tzinfo=UTC), DEFAULT, UPDATES.empty(),
                             folder=store.folder, created_at=NOW, log=lambda _: None)
    with store.file.write("test") as connection:
        store_checkpoints(connection, pd.DataFrame([pretrained.row, *(link.row for link in chain.made)]))
    return store, [root, *(link.checkpoint for link in chain.made)]


@pytest.fixture
def stored_chain(chain):
    """The chain, with no checkpoint promoted."""
    store, links = chain
    with store.file.write("test") as connection:
        connection.execute("UPDATE ranking.checkpoints SET promoted = false")
        connection.execute("DELETE FROM ranking.promotions")
    return store, links


def apply_rule(store: Store, candidate: str, rows: pd.DataFrame) -> tuple[str, str]:
    """Apply the rule's decision; return it with its reason."""
    with store.file.write("test") as connection:
        decision = decide(connection, candidate, rows, store.folder)
        record(connection, decision, NOW)
    return decision.decision, decision.reason


def set_champion(store: Store, checkpoint: str) -> None:
    """Make a checkpoint champion without the rule."""
    with store.file.write("test") as connection:
        connection.execute("UPDATE ranking.checkpoints SET promoted = (checkpoint = ?)", [checkpoint])


def known_at(rows: pd.DataFrame, link: Checkpoint) -> pd.DataFrame:
    """Rows up to the last race of a link."""
    last = rows.loc[rows["weekend"] == link.trained.trained_through, "race_start"].iloc[0]
    return rows[rows["race_start"] <= last]


def test_a_healthy_chain_is_promoted_at_every_link(stored_chain, rows):
    store, (root, *links) = stored_chain
    assert apply_rule(store, root.id, known_at(rows, root))[0] == "promoted"
    raced = [link for link in links if link.meta["kind"] == "ewc"]
    decisions = [apply_rule(store, link.id, known_at(rows, link)) for link in raced]
    assert [decision for decision, _ in decisions[2:]] == ["promoted"] * (len(raced) - 2)
    assert [reason for _, reason in decisions[:2]] == [f"{n} races to judge it by (needs 3)" for n in (1, 2)]
    assert store.champion == links[-1].id
    agreement, forgotten = store.rows("SELECT min(agreement), max(forgotten) FROM ranking.promotions")[0]
    assert agreement > LIMITS.link_agreement + 0.05 and forgotten < LIMITS.forgotten - 0.005


def shuffled(name: str) -> Callable[[torch.nn.Module], None]:
    def change(model: torch.nn.Module) -> None:
        weight = getattr(model, name)
        order = torch.randperm(weight.numel(), generator=torch.Generator().manual_seed(0))
        weight.copy_(weight.flatten()[order].view_as(weight))

    return change


def noisy(spreads: float) -> Callable[[torch.nn.Module], None]:
    def change(model: torch.nn.Module) -> None:
        generator = torch.Generator().manual_seed(0)
        for weight in model.parameters():
            weight.add_(torch.randn(weight.shape, generator=generator) * weight.std() * spreads)

    return change


def negated(model: torch.nn.Module) -> None:
    model.line.neg_()
    model.narrow.neg_()


def flipped(model: torch.nn.Module) -> None:
    """Flip the sign of one input, the grid position."""
    model.line[:, RANKER.features.index("grid_place")].neg_()


def constant(model: torch.nn.Module) -> None:
    model.line.zero_()
    model.narrow.zero_()


def redrawn(model: torch.nn.Module) -> None:
    generator = torch.Generator().manual_seed(1)
    for weight in model.parameters():
        weight.copy_(torch.randn(weight.shape, generator=generator) * weight.std())


def unfinished(model: torch.nn.Module) -> None:
    model.bias[0] = torch.nan


def add_changed(store: Store, link: Checkpoint, change: Callable[[torch.nn.Module], None]) -> str:
    """Store a copy of a link with add_changed weights; return its id."""
    model = type(link.trained.model)(link.trained.model.config)
    model.load_state_dict(link.trained.model.state_dict())
    with torch.no_grad():
        change(model)
    meta = link.meta
    other = save_checkpoint(replace(link.trained, model=model.eval()), store.folder, kind=meta["kind"],
                            data_version=meta["data_version"], parent=meta["parent"], created_at=NOW,
                            learning=meta.get("learning"))
    with store.file.write("test") as connection:
        store_checkpoints(connection, pd.DataFrame([row_of(other)]))
    return other.id


@pytest.mark.parametrize(("change", "reason_part"), [
    (negated, "its own weights have Spearman -0."), (constant, "give all cars the same score"),
    (redrawn, "its own weights"), (unfinished, "weights that are not finite"),
    (shuffled("line"), "not what an update makes: `line`"), (shuffled("widen"), "its own weights"),
    (shuffled("narrow"), "not what an update makes: `narrow`"), (flipped, "not what an update makes: `line`"),
    (noisy(1.0), "not what an update makes"), (noisy(0.2), "not what an update makes")])
def test_a_broken_link_of_a_real_chain_is_refused(stored_chain, rows, change, reason_part):
    """The champion has the same forecasts, and the five members hide much of the damage in one layer."""
    store, (*_, before, newest) = stored_chain
    set_champion(store, before.id)
    decision, reason = apply_rule(store, add_changed(store, newest, change), rows)
    assert decision == "candidate" and reason_part in reason
    assert store.champion == before.id


@pytest.mark.parametrize("change", [negated, constant, redrawn, unfinished])
def test_a_broken_pretraining_on_real_races_is_refused(stored_chain, rows, change):
    store, (root, *_) = stored_chain
    known = known_at(rows, root)
    other = add_changed(store, root, change)
    assert apply_rule(store, other, known)[0] == "candidate", "not as the first champion"
    assert apply_rule(store, root.id, known)[0] == "promoted"
    assert apply_rule(store, other, known)[0] == "candidate", "nor as a new pretraining"
    assert store.champion == root.id


def test_light_noise_is_accepted(stored_chain, rows):
    """Noise of the size that another processor causes."""
    store, (*_, before, newest) = stored_chain
    set_champion(store, before.id)
    assert apply_rule(store, add_changed(store, newest, noisy(1e-4)), rows)[0] == "promoted"


@pytest.mark.parametrize(("damage", "reason_part"), [
    (lambda weights: -weights, "contradict its scores"), (lambda weights: weights * np.inf, "not finite")])
def test_broken_probabilities_are_refused(stored_chain, rows, damage, reason_part):
    """Only one stage is broken; the scores are right."""
    store, (*_, before, newest) = stored_chain
    set_champion(store, before.id)
    places = newest.trained.places
    other = replace(newest.trained, places=replace(
        places, weights={**places.weights, "practice": damage(places.weights["practice"])}))
    meta = newest.meta
    saved = save_checkpoint(other, store.folder, kind="ewc", data_version=meta["data_version"], parent=meta["parent"],
                            created_at=NOW, learning=meta["learning"])
    with store.file.write("test") as connection:
        store_checkpoints(connection, pd.DataFrame([row_of(saved)]))
    decision, reason = apply_rule(store, saved.id, rows)
    assert decision == "candidate" and reason_part in reason
