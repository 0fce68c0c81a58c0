"""When a candidate becomes champion, and when it waits."""
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from f1_pipelines.promotion import CantPromote, Rule, roll_back

# Weights of the qualifying gap and the form.
GOOD, NEAR, FAIR, POOR = (-1.0, -1.0), (-1.0, -0.6), (-1.0, -0.3), (0.3, -0.1)


def test_the_first_candidate_is_promoted_without_comparison(store, decide_on):
    first = store.add(FAIR)
    assert decide_on(first).decision == "promoted"
    assert store.champion == first
    assert decide_on(first) is None, "the champion needs no decision"


def test_a_better_candidate_wins_and_the_numbers_are_stored(store, decide_on):
    champion, better = store.add(FAIR), store.add(GOOD)
    decide_on(champion)
    decision = decide_on(better)
    assert (decision.decision, decision.n_races, store.champion) == ("promoted", 8, better)
    assert decision.candidate_spearman > decision.champion_spearman > decision.grid_spearman
    assert store.rows("SELECT candidate, champion, decision, decided_by, margin FROM ranking.promotions "
                      "ORDER BY rowid") == [(champion, None, "promoted", "rule", 0.02),
                                            (better, champion, "promoted", "rule", 0.02)]


def test_a_candidate_with_worse_forecasts_waits(store, decide_on):
    champion, worse = store.add(GOOD), store.add(FAIR)
    decide_on(champion)
    decision = decide_on(worse)
    assert decision.decision == "candidate" and "worse than the champion, by 0.03" in decision.reason
    assert decision.over_champion_low < decision.over_champion_high < 0 < decision.over_grid_low
    assert store.champion == champion


def test_the_margin_applies_from_enough_races(store, decide_on):
    champion, worse = store.add(GOOD), store.add(FAIR)
    decide_on(champion)
    strict = Rule(interval_races=99, enough_races=8)
    decision = decide_on(worse, rule=strict)
    assert decision.decision == "candidate" and "worse than the champion by more than 0.02" in decision.reason
    deficit = decision.champion_spearman - decision.candidate_spearman
    assert decide_on(worse, rule=replace(strict, margin=deficit + 0.001)).decision == "promoted"


def test_forecasts_below_grid_order_wait_from_enough_races(store, decide_on, races):
    """The grid of these races is their result, so every forecast is worse."""
    rows = races.assign(grid_position=races["official_order"].astype("float64"))
    champion = store.add(FAIR)
    decide_on(champion, rows=rows)
    following = store.add(FAIR, through="2026-race-7", parent=champion)
    decision = decide_on(following, rows=rows, rule=Rule(enough_races=8))
    assert decision.decision == "candidate" and "worse than grid order" in decision.reason
    assert decision.over_grid_high < 0
    assert decide_on(following, rows=rows).decision == "promoted"


def test_two_races_are_too_few_to_decide(store, decide_on):
    decide_on(store.add(FAIR, through="2026-race-5"))
    decision = decide_on(store.add(GOOD, through="2026-race-5", parent=store.add(GOOD)))
    assert (decision.decision, decision.n_races) == ("candidate", 2)
    assert "2 races to judge it by (needs 3)" in decision.reason


def test_a_race_is_scored_by_a_link_that_had_not_learnt_from_it(store, decide_on):
    """A link that learnt from every race gets the forecasts of its parent."""
    decide_on(store.add(GOOD))
    parent = store.add(NEAR)
    parent_decision = decide_on(parent)
    decision = decide_on(store.add(GOOD, through="2026-race-7", parent=parent))
    assert decision.own_spearman > parent_decision.own_spearman
    assert decision.candidate_spearman == pytest.approx(parent_decision.candidate_spearman)
    half = decide_on(store.add(GOOD, through="2026-race-4", parent=parent))
    assert half.candidate_spearman > decision.candidate_spearman


def test_forecasts_of_links_with_other_settings_do_not_count(store, decide_on):
    """The pretrained ranker's forecast of the first race still counts."""
    decide_on(store.add(NEAR))
    root = store.add(NEAR)
    ours, other = ({"settings": {"epochs": epochs}} for epochs in (10, 20))
    first = store.add(GOOD, through="2026-race-0", parent=root, learning=other)
    second = store.add(GOOD, through="2026-race-5", parent=first, learning=ours)
    same_settings = decide_on(store.add(GOOD, through="2026-race-5", parent=store.add(
        GOOD, through="2026-race-0", parent=root, learning=ours), learning=ours))
    assert same_settings.n_races == 8
    assert decide_on(second).n_races == 3, "the first race by the pretrained ranker, the last two by itself"


def test_the_next_link_of_the_champions_chain_is_promoted_on_its_own_weights(store, decide_on):
    """Both have the same forecasts, so forecasts can't detect a broken next link."""
    champion = store.add(GOOD, through="2026-race-6", parent=store.add(GOOD))
    decide_on(champion)
    following = decide_on(store.add(NEAR, through="2026-race-7", parent=champion))
    assert following.decision == "promoted"
    assert following.candidate_spearman == following.champion_spearman
    assert following.over_champion_low == following.over_champion_high == 0


def test_an_ancestor_of_the_champion_needs_no_decision(store, decide_on):
    parent = store.add(GOOD)
    decide_on(store.add(NEAR, through="2026-race-6", parent=parent))
    assert decide_on(parent) is None


def test_a_new_pretraining_without_a_race_since_is_promoted(store, decide_on):
    decide_on(store.add(FAIR, through="2026-race-7"))
    again = store.add(NEAR, through="2026-race-7")
    assert decide_on(again).reason == "pretrained again, and no race since to judge it by"
    assert store.champion == again


def test_an_unusable_champion_is_replaced(store, decide_on):
    broken, other = store.add(GOOD), store.add(FAIR)
    decide_on(broken)
    (store.folder / broken / "model.safetensors").write_bytes(b"damaged")
    decision = decide_on(other)
    assert decision.decision == "promoted" and "damaged" in decision.reason


def test_a_rolled_back_checkpoint_stays_out_until_a_later_race(store, decide_on, races):
    store.load(races)
    first = store.add(NEAR)
    second = store.add(GOOD, through="2026-race-1", parent=first)
    decide_on(first)
    decide_on(second)
    with store.file.write("test") as connection:
        roll_back(connection, "it looks odd", datetime(2026, 8, 2, tzinfo=UTC), store.folder)
    assert store.champion == first
    decision = decide_on(second)
    assert decision.decision == "candidate" and f"a person decided against {second}" in decision.reason
    renewed = store.add((-1.0, -0.9), through="2026-race-1", parent=first)  # the same race with an amended result
    assert "a person decided against" in decide_on(renewed).reason
    assert store.champion == first
    newer = store.add(GOOD, through="2026-race-2", parent=second)
    assert decide_on(newer).decision == "promoted"
    assert store.champion == newer


def test_a_repeated_decision_to_wait_is_stored_once(store, decide_on):
    decide_on(store.add(GOOD))
    worse = store.add(FAIR)
    assert decide_on(worse) == decide_on(worse)
    assert store.rows("SELECT count(*) FROM ranking.promotions") == [(2,)]


def test_an_unknown_candidate_is_refused(decide_on):
    with pytest.raises(CantPromote, match='"nobody" is no checkpoint of this warehouse'):
        decide_on("nobody")
