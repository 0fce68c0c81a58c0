"""The expert follows a race with another policy's commands."""
import copy

from f1_pipelines.sim.environment.commands import Command
from f1_pipelines.sim.environment.environment import RaceEnvironment
from f1_pipelines.sim.policies.play import policy_for


def test_it_takes_over_the_questions_and_messages_of_another_policy():
    """It repeats neither a question nor a message of the other policy."""
    environment = RaceEnvironment()
    observation = environment.reset(8, "dry_strategy_sprint")
    expert = policy_for("expert", environment.scenario)
    expert.begin(observation)
    first = copy.deepcopy(expert).decide(observation).command
    assert first == Command("INSPECT_FUEL_MARGIN")
    expert.see(observation)
    observation = environment.step("INSPECT_FUEL_MARGIN").observation
    assert copy.deepcopy(expert).decide(observation).command != first
    expert.see(observation)
    observation = environment.step('RADIO_DRIVER "Box lap 3 for mediums"').observation
    decision = expert.decide(observation)
    assert decision.command == Command("PIT_NOW", "medium")
    assert decision.costs_s["PIT_NOW medium"] == 0.0
    assert decision.costs_s["STAY_OUT"] > 0.0
