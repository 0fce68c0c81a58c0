"""The expert beside a race that somebody else calls."""
import copy

from f1_pipelines.sim.environment.commands import Command
from f1_pipelines.sim.environment.environment import RaceEnvironment
from f1_pipelines.sim.policies.play import policy_for


def test_he_knows_what_somebody_else_asked_and_said():
    """A pupil's race that he watches: no question twice, no message twice."""
    environment = RaceEnvironment()
    seen = environment.reset(8, "dry_strategy_sprint")
    expert = policy_for("expert", environment.scenario)
    expert.begin(seen)
    first = copy.deepcopy(expert).decide(seen).command
    assert first == Command("INSPECT_FUEL_MARGIN")
    expert.see(seen)
    seen = environment.step("INSPECT_FUEL_MARGIN").observation
    assert copy.deepcopy(expert).decide(seen).command != first
    expert.see(seen)
    seen = environment.step('RADIO_DRIVER "Box lap 3 for mediums"').observation
    decision = expert.decide(seen)
    assert decision.command == Command("PIT_NOW", "medium")
    assert decision.costs_s["PIT_NOW medium"] == 0.0
    assert decision.costs_s["STAY_OUT"] > 0.0
