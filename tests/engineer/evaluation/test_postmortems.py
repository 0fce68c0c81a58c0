"""Post-mortems: what was done wrong on purpose is found, in its lap, with what could be known."""
from __future__ import annotations

import re
from collections import Counter
from dataclasses import asdict
from datetime import UTC, datetime

import pandas as pd
import pytest

from f1_pipelines.engineer.evaluation.failures import KINDS
from f1_pipelines.engineer.evaluation.postmortems import PostMortem, first_costly, postmortem, replay_rollout
from f1_pipelines.engineer.evaluation.regret import regret_of
from f1_pipelines.sim.environment.environment import RaceEnvironment
from f1_pipelines.sim.scenarios import FAMILIES, Scenario, make_scenario
from f1_pipelines.tables.strategy import POSTMORTEMS

NOW = datetime(2026, 11, 29, tzinfo=UTC)


def found(scenario: Scenario, outputs: list[str]) -> PostMortem:
    return postmortem(replay_rollout(scenario, outputs), regret_of(scenario, outputs))


def oracle(scenario: Scenario) -> list[str]:
    return [str(command) for command in regret_of(scenario, []).oracle]


def first_stop(calls: list[str]) -> int | None:
    return next((k for k, call in enumerate(calls) if call.startswith("PIT_NOW")), None)


@pytest.mark.parametrize(("family", "seed", "policy", "kind", "signal"), [
    ("dry_strategy_sprint", 1, "stay_out", "unread_fuel", "INSPECT_FUEL_MARGIN in lap 1 would have said: Fuel -"),
    ("late_safety_car", 1, "stay_out", "missed_safety_car", "said SC; a stop cost"),
    ("late_safety_car", 0, "stay_out", "rule_broken", "Two dry compounds required"),
    ("dry_strategy_sprint", 0, "keyword_radio", "false_message", "showed green, dry"),
    ("dry_strategy_sprint", 0, "stay_out", "silent_pit_wall", "knew its own plan"),
    ("tyre_cliff_management", 1, "stay_out", "missed_stop", "INSPECT_TYRE_DEGRADATION in lap 3 would have said"),
    ("championship_decider", 1, "done", "handed_over", "laps were still to go")])
def test_bad_policies_fail_as_they_do(family, seed, policy, kind, signal, calls_of):
    scenario = make_scenario(family, seed)
    outputs = calls_of(scenario, policy)
    told = found(scenario, outputs)
    assert told.kind == kind and signal in told.signal
    assert told.command == outputs[told.lap - 1] and told.command in told.lesson
    assert told.cost > 0.02 and told.regret >= told.cost - 1e-9


def spoilt(best: list[str], how: str) -> list[str]:
    """The oracle's calls with one thing wrong."""
    k = first_stop(best)
    if how == "no stop":
        return [*best[:k], "STAY_OUT", *best[k + 1:]]
    if how == "gibberish":
        return [*best[:k], "box box box", *best[k + 1:]]
    if how == "early":
        return [*best[:k - 2], best[k], "STAY_OUT", "STAY_OUT", *best[k + 1:]]
    if how == "compound":
        return [*best[:k], "PIT_NOW soft" if best[k] == "PIT_NOW hard" else "PIT_NOW hard", *best[k + 1:]]
    return ["STAY_OUT" if call.startswith("RADIO_DRIVER") else call for call in best]


@pytest.mark.parametrize(("how", "kinds"), [
    ("no stop", {"missed_stop", "rule_broken", "missed_safety_car", "slept_through_rain", "tyres_past_the_cliff"}),
    ("early", {"stop_too_early"}), ("compound", {"wrong_compound", "slept_through_rain"}),
    ("gibberish", {"parse_failure"}), ("silent", {"silent_pit_wall"})])
def test_one_thing_done_wrong_in_the_best_race_is_found_in_its_lap(how, kinds):
    scenarios = [make_scenario(family, seed) for family in FAMILIES for seed in range(3)]
    races = [(scenario, best) for scenario in scenarios for best in [oracle(scenario)] if (first_stop(best) or 0) > 2]
    hits = Counter()
    for scenario, best in races:
        outputs = spoilt(best, how)
        told = found(scenario, outputs)
        hits[told.kind in kinds] += 1
        if told.lap is not None:
            assert outputs[told.lap - 1] != best[told.lap - 1]
    assert len(races) > 6 and hits[True] >= 0.8 * len(races)


def test_the_best_race_has_no_post_mortem_to_speak_of():
    for family in FAMILIES:
        scenario = make_scenario(family, 2)
        assert found(scenario, oracle(scenario)) == PostMortem(
            "none", None, None, None, None, None, 0.0, "Nothing costly was called.")


def test_what_a_question_would_have_said_is_what_it_says_in_that_lap(calls_of):
    seen = 0
    for family in FAMILIES:
        for policy in ("stay_out", "fixed_stop"):
            scenario = make_scenario(family, 1)
            outputs = calls_of(scenario, policy)
            told = found(scenario, outputs)
            match = re.match(r"(\w+) in lap (\d+) would have said: (.+?)(, with \d+ laps to go)?\.$", told.signal or "")
            if match is None:
                continue
            environment = RaceEnvironment()
            environment.begin(scenario)
            for output in outputs[:int(match[2]) - 1]:
                environment.step(output)
            assert int(match[2]) <= told.lap or match[1] == "ASSESS_UNDERCUT_WINDOW"
            assert environment.step(match[1]).observation.answer.rstrip(".") == match[3].rstrip(".")
            seen += 1
    assert seen >= 4


def test_an_answer_that_was_had_is_quoted():
    scenario = make_scenario("dry_strategy_sprint", 1)
    told = found(scenario, ["INSPECT_FUEL_MARGIN", *["STAY_OUT"] * (scenario.laps - 1)])
    assert told.kind == "ran_dry" and told.signal.startswith("INSPECT_FUEL_MARGIN said in lap 1: Fuel -")


def test_the_better_order_is_worth_what_it_says(calls_of):
    scenario = make_scenario("late_safety_car", 1)
    outputs, best = calls_of(scenario, "stay_out"), oracle(scenario)
    told = found(scenario, outputs)
    environment = RaceEnvironment()
    environment.begin(scenario)
    for output in [*outputs[:told.lap - 1], *best[told.lap - 1:]]:
        step = environment.step(output)
    assert f"worth {step.info['score']:.2f}, not" in told.better and best[told.lap - 1] in told.better


def test_small_losses_before_a_disaster_are_not_the_story(calls_of):
    scenario = make_scenario("championship_decider", 3)
    regret = regret_of(scenario, calls_of(scenario, "stay_out"))
    lap = first_costly(regret)
    assert regret.lost[lap - 1] >= regret.lost.max() / 2 > regret.lost[:lap - 1].max() > 0


def test_its_fields_fit_the_table(calls_of):
    scenario = make_scenario("weather_roulette", 0)
    told = [found(scenario, outputs) for outputs in (
        calls_of(scenario, "stay_out"), oracle(scenario), ["?" * 300] * scenario.laps)]
    rows = POSTMORTEMS.conform(pd.DataFrame([
        {"policy": "sft", "variant": variant, "family": scenario.family, "seed": 0, "split": scenario.split,
         "circuit": scenario.circuit.circuit, "checkpoint": "abc", **asdict(one), "made_at": NOW}
        for variant, one in zip(("plain", "hints", "training"), told, strict=True)]))
    assert set(rows["kind"]) <= set(KINDS) and rows["lap"].isna().tolist() == [False, True, False]
    assert len(rows["command"][2]) < 100
