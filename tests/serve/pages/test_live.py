"""The live simulator in a real browser: with a policy, by timer and by hand; the page agrees with the environment."""
from __future__ import annotations

import re
import time

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from f1_pipelines.sim.environment.commands import GRAMMAR
from f1_pipelines.sim.environment.environment import RaceEnvironment
from f1_pipelines.sim.policies.play import play

pytestmark = [pytest.mark.xdist_group("serve-stored"), pytest.mark.timeout(280)]


def test_a_race_to_the_flag_is_the_same_as_without_a_browser(window):
    window.open("?family=late_safety_car&seed=3&policy=expert")
    window.until(lambda: window.text("head").startswith("Lap 0/"))
    window.click("step")
    window.until(lambda: window.text("head").startswith("Lap 1/"))
    window.click("to-the-flag")
    head = window.until(lambda: window.text("head").startswith("Flag") and window.text("head"))
    expected = play("late_safety_car", 3, "expert")
    assert f"P{expected.info['position']} of {len(expected.grid)}" in head
    assert head.endswith(f"score {expected.score['score']:.3f}")
    assert all(window.text(part) == f"{value:.2f}" for part, value in expected.score.items() if part != "score")
    order = [cells[1].split()[0] for cells in window.rows("tower")]
    last = {row["car"]: row["position"] for row in expected.laps}
    assert order[:3] == [f"#{car}" for position in (1, 2, 3) for car in last if last[car] == position]
    assert "expert (scripted)" in window.text("who")
    commands = [element.text for element in window.all("called")]
    assert commands == [decision["command"] for decision in reversed(expected.decisions)]


def test_play_drives_laps_until_pause(window):
    window.open("?family=dry_strategy_sprint&seed=1&policy=stay_out")
    window.until(lambda: window.text("head").startswith("Lap 0/"))
    window.click("play")
    window.until(lambda: re.match(r"Lap [3-9]/", window.text("head")))
    window.click("play")
    time.sleep(1.0)  # a lap may be under way
    paused = window.text("head")
    time.sleep(2.0)
    assert window.text("head") == paused


def test_three_laps_by_hand_are_the_same_as_in_the_environment(window):
    commands = ("STAY_OUT", 'RADIO_DRIVER "Box lap 3 for hards"', "PIT_NOW hard")
    window.open("?family=dry_strategy_sprint&seed=5&policy=you")
    window.until(lambda: window.text("head").startswith("Lap 0/"))
    window.click("STAY_OUT")
    window.until(lambda: window.text("head").startswith("Lap 1/"))
    window.choose("verb", "RADIO_DRIVER")
    window.until(lambda: window.driver.find_elements(By.CSS_SELECTOR, 'input[data-mark="argument"][maxlength]'))
    window.all("argument")[0].send_keys("Box lap 3 for hards")
    window.click("call")
    window.until(lambda: window.text("head").startswith("Lap 2/"))
    window.click("PIT_NOW-hard")
    window.until(lambda: window.text("head").startswith("Lap 3/"))
    environment = RaceEnvironment()
    environment.reset(5, "dry_strategy_sprint")
    steps = [environment.step(command) for command in commands]
    assert f"P{steps[-1].observation.position} of" in window.text("head")
    assert window.text("head").endswith(f"score so far {sum(step.reward for step in steps):.3f}")
    assert all(command in window.text("log") for command in commands)
    assert "you" in window.text("who")


def test_every_command_is_listed_with_an_input_for_its_argument(window):
    window.open("?policy=you")
    window.until(lambda: window.all("verb"))
    window.driver.execute_script("arguments[0].closest('.q-field').querySelector('.q-field__control').click()",
                                 window.all("verb")[0])
    window.until(lambda: {option.text for option in window.driver.find_elements(By.CSS_SELECTOR, "[role=option]")}
                 >= {"PIT_NOW", "DONE"})
    options = set()
    for top in (0, 2000):  # the list renders only visible options
        window.driver.execute_script("document.querySelector('.q-menu').scrollTop = arguments[0]", top)
        time.sleep(0.5)
        options |= {option.text for option in window.driver.find_elements(By.CSS_SELECTOR, "[role=option]")}
    assert options == set(GRAMMAR)
    window.driver.find_element(By.TAG_NAME, "body").send_keys(Keys.ESCAPE)
    for verb in ("PIT_NOW", "HOLD_GAP", "BRIEF_MEDIA", "DONE"):  # a word, a car, a text, nothing
        window.choose("verb", verb)
        window.until(lambda verb=verb: bool(window.all("argument")) == (GRAMMAR[verb] is not None))


def test_a_grand_prix_is_built_from_the_warehouse(window):
    window.open("?family=grand_prix&weekend=2026-japan&seed=1&policy=stay_out")
    window.until(lambda: window.text("head").startswith("Lap 0/53"))
    window.click("step")
    window.until(lambda: window.text("head").startswith("Lap 1/53"))
    assert len(window.rows("tower")) == 22
    assert "2026-japan" in window.text("who")
