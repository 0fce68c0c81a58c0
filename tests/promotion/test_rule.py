"""When a candidate becomes champion, and when it waits."""
from datetime import UTC, datetime

import pytest

from f1_pipelines.promotion import CantPromote, Rule, roll_back

# How a ranker weighs the gap in qualifying and the form.
GOOD, FAIR, POOR = (-1.0, -1.0), (-1.0, -0.3), (0.3, -0.1)


def test_the_first_one_needs_no_rival(place, decided):
    first = place.made(FAIR)
    assert decided(first).decision == "promoted"
    assert place.champion == first
    assert decided(first) is None, "there is nothing more to decide"


def test_a_better_one_wins_and_the_table_says_by_what(place, decided):
    champion, better = place.made(FAIR), place.made(GOOD)
    decided(champion)
    decision = decided(better)
    assert (decision.decision, decision.n_races, place.champion) == ("promoted", 6, better)
    assert decision.candidate_spearman > decision.champion_spearman > decision.grid_spearman
    assert place.rows("SELECT candidate, champion, decision, decided_by, margin FROM ranking.promotions "
                      "ORDER BY rowid") == [(champion, None, "promoted", "rule", 0.02),
                                            (better, champion, "promoted", "rule", 0.02)]


def test_one_that_is_worse_by_more_than_the_margin_waits(place, decided):
    champion, worse = place.made(GOOD), place.made(FAIR)
    decided(champion)
    decision = decided(worse)
    assert decision.decision == "candidate" and "worse than the champion by more than 0.02" in decision.reason
    assert place.champion == champion
    lacks = decision.champion_spearman - decision.candidate_spearman
    assert decided(worse, rule=Rule(margin=lacks + 0.001)).decision == "promoted"


def test_one_that_is_no_better_than_the_grid_waits_though_the_champion_is_not_either(place, decided):
    champion, poor = place.made(POOR), place.made((0.31, -0.1))
    decided(champion)
    decision = decided(poor)
    assert decision.decision == "candidate" and "not better than grid order" in decision.reason


def test_two_races_judge_nobody(place, decided, races):
    decided(place.made(FAIR))
    decision = decided(place.made(GOOD), rows=races[races["weekend"].isin(["2026-race-6", "2026-race-7"])])
    assert (decision.decision, decision.n_races) == ("candidate", 2)
    assert "needs 3" in decision.reason


def test_a_race_is_scored_by_who_had_not_learnt_from_it(place, decided):
    """A link that knows every race of the window is worth what its parent forecast."""
    decided(place.made(FAIR))
    parent = place.made(POOR)
    knows_all = place.made(GOOD, through="2026-race-7", parent=parent)
    alone = decided(parent)
    decision = decided(knows_all)
    assert decision.candidate_spearman == pytest.approx(alone.candidate_spearman)
    assert decision.decision == "candidate"
    knows_half = decided(place.made(GOOD, through="2026-race-4", parent=parent))
    assert knows_half.candidate_spearman > decision.candidate_spearman


def test_the_next_link_of_the_champions_chain_wins_as_long_as_it_beats_the_grid(place, decided):
    champion = place.made(GOOD, through="2026-race-6", parent=place.made(GOOD))
    decided(champion)
    following = decided(place.made(POOR, through="2026-race-7", parent=champion))
    assert following.decision == "promoted"
    assert following.candidate_spearman == following.champion_spearman, "both have the same forecasts behind them"


def test_what_the_champion_has_learnt_on_from_is_nothing_to_decide(place, decided):
    parent = place.made(GOOD)
    decided(place.made(FAIR, through="2026-race-6", parent=parent))
    assert decided(parent) is None


def test_pretrained_again_with_no_race_since_takes_over(place, decided, races):
    decided(place.made(FAIR))
    again = place.made(POOR)
    assert decided(again, rows=races.iloc[:0]).decision == "promoted"
    assert place.champion == again


def test_a_champion_that_cannot_be_used_gives_way(place, decided):
    broken, other = place.made(GOOD), place.made(POOR)
    decided(broken)
    (place.folder / broken / "model.safetensors").write_bytes(b"damaged")
    decision = decided(other)
    assert decision.decision == "promoted" and "damaged" in decision.reason


def test_whom_a_person_rolled_back_the_rule_leaves_alone_but_not_a_newer_one(place, decided):
    first = place.made(FAIR)
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
