"""What went wrong in a race: `postmortem(race, regret)`, the fields of a row of `strategy.postmortems`.

The first costly call is the first that lost, for good, half of what the worst one lost: small losses before a
disaster are not the story. What was the better order of calls is what the oracle calls from that lap on in this very
race; it was driven, and its score stands beside it.
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

COSTLY_REGRET, COSTLY_SHARE = 0.02, 0.5  # of the score; of the worst call's loss
EXPLAINED_LOSSES, MAX_CHARS = 4, 80  # commands of the better order; characters of an output that did not parse


@dataclass(frozen=True)
class PostMortem:
    """What went wrong first, and what would have helped. Without a costly call `kind` is none and the rest missing."""

    kind: str
    lap: int | None
    command: str | None
    better: str | None
    signal: str | None
    cost: float | None  # of the score, lost by this call for good
    regret: float  # of the race
    lesson: str


def replay_rollout(scenario: Scenario, outputs: Sequence[str]) -> Rollout:
    """The race that these outputs make, with all that was seen and answered.

    Raises:
        ValueError: They end before the flag.
    """
    left = list(outputs)

    def call(_: Sequence[str]) -> list[str]:
        if not left:
            raise ValueError(f"{scenario.name}: {len(outputs)} calls do not reach the flag of {scenario.laps} laps; "
                             "play the race again.")
        return [left.pop(0)]

    return batched_rollout([scenario], call)[0]


def postmortem(race: Rollout, regret: Regret) -> PostMortem:
    """The post-mortem of a finished race.

    Args:
        race: As it was played, or `replay_rollout`.
        regret: `regret_of(race.scenario, race.outputs)`.
    """
    lap = first_costly(regret)
    if lap is None:
        return PostMortem("none", None, None, None, None, None, regret.total, "Nothing costly was called.")
    loss = loss_at(regret, lap)
    kind = kind_of(race, regret, loss)
    called = race.outputs[lap - 1] if race.errors[lap - 1] is None else repr(race.outputs[lap - 1][:MAX_CHARS])
    return PostMortem(
        kind, lap, called, better_order(regret, lap), signal_of(race, regret, loss, kind), loss.cost, regret.total,
        f"{called} in lap {lap} cost {loss.cost:.2f} ({kind.replace('_', ' ')}): {LESSONS[kind]}")


def first_costly(regret: Regret) -> int | None:
    """The lap of the first costly call; None where nothing much was lost."""
    lost = regret.lost
    costly = np.flatnonzero(lost >= max(COSTLY_REGRET, COSTLY_SHARE * lost.max()))
    return int(costly[0]) + 1 if len(costly) else None


def better_order(regret: Regret, lap: int) -> str:
    """What the oracle calls from that lap on, and what that would have been worth."""
    calls = [f"lap {at} {command}" for at, command in enumerate(regret.oracle[lap - 1:], lap) if command != STAY]
    order = ", ".join(calls[:EXPLAINED_LOSSES]) + (" ..." if len(calls) > EXPLAINED_LOSSES else "")
    return f"{order or 'STAY_OUT to the flag'} (worth {regret.worth[lap - 1]:.2f}, not {regret.worth[-1]:.2f})"
