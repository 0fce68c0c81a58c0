"""The oracle: plays the best race known, with full knowledge of the future."""
from __future__ import annotations

from f1_pipelines.sim.environment.commands import STAY
from f1_pipelines.sim.environment.observation import Observation
from f1_pipelines.sim.policies.foresight import best_commands
from f1_pipelines.sim.policies.policy import Decision
from f1_pipelines.sim.scenarios import Scenario


class Oracle:
    """Knows the scenario; the reference for regret, never a source of training data."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario

    def begin(self, observation: Observation) -> None:
        """Find the best race."""
        self._commands = best_commands(self._scenario)

    def decide(self, observation: Observation) -> Decision:
        """The command of this lap in the best race."""
        if observation.lap > len(self._commands):
            return Decision(STAY, "The best race found ends before this lap.")
        command = self._commands[observation.lap - 1]
        return Decision(command, "Nothing to do." if command == STAY else "True, and in time." if command.text else
                        "Part of the best race found.")
