"""Dimensions reward racing, and examples in docstrings run."""
from __future__ import annotations

import doctest

import numpy as np
import pytest

from f1_pipelines.sim.environment import commands
from f1_pipelines.sim.environment.environment import RaceEnvironment
from f1_pipelines.sim.scenarios import FAMILIES, make_scenario, seeds_of
from f1_pipelines.sim.scoring import announcements, claims, dimensions, messages
from f1_pipelines.sim.scoring.reference import reference_of, stop_sets
from f1_pipelines.sim.scoring.schedules import NOTHING, PIT


@pytest.mark.parametrize("module", [dimensions, messages, claims, announcements, commands])
def test_examples_run(module):
    result = doctest.testmod(module)
    assert result.attempted > 0 and result.failed == 0


def final(scenario, calls: dict[int, str]):
    env = RaceEnvironment()
    env.begin(scenario)
    step = None
    while step is None or not step.done:
        step = env.step(calls.get(env.history[-1].lap + 1, "STAY_OUT"))
    return env.score, step.info


def test_breaking_the_rule_costs_the_race_the_strategy_the_tyres_and_operations():
    scenario = next(s for s in (make_scenario("dry_strategy_sprint", k) for k in range(50))
                    if s.rule and s.fuel_laps[0] > 0.2 and s.circuit.cliff_laps[s.compound[0]] / s.wear_scale > s.laps)
    score, info = final(scenario, {})
    assert info["disqualified"]
    assert (score.race, score.strategy, score.tyres, score.operations) == (0.0, 0.0, 0.0, 0.0)


def test_questions_and_messages_are_not_paid_for():
    scenario = make_scenario("dry_strategy_sprint", 3)
    silent, _ = final(scenario, {6: "PIT_NOW hard"})
    questions = {1: "INSPECT_FUEL_MARGIN", 2: "REQUEST_FORECAST", 3: "ASSESS_UNDERCUT_WINDOW", 4: "REQUEST_INFO tyres",
                 5: "ESCALATE_TO_PRINCIPAL", 6: "PIT_NOW hard"}
    inquisitive, _ = final(scenario, questions)
    assert inquisitive.as_dict() == silent.as_dict()


def test_regret_is_zero_for_the_best_stops_and_covers_stops_that_were_not_raced():
    scenario = make_scenario("late_safety_car", 4)
    reference = reference_of(scenario)
    regrets = [reference.regret_s(scenario, stops) for stops in stop_sets(scenario)]
    assert min(regrets) == 0.0
    silly = ((2, 0), (4, 1), (6, 2), (8, 0))
    assert silly not in reference.mean_cost_s
    assert reference.regret_s(scenario, silly) > 30.0
    assert reference.regret_s(scenario, silly) == reference.regret_s(scenario, silly)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_reference_is_a_legal_race_of_this_car(family):
    split = "unseen_family" if family == "virtual_safety_car_window" else "validation"
    for seed in seeds_of(family, split, 4):
        scenario = make_scenario(family, seed)
        reference = reference_of(scenario)
        assert 1 <= reference.position <= 6 and reference.finished
        assert len(reference.codes) == scenario.laps
        stops = [(lap + 1, code - PIT) for lap, code in enumerate(reference.codes) if PIT <= code < PIT + 5]
        assert tuple(stops) == reference.stops
        assert (reference.codes == NOTHING).any()


def test_a_score_does_not_depend_on_earlier_races():
    """References are cached, but scores depend on the race alone."""
    scenario = make_scenario("championship_decider", 9)
    a, _ = final(scenario, {5: "PIT_NOW hard"})
    for seed in range(3):
        final(make_scenario("weather_roulette", seed), {})
    reference_of.cache_clear()
    b, _ = final(make_scenario("championship_decider", 9), {5: "PIT_NOW hard"})
    assert a == b
    assert np.isfinite(list(a.as_dict().values())).all()
