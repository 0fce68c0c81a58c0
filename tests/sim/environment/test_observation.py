"""Observations and answers: nothing hidden, and estimates with the error that they state."""
from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from f1_pipelines.sim.engine.parameters import GREEN, SC, VSC
from f1_pipelines.sim.environment.inspections import FUEL_ERROR_LAPS, TYRE_ERROR_LAPS
from f1_pipelines.sim.environment.prompt import MAX_TOKENS, token_bound
from f1_pipelines.sim.policies.scripted import Random
from f1_pipelines.sim.scenarios import CHARACTERS, FAMILIES, make_scenario


def test_a_prompt_fits_and_shows_nothing_hidden(env):
    for family in FAMILIES:
        for seed in range(12):
            observation, player, over = env.reset(seed, family), Random(), False
            player.begin(observation)
            while not over:
                assert token_bound(observation.text) <= MAX_TOKENS, observation.text
                hidden = [*CHARACTERS, "cliff", "wear_laps", "fuel_kg", "optimal", "window"]
                if not observation.answer and not observation.notes:
                    shown = observation.text.replace(family, "")
                    assert not any(word in shown for word in hidden)
                step = env.step(player.decide(observation).command)
                observation, over = step.observation, step.done


def test_answers_stay_in_the_notes_as_long_as_they_fit(env):
    observation = env.reset(3, "weather_roulette")
    calls = ["REQUEST_FORECAST", "INSPECT_FUEL_MARGIN", 'RADIO_DRIVER "box lap 9 for inters"', "REQUEST_FORECAST",
             *(f"CHECK_OPPONENT_STRATEGY {car.number}" for car in observation.cars if car.number != observation.number)]
    for lap, call in enumerate(calls, 1):
        observation = env.step(call).observation
        assert observation.notes[-1].startswith(f"L{lap} ")
        assert f"L{lap} " in observation.text
        assert token_bound(observation.text) <= MAX_TOKENS
        assert lap != 4 or re.search(r"L2 fuel [+-]\.\d\d", observation.text)
    assert len([note for note in observation.notes if " rain " in note]) == 1  # the newer forecast replaces the older
    assert any(note == 'L3 told "box lap 9 for inters"' for note in observation.notes)
    assert observation.text.splitlines()[-1].startswith("notes: L")  # the newest, where not all fit


def test_what_is_shown_does_not_depend_on_what_will_happen(env):
    """Same start, other future: observations are equal until the futures differ on track."""
    a = make_scenario("late_safety_car", 2)
    b = replace(a, status=np.zeros_like(a.status), plan_lap=a.plan_lap * 0)
    first = int((a.status > 0).argmax()) or a.laps
    quiet = min([first - 1, *(a.plan_lap[a.plan_lap > 0] - 4)])
    texts = []
    for scenario in (a, b):
        env.begin(scenario)
        texts.append([env.step("STAY_OUT").observation.as_dict() for _ in range(max(quiet, 1))])
    assert texts[0] == texts[1]


def test_estimates_have_the_error_that_they_state(env):
    errors = {"tyre": [], "fuel": []}
    for seed in range(250):
        env.reset(seed, "tyre_cliff_management")
        scenario, state = env.scenario, env.history[-1]
        estimate = env.step("INSPECT_TYRE_DEGRADATION").observation.facts["tyre_laps_left"]
        errors["tyre"].append(estimate - (state.cliff_laps[0, 0] - state.wear_laps[0, 0]) / scenario.wear_scale)
        env.reset(seed, "tyre_cliff_management")
        facts = env.step("INSPECT_FUEL_MARGIN").observation.facts
        errors["fuel"].append(facts["fuel_margin_laps"] - scenario.fuel_laps[0])
    assert np.std(errors["tyre"]) == pytest.approx(TYRE_ERROR_LAPS, rel=0.15)
    assert np.std(errors["fuel"]) == pytest.approx(FUEL_ERROR_LAPS, rel=0.15)
    assert abs(np.mean(errors["tyre"])) < 0.1 and abs(np.mean(errors["fuel"])) < 0.02


def test_inspections_tell_the_truth(env):
    for seed in range(30):
        observation = env.reset(seed, "weather_roulette")
        scenario = env.scenario
        number = scenario.numbers[3]
        facts = env.step(f"CHECK_OPPONENT_STRATEGY {number}").observation.facts
        plan = zip(scenario.plan_lap[:, 3], scenario.plan_compound[:, 3], strict=True)
        stops = [(lap, tyre) for lap, tyre in plan if lap]
        assert facts == {"car": number, "character": CHARACTERS[2], "plan": stops}
        facts = env.step("REQUEST_FORECAST").observation.facts
        if facts["rain"] == "radar":
            assert scenario.shower.onset_lap == facts["onset_lap"] + (scenario.shower.onset_lap - facts["onset_lap"])
            assert scenario.shower.onset_lap <= 2 + 2
        if facts["rain"] == "none":
            assert scenario.shower is None
        assert observation.lap == 1


def test_the_undercut_knows_nothing_of_laps_to_come(env):
    """The answer does not depend on closures or rain after the next lap."""
    for seed in (1, 5, 9):
        scenario = make_scenario("virtual_safety_car_window", seed)
        answers = set()
        for status in (GREEN, SC, VSC):
            later = np.concatenate([scenario.status[:4], np.full(scenario.laps - 4, status)])
            rain = np.where(np.arange(scenario.laps) < 3, 0.0, 0.5 * (status == SC))
            env.begin(replace(scenario, status=later, rain=rain))
            for _ in range(3):
                env.step("STAY_OUT")
            answers.add(env.step("ASSESS_UNDERCUT_WINDOW").observation.answer)
        assert len(answers) == 1
