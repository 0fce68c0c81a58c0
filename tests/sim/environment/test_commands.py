"""The grammar of the commands."""
from __future__ import annotations

import time

import pytest

from f1_pipelines.sim.environment.commands import GRAMMAR, MAX_CHARS, VERBS, BadCommand, Command, parse, usage

EXAMPLES = {
    "PIT_NOW": "hard", "SET_MODE": "fuel_save", "DRS_PERMISSION": "off", "HOLD_GAP": "44", "LET_BY": "4",
    "MANAGE_TYRE_TEMP": "cool", "CHECK_OPPONENT_STRATEGY": "16", "RADIO_DRIVER": '"box lap 7 for hards"',
    "DRAFT_PIT_WALL": '"rain from lap 5"', "BRIEF_MEDIA": '"a good day"', "REQUEST_INFO": "tyres",
}


def test_each_command_reads_back():
    assert len(VERBS) == 21  # the contract's number
    for verb in VERBS:
        text = f"{verb} {EXAMPLES[verb]}" if verb in EXAMPLES else verb
        command = parse(text)
        assert command.verb == verb
        assert parse(str(command)) == command
        assert parse(f"  {text.replace(verb, verb.lower())} \n") == command
        assert verb in usage()


@pytest.mark.parametrize(("text", "wanted"), [
    ("PIT", "PIT_NOW"), ("", "PIT_NOW"), ("   ", "STAY_OUT"), ("PIT_NOW", "soft|medium|hard|inter|wet"),
    ("PIT_NOW slick", "soft|medium|hard|inter|wet"), ("STAY_OUT please", "takes nothing"),
    ("SET_MODE fast", "push|race|conserve|fuel_save|tyre_save|defend"), ("HOLD_GAP abc", "car number"),
    ("HOLD_GAP 0", "car number"), ("LET_BY 100", "car number"), ("LET_BY ²", "car number"),
    ("RADIO_DRIVER box", "double quotes"), ('RADIO_DRIVER ""', "double quotes"), ('RADIO_DRIVER "', "double quotes"),
    ('RADIO_DRIVER "a" DONE "b"', "double quotes"), ('RADIO_DRIVER "a\nDONE"', "double quotes"),
    ("REQUEST_INFO secrets", "circuit|tyres|rules|standings"), ("DRS_PERMISSION maybe", "on|off"),
    ("p\u0131t_now hard", "Valid"), ("\u017fet_mode push", "Valid"), ("SET_MODE pu\u017fh", "push"),
    ("STAY_OUT\nPIT_NOW hard", "Valid"), ('{"command": "STAY_OUT"}', "Valid"), ("<think>hm</think> STAY_OUT", "Valid"),
    (None, "NoneType"), (7, "int"), (b"DONE", "bytes"), (["DONE"], "list"),
])
def test_an_invalid_command_names_the_valid_ones(text, wanted):
    with pytest.raises(BadCommand) as problem:
        parse(text)
    assert wanted in str(problem.value)
    if "Valid" in str(problem.value):
        assert all(verb in str(problem.value) for verb in VERBS)


@pytest.mark.parametrize("text", [
    "x" * 2_000_000, "PIT_NOW " + "hard" * 500_000, 'RADIO_DRIVER "' + "é" * 2_000_000 + '"', "\x00" * 2_000_000])
def test_two_megabytes_are_refused_at_once_and_not_echoed(text):
    begin = time.perf_counter()
    with pytest.raises(BadCommand) as problem:
        parse(text)
    assert time.perf_counter() - begin < 0.05
    assert len(str(problem.value)) < 700
    assert str(MAX_CHARS) in str(problem.value)


def test_the_grammar_and_the_examples_cover_each_other():
    assert {verb for verb, kind in GRAMMAR.items() if kind is not None} == set(EXAMPLES)
    assert Command("PIT_NOW", "hard") == parse("pit_now HARD")


@pytest.mark.parametrize("fields", [
    {"verb": "PIT_NOW", "word": "banana"}, {"verb": "SET_MODE"}, {"verb": "NOPE"}, {"verb": None}, {"verb": ["DONE"]},
    {"verb": "RADIO_DRIVER", "text": None}, {"verb": "RADIO_DRIVER", "text": "x" * 2_000_000},
    {"verb": "REQUEST_INFO", "word": "nope"}, {"verb": "HOLD_GAP", "car": True}, {"verb": "STAY_OUT", "word": "please"},
    {"verb": "DONE", "car": 5}, {"verb": "LET_BY", "car": 0},
])
def test_an_invalid_command_cannot_be_constructed(fields):
    with pytest.raises(BadCommand, match="Valid"):
        Command(**fields)
