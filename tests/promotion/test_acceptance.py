"""Whose own weights may serve: broken ones never, however good the forecasts of their ancestors were."""
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
from tests.promotion.conftest import NOW, Place, row_of

# How a ranker weighs the gap in qualifying and the form.
GOOD, NEAR = (-1.0, -1.0), (-1.0, -0.6)
pytestmark = pytest.mark.xdist_group("acceptance")  # what they share is built once
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


def test_a_broken_one_is_not_the_first_champion(place, decided, broken):
    weights, why = broken
    decision = decided(place.made(weights))
    assert decision.decision == "candidate" and why in decision.reason
    assert place.rows("SELECT count(*) FROM ranking.checkpoints WHERE promoted") == [(0,)]
    [(candidate, reason)] = place.rows("SELECT candidate, reason FROM ranking.promotions")
    assert (candidate, reason) == (decision.candidate, decision.reason)


def test_a_broken_next_link_does_not_follow_the_champion(place, decided, broken):
    weights, why = broken
    champion = place.made(GOOD, through="2026-race-6", parent=place.made(GOOD))
    decided(champion)
    decision = decided(place.made(weights, through="2026-race-7", parent=champion))
    assert decision.decision == "candidate" and why in decision.reason
    assert place.champion == champion


def test_a_broken_one_that_is_pretrained_again_does_not_take_over(place, decided, broken):
    weights, why = broken
    champion = place.made(GOOD, through="2026-race-7")
    decided(champion)
    decision = decided(place.made(weights, through="2026-race-7"))
    assert decision.decision == "candidate" and why in decision.reason
    assert place.champion == champion


def test_a_broken_one_does_not_replace_a_champion_that_cannot_be_used(place, decided, broken):
    weights, why = broken
    champion = place.made(GOOD)
    decided(champion)
    (place.folder / champion / "model.safetensors").write_bytes(b"damaged")
    assert why in decided(place.made(weights)).reason
    assert place.champion == champion


def test_a_link_that_disagrees_with_its_parent_waits_though_it_is_no_worse(place, decided):
    champion = place.made(GOOD, through="2026-race-6", parent=place.made(GOOD))
    decided(champion)
    decision = decided(place.made((-1.0, -0.2), through="2026-race-7", parent=champion))
    assert decision.decision == "candidate" and f"disagree with those of its parent {champion}" in decision.reason
    assert decision.agreement < LIMITS.link_agreement < decision.own_spearman + 0.2


def test_a_link_whose_parent_is_gone_cannot_be_compared(place, decided):
    parent = place.made(GOOD)
    link = place.made(NEAR, through="2026-race-7", parent=parent)
    (place.folder / parent / "model.safetensors").unlink()
    decision = decided(link)
    assert decision.decision == "candidate" and "can't be compared with those" in decision.reason


def test_what_did_not_pass_its_blocking_checks_waits_however_good_it_is(place, races):
    candidate = place.made(GOOD)
    with place.file.write("test") as connection:
        decision = decide(connection, candidate, races, place.folder, failed_checks=["keys_are_unique of x failed"])
    assert decision.decision == "candidate"
    assert decision.reason == "blocking checks did not pass: keys_are_unique of x failed"


def test_few_races_examine_nobody_and_the_floor_stays_far_from_chance_and_from_the_healthy(place, decided, races):
    decision = decided(place.made(GOOD), rows=races[races["weekend"] < "2026-race-2"])
    assert decision.decision == "candidate" and "2 races are stored to examine it by (needs 3)" in decision.reason
    healthy = {3: 0.346, 6: 0.461, 12: 0.508, 24: 0.556}  # the lowest of any window of 2018-2026
    for count, lowest in healthy.items():
        chance = 19**-0.5 / count**0.5
        assert 1.8 * chance < LIMITS.floor(count) < lowest - 0.08
    assert LIMITS.floor(24) > 8 * 19**-0.5 / 24**0.5


@pytest.fixture(scope="module")
def rows(real_features, real) -> pd.DataFrame:
    """Starters of 2024 to 2026."""
    judged_rows = with_targets(real_features[real_features["season"] >= 2024], real["results"])
    return judged_rows[judged_rows["started"]]


@pytest.fixture(scope="module")
def chain(rows, tmp_path_factory) -> tuple[Place, list[Link]]:
    """A small ranker pretrained on 2024 and 2025, and its links over 2026."""
    folder = tmp_path_factory.mktemp("real")
    place = Place(WarehouseFile(folder / "f1.duckdb"), folder / "checkpoints")
    old = rows[rows["season"] < 2026]
    made = pretrain_one(old, replace(RANKER, seasons=(2024, 2025), epochs=120), data_version=data_version(old),
                        folder=place.folder, created_at=NOW, log=lambda _: None)
    root = load_checkpoint(place.folder / made.row["checkpoint"])
    grown = bring_up_to_date(root, rows, datetime(2026, 12, 31, tzinfo=UTC), DEFAULT, UPDATES.empty(),
                             folder=place.folder, created_at=NOW, log=lambda _: None)
    with place.file.write("test") as connection:
        store_checkpoints(connection, pd.DataFrame([made.row, *(link.row for link in grown.made)]))
    return place, [root, *(link.checkpoint for link in grown.made)]


@pytest.fixture
def stored_chain(chain):
    """The chain, and nobody promoted."""
    place, links = chain
    with place.file.write("test") as connection:
        connection.execute("UPDATE ranking.checkpoints SET promoted = false")
        connection.execute("DELETE FROM ranking.promotions")
    return place, links


def settled(place: Place, candidate: str, rows: pd.DataFrame) -> tuple[str, str]:
    """The rule's decision, carried out, and why."""
    with place.file.write("test") as connection:
        decision = decide(connection, candidate, rows, place.folder)
        record(connection, decision, NOW)
    return decision.decision, decision.reason


def by_hand(place: Place, checkpoint: str) -> None:
    """It is champion, whatever the rule says."""
    with place.file.write("test") as connection:
        connection.execute("UPDATE ranking.checkpoints SET promoted = (checkpoint = ?)", [checkpoint])


def known_at(rows: pd.DataFrame, link: Checkpoint) -> pd.DataFrame:
    """What was stored when a link was made."""
    last = rows.loc[rows["weekend"] == link.trained.trained_through, "race_start"].iloc[0]
    return rows[rows["race_start"] <= last]


def test_a_healthy_chain_is_promoted_at_every_link(stored_chain, rows):
    place, (root, *links) = stored_chain
    assert settled(place, root.id, known_at(rows, root))[0] == "promoted"
    raced = [link for link in links if link.meta["kind"] == "ewc"]
    decisions = [settled(place, link.id, known_at(rows, link)) for link in raced]
    assert [decision for decision, _ in decisions[2:]] == ["promoted"] * (len(raced) - 2)
    assert [why for _, why in decisions[:2]] == ["1 races to judge it by (needs 3)", "2 races to judge it by (needs 3)"]
    assert place.champion == links[-1].id
    agreement, forgotten = place.rows("SELECT min(agreement), max(forgotten) FROM ranking.promotions")[0]
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
    """Of one input, the place on the grid."""
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


def changed(place: Place, link: Checkpoint, change: Callable[[torch.nn.Module], None]) -> str:
    """Stores a link with other weights, all else as it is."""
    model = type(link.trained.model)(link.trained.model.config)
    model.load_state_dict(link.trained.model.state_dict())
    with torch.no_grad():
        change(model)
    meta = link.meta
    other = save_checkpoint(replace(link.trained, model=model.eval()), place.folder, kind=meta["kind"],
                            data_version=meta["data_version"], parent=meta["parent"], created_at=NOW,
                            learning=meta.get("learning"))
    with place.file.write("test") as connection:
        store_checkpoints(connection, pd.DataFrame([row_of(other)]))
    return other.id


@pytest.mark.parametrize(("change", "why"), [
    (negated, "its own weights have Spearman -0."), (constant, "give all cars the same score"),
    (redrawn, "its own weights"), (unfinished, "weights that are not finite"),
    (shuffled("line"), "not what an update makes: `line`"), (shuffled("widen"), "its own weights"),
    (shuffled("narrow"), "not what an update makes: `narrow`"), (flipped, "not what an update makes: `line`"),
    (noisy(1.0), "not what an update makes"), (noisy(0.2), "not what an update makes")])
def test_a_broken_link_of_a_real_chain_is_refused(stored_chain, rows, change, why):
    """Beside a champion whose forecasts are its own; five members hide much of what is broken in one layer."""
    place, (*_, before, newest) = stored_chain
    by_hand(place, before.id)
    decision, reason = settled(place, changed(place, newest, change), rows)
    assert decision == "candidate" and why in reason
    assert place.champion == before.id


@pytest.mark.parametrize("change", [negated, constant, redrawn, unfinished])
def test_a_broken_pretraining_on_real_races_is_refused(stored_chain, rows, change):
    place, (root, *_) = stored_chain
    known = known_at(rows, root)
    other = changed(place, root, change)
    assert settled(place, other, known)[0] == "candidate", "as the first champion"
    assert settled(place, root.id, known)[0] == "promoted"
    assert settled(place, other, known)[0] == "candidate", "as one that is pretrained again"
    assert place.champion == root.id


def test_light_noise_is_no_damage(stored_chain, rows):
    """As from another processor."""
    place, (*_, before, newest) = stored_chain
    by_hand(place, before.id)
    assert settled(place, changed(place, newest, noisy(1e-4)), rows)[0] == "promoted"


@pytest.mark.parametrize(("damage", "why"), [
    (lambda weights: -weights, "contradict its scores"), (lambda weights: weights * np.inf, "not finite")])
def test_broken_chances_are_refused(stored_chain, rows, damage, why):
    """Of one stage alone, with scores as they should be."""
    place, (*_, before, newest) = stored_chain
    by_hand(place, before.id)
    places = newest.trained.places
    other = replace(newest.trained, places=replace(
        places, weights={**places.weights, "practice": damage(places.weights["practice"])}))
    meta = newest.meta
    saved = save_checkpoint(other, place.folder, kind="ewc", data_version=meta["data_version"], parent=meta["parent"],
                            created_at=NOW, learning=meta["learning"])
    with place.file.write("test") as connection:
        store_checkpoints(connection, pd.DataFrame([row_of(saved)]))
    decision, reason = settled(place, saved.id, rows)
    assert decision == "candidate" and why in reason
