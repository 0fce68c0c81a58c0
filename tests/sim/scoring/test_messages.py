"""Messages earn by what they say about the race, not by their words."""
from __future__ import annotations

from dataclasses import replace

import pytest

from f1_pipelines.sim.engine.parameters import GREEN, HARD, SC
from f1_pipelines.sim.policies.scripted import WORDS
from f1_pipelines.sim.scoring.claims import claims_of
from f1_pipelines.sim.scoring.messages import Course, Lap, Message, comms, due_topics

GAPS = {44: 2.4, 16: -1.1}
DRY = tuple(Lap(GREEN, 0.0, GAPS, frozenset()) for _ in range(12))
STOP_AT_7 = Course(DRY, ((7, HARD, True),))


def radio(lap: int, text: str, verb: str = "RADIO_DRIVER") -> Message:
    return Message(lap, verb, text)


def score(course: Course, *messages: Message) -> float:
    return comms(messages, course)[0]


def test_the_coming_stop_with_lap_and_compound_earns_in_full():
    assert score(STOP_AT_7, radio(6, "Box next lap for hards")) == 1.0
    assert score(STOP_AT_7, radio(5, "we stop on lap 7, hard tyres")) == 1.0
    assert score(STOP_AT_7, radio(6, "box soon")) == 0.5  # names neither
    assert score(STOP_AT_7, radio(8, "Box lap 9 for hards")) == 0.0  # will not happen
    assert score(STOP_AT_7, radio(6, "Box next lap for softs")) == 0.0  # wrong tyre
    assert score(STOP_AT_7, radio(1, "Box lap 7 for hards")) == 0.0  # true, but six laps too early


def test_keywords_without_truth_earn_nothing_however_often():
    assert score(STOP_AT_7, *(radio(lap, WORDS) for lap in range(1, 12))) == 0.0
    assert score(STOP_AT_7, *(radio(lap, "box") for lap in range(1, 12))) < 0.5


@pytest.mark.parametrize("text", [
    "Do not box lap 7 for hards", "Never pit for hards on lap 7", "We won't stop on lap 7, no hards", "No safety car",
    "It will not rain on lap 8", "Rain unlikely on lap 8", "Car 44 is not ahead", "don\u2019t box lap 7 for hards",
])
def test_saying_the_opposite_claims_nothing(text):
    assert claims_of(text, 6) == []


def test_saying_it_again_costs():
    once = score(STOP_AT_7, radio(5, "Box lap 7 for hards"))
    twice = score(STOP_AT_7, radio(5, "Box lap 7 for hards"), radio(6, "Box lap 7 for hards"))
    assert twice < once
    messages = [radio(lap, "Box lap 7 for hards") for lap in (5, 6)]
    assert comms(messages, STOP_AT_7)[1] == ["true", "repeated"]


def test_rain_earns_in_time_only():
    wet = Course(DRY[:5] + tuple(replace(lap, rain=0.6) for lap in DRY[5:]), ())
    assert due_topics(wet) == ["stay", "rain"]
    assert score(wet, radio(4, "Rain from lap 6")) == 0.5
    assert score(wet, radio(4, "no rain, stays dry")) == 0.0
    assert score(wet, radio(11, "rain now")) == 0.0
    assert score(STOP_AT_7, radio(4, "Rain from lap 6")) == 0.0


def test_a_safety_car_earns_while_it_is_out_and_by_its_name():
    closed = Course(DRY[:5] + tuple(replace(lap, status=SC) for lap in DRY[5:8]) + DRY[8:], ((7, HARD, False),))
    assert due_topics(closed) == ["closed"]
    assert score(closed, radio(6, "Safety car is out")) == 1.0
    assert score(closed, radio(6, "VSC deployed")) == 0.0
    assert score(closed, radio(3, "safety car")) == 0.0
    assert score(closed, radio(3, "safety car possible"), radio(6, "Safety car")) > 0.8  # a guess is no claim


def test_the_rival_earns_if_the_claim_is_true():
    title = replace(STOP_AT_7, stops=(), rival=44)
    assert due_topics(title) == ["stay", "rival"]
    assert score(title, radio(5, "Car 44 is 2.4 s behind")) == 0.5
    assert score(title, radio(5, "Car 44 is 2.4 s ahead")) == 0.0
    assert score(title, radio(5, "Car 44 is 9 s behind")) == 0.0
    assert score(title, radio(5, "Car 16 is ahead")) == 0.0  # true, but not the rival


def test_statements_to_the_media_must_be_true_and_earn_nothing():
    assert score(STOP_AT_7, radio(6, "Box lap 7 for hards", "BRIEF_MEDIA")) == 0.0
    assert score(STOP_AT_7, radio(6, "Box lap 7 for hards"), radio(8, "we saw rain now", "BRIEF_MEDIA")) == 0.75


@pytest.mark.parametrize("text", ["", "...", "box" * 100, "lap 999 box lap 0 for hards", "#44 #16 car car 7",
                                  "rain lap 7.5 s"])
def test_any_text_is_scored(text):
    claims_of(text, 3)
    assert 0.0 <= score(STOP_AT_7, radio(3, text)) <= 1.0
