"""The oracle: calls the best race found with full knowledge, and says in time what is going to happen."""
from __future__ import annotations

from f1_pipelines.sim.drive import MODES, TEMPS
from f1_pipelines.sim.environment.commands import STAY, Command
from f1_pipelines.sim.environment.observation import Observation
from f1_pipelines.sim.parameters import COMPOUNDS
from f1_pipelines.sim.policies.policy import Decision
from f1_pipelines.sim.scenarios import Scenario, make_scenario
from f1_pipelines.sim.scoring.announcements import RIVAL, placed, windows
from f1_pipelines.sim.scoring.reference import reference_of
from f1_pipelines.sim.scoring.schedules import ATTACK, DEFEND, MODE, NOTHING, PIT, TEMP
from f1_pipelines.sim.scoring.search import stops_of


class Oracle:
    """Knows the scenario; the reference for regret, never a teacher."""

    def __init__(self, scenario: Scenario | None = None) -> None:
        self._given = scenario

    def begin(self, observation: Observation) -> None:
        """Look into the future."""
        if self._given is None:
            raise ValueError("the oracle needs the scenario it is to know: Oracle(scenario).")
        codes = reference_of(self._given).codes
        self._codes = [int(code) for code in codes]
        free = [lap for lap, code in enumerate(self._codes, 1) if code == NOTHING]
        self._said = placed(windows(self._given, stops_of(codes)), free)

    def decide(self, observation: Observation) -> Decision:
        """The plan's command, or something true in a lap without one."""
        code = self._codes[observation.lap - 1]
        if code != NOTHING:
            return Decision(command_of(code), "Part of the best race found.")
        text = self._said.get(observation.lap)
        if text is None:
            return Decision(STAY, "Nothing to do.")
        if text == RIVAL:
            rival = next(c for c in observation.cars if c.number == observation.rival)
            text = f"Car {rival.number} is {abs(rival.gap_s):.1f} s {'behind' if rival.gap_s > 0 else 'ahead'}"
        return Decision(Command("RADIO_DRIVER", text=text), "True, and in time.")


def command_of(code: int) -> Command:
    """A code of a schedule as a command."""
    if code in (ATTACK, DEFEND):
        return Command("ATTACK_AHEAD" if code == ATTACK else "DEFEND_POSITION")
    if code >= TEMP:
        return Command("MANAGE_TYRE_TEMP", TEMPS[code - TEMP])
    return Command("SET_MODE", MODES[code - MODE]) if code >= MODE else Command("PIT_NOW", COMPOUNDS[code - PIT])


def oracle_for(family: str, seed: int, split: str | None = None) -> Oracle:
    """The oracle of a sprint."""
    return Oracle(make_scenario(family, seed, split))
