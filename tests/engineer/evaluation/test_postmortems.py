"""Post-mortems find deliberate mistakes, their lap and the signal that could have been known."""
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


def postmortem_of(scenario: Scenario, outputs: list[str]) -> PostMortem:
    return postmortem(replay_rollout(scenario, outputs), regret_of(scenario, outputs))


def oracle_calls(scenario: Scenario) -> list[str]:
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
def test_the_failures_of_bad_policies_are_classified(family, seed, policy, kind, signal, calls_of):
    scenario = make_scenario(family, seed)
    outputs = calls_of(scenario, policy)
    report = postmortem_of(scenario, outputs)
    assert report.kind == kind and signal in report.signal
    assert report.command == outputs[report.lap - 1] and report.command in report.lesson
    assert report.cost > 0.02 and report.regret >= report.cost - 1e-9


def with_mistake(best: list[str], mistake: str) -> list[str]:
    """The oracle's calls with one mistake."""
    k = first_stop(best)
    if mistake == "no stop":
        return [*best[:k], "STAY_OUT", *best[k + 1:]]
    if mistake == "gibberish":
        return [*best[:k], "box box box", *best[k + 1:]]
    if mistake == "early":
        return [*best[:k - 2], best[k], "STAY_OUT", "STAY_OUT", *best[k + 1:]]
    if mistake == "compound":
        return [*best[:k], "PIT_NOW soft" if best[k] == "PIT_NOW hard" else "PIT_NOW hard", *best[k + 1:]]
    return ["STAY_OUT" if call.startswith("RADIO_DRIVER") else call for call in best]


@pytest.mark.parametrize(("mistake", "kinds"), [
    ("no stop", {"missed_stop", "rule_broken", "missed_safety_car", "slept_through_rain", "tyres_past_the_cliff"}),
    ("early", {"stop_too_early"}), ("compound", {"wrong_compound", "slept_through_rain"}),
    ("gibberish", {"parse_failure"}), ("silent", {"silent_pit_wall"})])
def test_one_mistake_in_the_best_race_is_found_in_its_lap(mistake, kinds):
    scenarios = [make_scenario(family, seed) for family in FAMILIES for seed in range(3)]
    races = [(scenario, best) for scenario in scenarios if (first_stop(best := oracle_calls(scenario)) or 0) > 2]
    hits = Counter()
    for scenario, best in races:
        outputs = with_mistake(best, mistake)
        report = postmortem_of(scenario, outputs)
        hits[report.kind in kinds] += 1
        if report.lap is not None:
            assert outputs[report.lap - 1] != best[report.lap - 1]
    assert len(races) > 6 and hits[True] >= 0.8 * len(races)


def test_the_best_race_has_no_costly_call():
    for family in FAMILIES:
        scenario = make_scenario(family, 2)
        assert postmortem_of(scenario, oracle_calls(scenario)) == PostMortem(
            "none", None, None, None, None, None, 0.0, "Nothing costly was called.")


def test_a_hypothetical_answer_equals_the_answer_in_that_lap(calls_of):
    matches = 0
    for family in FAMILIES:
        for policy in ("stay_out", "fixed_stop"):
            scenario = make_scenario(family, 1)
            outputs = calls_of(scenario, policy)
            report = postmortem_of(scenario, outputs)
            match = re.match(r"(\w+) in lap (\d+) would have said: (.+?)(, with \d+ laps to go)?\.$",
                             report.signal or "")
            if match is None:
                continue
            environment = RaceEnvironment()
            environment.begin(scenario)
            for output in outputs[:int(match[2]) - 1]:
                environment.step(output)
            assert int(match[2]) <= report.lap or match[1] == "ASSESS_UNDERCUT_WINDOW"
            assert environment.step(match[1]).observation.answer.rstrip(".") == match[3].rstrip(".")
            matches += 1
    assert matches >= 4


def test_an_answer_given_in_the_race_is_quoted():
    scenario = make_scenario("dry_strategy_sprint", 1)
    report = postmortem_of(scenario, ["INSPECT_FUEL_MARGIN", *["STAY_OUT"] * (scenario.laps - 1)])
    assert report.kind == "ran_dry" and report.signal.startswith("INSPECT_FUEL_MARGIN said in lap 1: Fuel -")


def test_the_score_of_the_better_calls_is_reproduced(calls_of):
    scenario = make_scenario("late_safety_car", 1)
    outputs, best = calls_of(scenario, "stay_out"), oracle_calls(scenario)
    report = postmortem_of(scenario, outputs)
    environment = RaceEnvironment()
    environment.begin(scenario)
    for output in [*outputs[:report.lap - 1], *best[report.lap - 1:]]:
        step = environment.step(output)
    assert f"worth {step.info['score']:.2f}, not" in report.better and best[report.lap - 1] in report.better


def test_small_losses_before_the_main_one_are_ignored(calls_of):
    scenario = make_scenario("championship_decider", 3)
    regret = regret_of(scenario, calls_of(scenario, "stay_out"))
    lap = first_costly(regret)
    assert regret.lost[lap - 1] >= regret.lost.max() / 2 > regret.lost[:lap - 1].max() > 0


def test_postmortems_fit_the_table(calls_of):
    scenario = make_scenario("weather_roulette", 0)
    reports = [postmortem_of(scenario, outputs) for outputs in (
        calls_of(scenario, "stay_out"), oracle_calls(scenario), ["?" * 300] * scenario.laps)]
    rows = POSTMORTEMS.conform(pd.DataFrame([
        {"policy": "sft", "variant": variant, "family": scenario.family, "seed": 0, "split": scenario.split,
         "circuit": scenario.circuit.circuit, "checkpoint": "abc", **asdict(report), "made_at": NOW}
        for variant, report in zip(("plain", "hints", "training"), reports, strict=True)]))
    assert set(rows["kind"]) <= set(KINDS) and rows["lap"].isna().tolist() == [False, True, False]
    assert len(rows["command"][2]) < 100
