"""What went wrong in a race: `postmortem(race, regret)`, the fields of a row of `strategy.postmortems`.

The first costly call is the first that lost, for good, at least half of what the worst call lost; smaller losses before
it are ignored. The better calls are the oracle's from that lap on in the same race, simulated, with their score.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from f1_pipelines.engineer.evaluation.failures import LESSONS, kind_of, loss_at
from f1_pipelines.engineer.evaluation.regret import Regret
from f1_pipelines.engineer.evaluation.signals import signal_of
from f1_pipelines.engineer.rollout import Rollout, batched_rollout
from f1_pipelines.sim.environment.commands import STAY
from f1_pipelines.sim.scenarios import Scenario

COSTLY_REGRET, COSTLY_SHARE = 0.02, 0.5  # least loss of a costly call: of the score; of the worst call's loss
MAX_COMMANDS, MAX_CHARS = 4, 80  # shown of the better calls; of an output that did not parse


@dataclass(frozen=True)
class PostMortem:
    """The first costly call, and what would have helped. Without one, `kind` is "none" and the rest is None."""

    kind: str
    lap: int | None
    command: str | None
    better: str | None
    signal: str | None
    cost: float | None  # score lost for good by this call
    regret: float  # of the race
    lesson: str


def replay_rollout(scenario: Scenario, outputs: Sequence[str]) -> Rollout:
    """The rollout that these outputs make.

    Raises:
        ValueError: The outputs end before the flag.
    """
    remaining = list(outputs)

    def policy(_: Sequence[str]) -> list[str]:
        if not remaining:
            raise ValueError(f"{scenario.name}: {len(outputs)} calls do not reach the flag of {scenario.laps} laps; "
                             "play the race again.")
        return [remaining.pop(0)]

    return batched_rollout([scenario], policy)[0]


def postmortem(race: Rollout, regret: Regret) -> PostMortem:
    """The post-mortem of a finished race.

    Args:
        race: The rollout, driven or replayed.
        regret: `regret_of(race.scenario, race.outputs)`.
    """
    lap = first_costly(regret)
    if lap is None:
        return PostMortem("none", None, None, None, None, None, regret.total, "Nothing costly was called.")
    loss = loss_at(regret, lap)
    kind = kind_of(race, regret, loss)
    called = race.outputs[lap - 1] if race.errors[lap - 1] is None else repr(race.outputs[lap - 1][:MAX_CHARS])
    return PostMortem(
        kind, lap, called, better_calls(regret, lap), signal_of(race, regret, loss, kind), loss.cost, regret.total,
        f"{called} in lap {lap} cost {loss.cost:.2f} ({kind.replace('_', ' ')}): {LESSONS[kind]}")


def first_costly(regret: Regret) -> int | None:
    """The lap of the first costly call, None for none."""
    lost = regret.lost
    costly = np.flatnonzero(lost >= max(COSTLY_REGRET, COSTLY_SHARE * lost.max()))
    return int(costly[0]) + 1 if len(costly) else None


def better_calls(regret: Regret, lap: int) -> str:
    """The oracle's calls from that lap on, and the score that they would have had."""
    calls = [f"lap {at} {command}" for at, command in enumerate(regret.oracle[lap - 1:], lap) if command != STAY]
    shown = ", ".join(calls[:MAX_COMMANDS]) + (" ..." if len(calls) > MAX_COMMANDS else "")
    return f"{shown or 'STAY_OUT to the flag'} (worth {regret.values[lap - 1]:.2f}, not {regret.values[-1]:.2f})"
