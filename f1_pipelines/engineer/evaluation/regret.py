"""What each call of a race cost: `regret_of(scenario, outputs)`.

V(t) is the score of the race when what was called stands for the laps before t and the oracle calls from t on. The
regret of the call of lap t is V(t) - V(t + 1): what was still to be had before it, less what was still to be had after
it. All of it adds up to the oracle's score less the race's.

Notable choices:
- The oracle's commands are one list and do not answer to what was called, so a stop made a lap late shows as a large
  loss and, in the next lap, a gain almost as large. `lost` leaves out what was won back: it is what was gone for good.
- The L + 1 races of one regret are driven in one batch, under the same noise.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from f1_pipelines.sim.environment.commands import STAY, BadCommand, Command, parse
from f1_pipelines.sim.environment.vector import NO_COMMAND, VectorEnvironment, action_of
from f1_pipelines.sim.policies.foresight import best_commands
from f1_pipelines.sim.scenarios import Scenario
from f1_pipelines.sim.scoring.dimensions import DIMENSIONS, WEIGHTS


@dataclass(frozen=True, eq=False)
class Regret:
    """What a race was worth at each lap. Index t of `worth` and `parts`: the oracle calls from lap t + 1 on.

    Attributes:
        worth: (L + 1,) scores; the first is the oracle's own, the last that of the race.
        parts: (L + 1, 6) what each dimension gives to them, weighted.
        oracle: The oracle's commands, one for each lap.
    """

    worth: np.ndarray
    parts: np.ndarray
    oracle: tuple[Command, ...]

    @property
    def by_lap(self) -> np.ndarray:
        """(L,) regret of each call; negative where it did better than the list, or mended what was broken before."""
        return self.worth[:-1] - self.worth[1:]

    @property
    def total(self) -> float:
        """The oracle's score less the race's."""
        return float(self.worth[0] - self.worth[-1])

    @property
    def lost(self) -> np.ndarray:
        """(L,) what could not be had any more after each call, however early or late the oracle took over; never < 0.

        >>> late = Regret(np.array([.9, .4, .85, .85]), np.zeros((4, 6)), ())  # the stop comes a lap late
        >>> late.lost.round(2).tolist()
        [0.05, 0.0, 0.0]
        """
        best = np.maximum.accumulate(self.worth[::-1])[::-1]
        return best[:-1] - best[1:]

    def mended(self, lap: int) -> int:
        """The lap from which the oracle makes the most of it once the call of that lap has been made."""
        return lap + 1 + int(self.worth[lap:].argmax())


def regret_of(scenario: Scenario, outputs: Sequence[str | Command],
              oracle: Sequence[Command] | None = None) -> Regret:
    """Drive what was called up to each lap and the oracle's commands from there on.

    Args:
        scenario: A sprint.
        outputs: What was put out in each lap called, raw or parsed; after DONE or a retirement there is none.
        oracle: The oracle's commands where they are known; searched for otherwise, for up to a second.

    Raises:
        ValueError: More outputs than laps.
    """
    laps, oracle = scenario.laps, best_commands(scenario) if oracle is None else oracle
    if len(outputs) > laps:
        raise ValueError(f"{scenario.name} has {laps} laps; got {len(outputs)} outputs: give those of one race.")
    ours = [parsed_commands(output, scenario) for output in outputs] + [STAY] * (laps - len(outputs))
    best = [*oracle, *[STAY] * (laps - len(oracle))]
    batch = VectorEnvironment([scenario] * (laps + 1))
    for lap, (called, better) in enumerate(zip(ours, best, strict=True)):
        late = np.arange(laps + 1) > lap  # rows in which our calls stand in this lap
        texts = {row: command.text for row in range(laps + 1)
                 if (command := called if late[row] else better) is not None and command.text}
        batch.step(np.where(late, _action(called, scenario), _action(better, scenario)), texts)
    scores = batch.scores()
    return Regret(np.array([score["score"] for score in scores]),
                  np.array([[WEIGHTS[name] * score[name] for name in DIMENSIONS] for score in scores]), tuple(best))


def parsed_commands(output: str | Command, scenario: Scenario) -> Command | None:
    """The command of an output in a race; None for what the environment counts as illegal."""
    try:
        command = output if isinstance(output, Command) else parse(output)
    except BadCommand:
        return None
    return None if command.car and scenario.column(command.car) <= 0 else command


def _action(command: Command | None, scenario: Scenario) -> int:
    return NO_COMMAND if command is None else action_of(command, scenario)
