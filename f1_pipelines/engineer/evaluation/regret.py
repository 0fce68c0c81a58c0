"""Regret of each call of a race: `regret_of(scenario, outputs)`.

V(t) is the score of the race with the race's own calls before lap t and the oracle's calls from t on. The regret of the
call of lap t is V(t) - V(t + 1): the best score still possible before the call less that after it. The regrets of a
race add up to the oracle's score less the race's.

Notable choices:
- The oracle's commands are a fixed list and don't react to the race, so a stop one lap late shows as a large loss and,
  in the next lap, a gain almost as large. `lost` excludes regained score: it is the part lost for good.
- The L + 1 races of a regret are simulated in one batch, with the same noise.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from f1_pipelines.sim.environment.actions import NO_COMMAND, action_of
from f1_pipelines.sim.environment.commands import STAY, BadCommand, Command, parse
from f1_pipelines.sim.environment.vector import VectorEnvironment
from f1_pipelines.sim.policies.foresight import best_commands
from f1_pipelines.sim.scenarios import Scenario
from f1_pipelines.sim.scoring.dimensions import DIMENSIONS, WEIGHTS


@dataclass(frozen=True, eq=False)
class Regret:
    """Best possible score at each lap of a race. At index t of `values` and `parts` the oracle calls from lap t + 1 on.

    Attributes:
        values: (L + 1,) scores V, from the oracle's to the race's.
        parts: (L + 1, 6) weighted share of each dimension in `values`.
        oracle: The oracle's commands, one per lap.
    """

    values: np.ndarray
    parts: np.ndarray
    oracle: tuple[Command, ...]

    @property
    def by_lap(self) -> np.ndarray:
        """(L,) regret of each call; negative if it beat the oracle's list or regained an earlier loss."""
        difference: np.ndarray = self.values[:-1] - self.values[1:]
        return difference

    @property
    def total(self) -> float:
        """The oracle's score less the race's."""
        return float(self.values[0] - self.values[-1])

    @property
    def lost(self) -> np.ndarray:
        """(L,) score lost for good by each call, for any later takeover by the oracle; never negative.

        >>> late = Regret(np.array([.9, .4, .85, .85]), np.zeros((4, 6)), ())  # a stop one lap late
        >>> late.lost.round(2).tolist()
        [0.05, 0.0, 0.0]
        """
        best = np.maximum.accumulate(self.values[::-1])[::-1]
        return best[:-1] - best[1:]

    def recovery_lap(self, lap: int) -> int:
        """Return the lap, after the call of `lap`, from which the oracle scores most."""
        return lap + 1 + int(self.values[lap:].argmax())


def regret_of(scenario: Scenario, outputs: Sequence[str | Command],
              oracle: Sequence[Command] | None = None) -> Regret:
    """Simulate the race's calls up to each lap and the oracle's from there on.

    Args:
        scenario: A sprint.
        outputs: Output of each called lap, raw or parsed, until DONE or a retirement.
        oracle: The oracle's commands; None searches for them, which takes up to a second.

    Raises:
        ValueError: More outputs than laps.
    """
    laps, oracle = scenario.laps, best_commands(scenario) if oracle is None else oracle
    if len(outputs) > laps:
        raise ValueError(f"{scenario.name} has {laps} laps; got {len(outputs)} outputs; pass those of one race.")
    own = [parsed_command(output, scenario) for output in outputs] + [STAY] * (laps - len(outputs))
    best = [*oracle, *[STAY] * (laps - len(oracle))]
    batch = VectorEnvironment([scenario] * (laps + 1))
    for lap, (called, better) in enumerate(zip(own, best, strict=True)):
        is_own = np.arange(laps + 1) > lap  # rows that use the race's own call in this lap
        texts = {row: command.text for row in range(laps + 1)
                 if (command := called if is_own[row] else better) is not None and command.text}
        batch.step(np.where(is_own, _action(called, scenario), _action(better, scenario)), texts)
    scores = batch.scores()
    return Regret(np.array([score["score"] for score in scores]),
                  np.array([[WEIGHTS[name] * score[name] for name in DIMENSIONS] for score in scores]), tuple(best))


def parsed_command(output: str | Command, scenario: Scenario) -> Command | None:
    """Return the command of an output in a race; None if the environment counts it as illegal."""
    try:
        command = output if isinstance(output, Command) else parse(output)
    except BadCommand:
        return None
    return None if command.car and scenario.column(command.car) <= 0 else command


def _action(command: Command | None, scenario: Scenario) -> int:
    return NO_COMMAND if command is None else action_of(command, scenario)
