"""When a candidate becomes champion, and when it waits."""
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from f1_pipelines.promotion import CantPromote, Rule, roll_back

# How a ranker weighs the gap in qualifying and the form.
GOOD, NEAR, FAIR, POOR = (-1.0, -1.0), (-1.0, -0.6), (-1.0, -0.3), (0.3, -0.1)


def test_the_first_one_needs_no_rival(place, decided):
    first = place.made(FAIR)
    assert decided(first).decision == "promoted"
    assert place.champion == first
    assert decided(first) is None, "there is nothing more to decide"


def test_a_better_one_wins_and_the_table_says_by_what(place, decided):
    champion, better = place.made(FAIR), place.made(GOOD)
    decided(champion)
    decision = decided(better)
    assert (decision.decision, decision.n_races, place.champion) == ("promoted", 8, better)
    assert decision.candidate_spearman > decision.champion_spearman > decision.grid_spearman
    assert place.rows("SELECT candidate, champion, decision, decided_by, margin FROM ranking.promotions "
                      "ORDER BY rowid") == [(champion, None, "promoted", "rule", 0.02),
                                            (better, champion, "promoted", "rule", 0.02)]


def test_one_whose_forecasts_are_worse_waits(place, decided):
    champion, worse = place.made(GOOD), place.made(FAIR)
    decided(champion)
    decision = decided(worse)
    assert decision.decision == "candidate" and "worse than the champion, by 0.03" in decision.reason
    assert decision.over_champion_low < decision.over_champion_high < 0 < decision.over_grid_low
    assert place.champion == champion


def test_a_mean_below_the_margin_counts_where_there_are_races_enough(place, decided):
    champion, worse = place.made(GOOD), place.made(FAIR)
    decided(champion)
    strict = Rule(interval_races=99, enough_races=8)
    decision = decided(worse, rule=strict)
    assert decision.decision == "candidate" and "worse than the champion by more than 0.02" in decision.reason
    lacks = decision.champion_spearman - decision.candidate_spearman
    assert decided(worse, rule=replace(strict, margin=lacks + 0.001)).decision == "promoted"


def test_forecasts_below_grid_order_are_no_forecasts(place, decided, races):
    """The grid of these races is their result; over few races nobody waits for that, over enough everybody."""
    rows = races.assign(grid_position=races["official_order"].astype("float64"))
    champion = place.made(FAIR)
    decided(champion, rows=rows)
    following = place.made(FAIR, through="2026-race-7", parent=champion)
    waits = decided(following, rows=rows, rule=Rule(enough_races=8))
    assert waits.decision == "candidate" and "worse than grid order" in waits.reason and waits.over_grid_high < 0
    assert decided(following, rows=rows).decision == "promoted"


def test_two_races_judge_nobody(place, decided):
    decided(place.made(FAIR, through="2026-race-5"))
    decision = decided(place.made(GOOD, through="2026-race-5", parent=place.made(GOOD)))
    assert (decision.decision, decision.n_races) == ("candidate", 2)
    assert "2 races to judge it by (needs 3)" in decision.reason


def test_a_race_is_scored_by_who_had_not_learnt_from_it(place, decided):
    """A link that knows every race is worth what its parent forecast."""
    decided(place.made(GOOD))
    parent = place.made(NEAR)
    alone = decided(parent)
    decision = decided(place.made(GOOD, through="2026-race-7", parent=parent))
    assert decision.own_spearman > alone.own_spearman
    assert decision.candidate_spearman == pytest.approx(alone.candidate_spearman)
    knows_half = decided(place.made(GOOD, through="2026-race-4", parent=parent))
    assert knows_half.candidate_spearman > decision.candidate_spearman


def test_what_a_link_of_other_settings_forecast_is_not_the_candidates(place, decided):
    """The pretrained ranker's forecast of the first race counts, those of a chain by other settings do not."""
    decided(place.made(NEAR))
    root = place.made(NEAR)
    ours, other = ({"settings": {"epochs": epochs}} for epochs in (10, 20))
    first = place.made(GOOD, through="2026-race-0", parent=root, learning=other)
    second = place.made(GOOD, through="2026-race-5", parent=first, learning=ours)
    alike = decided(place.made(GOOD, through="2026-race-5", parent=place.made(
        GOOD, through="2026-race-0", parent=root, learning=ours), learning=ours))
    assert alike.n_races == 8
    assert decided(second).n_races == 3, "the first race by the pretrained one, the last two by itself"


def test_the_next_link_of_the_champions_chain_wins_by_its_own_weights_alone(place, decided):
    """Both have the same forecasts behind them, so that no forecast tells the next link from a broken one."""
    champion = place.made(GOOD, through="2026-race-6", parent=place.made(GOOD))
    decided(champion)
    following = decided(place.made(NEAR, through="2026-race-7", parent=champion))
    assert following.decision == "promoted"
    assert following.candidate_spearman == following.champion_spearman
    assert following.over_champion_low == following.over_champion_high == 0


def test_what_the_champion_has_learnt_on_from_is_nothing_to_decide(place, decided):
    parent = place.made(GOOD)
    decided(place.made(NEAR, through="2026-race-6", parent=parent))
    assert decided(parent) is None


def test_pretrained_again_with_no_race_since_takes_over(place, decided):
    decided(place.made(FAIR, through="2026-race-7"))
    again = place.made(NEAR, through="2026-race-7")
    assert decided(again).reason == "pretrained again, and no race since to judge it by"
    assert place.champion == again


def test_a_champion_that_cannot_be_used_gives_way(place, decided):
    broken, other = place.made(GOOD), place.made(FAIR)
    decided(broken)
    (place.folder / broken / "model.safetensors").write_bytes(b"damaged")
    decision = decided(other)
    assert decision.decision == "promoted" and "damaged" in decision.reason


def test_whom_a_person_rolled_back_the_rule_leaves_alone_but_not_a_newer_one(place, decided, races):
    place.load(races)
    first = place.made(NEAR)
    second = place.made(GOOD, through="2026-race-1", parent=first)
    decided(first)
    decided(second)
    with place.file.write("test") as connection:
        roll_back(connection, "it looks odd", datetime(2026, 8, 2, tzinfo=UTC), place.folder)
    assert place.champion == first
    decision = decided(second)
    assert decision.decision == "candidate" and f"a person decided against {second}" in decision.reason
    renewed = place.made((-1.0, -0.9), through="2026-race-1", parent=first)  # the same race, its result amended
    assert "a person decided against" in decided(renewed).reason
    assert place.champion == first
    newer = place.made(GOOD, through="2026-race-2", parent=second)
    assert decided(newer).decision == "promoted"
    assert place.champion == newer


def test_the_same_decision_again_is_no_news(place, decided):
    decided(place.made(GOOD))
    worse = place.made(FAIR)
    assert decided(worse) == decided(worse)
    assert place.rows("SELECT count(*) FROM ranking.promotions") == [(2,)]


def test_an_unknown_candidate_is_told(decided):
    with pytest.raises(CantPromote, match='"nobody" is no checkpoint of this warehouse'):
        decided("nobody")
