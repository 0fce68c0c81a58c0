"""Post-mortem of a race: `postmortem(race, regret)`, the fields of a row of `strategy.postmortems`.

The first costly call is the first that lost, for good, at least half of what the worst call lost; smaller losses before
it are ignored. The better calls are the oracle's from that lap on, with their score in a simulation of the same race.
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

COSTLY_REGRET, COSTLY_SHARE = 0.02, 0.5  # minimum loss of a costly call: absolute; as a share of the worst call's
MAX_COMMANDS, MAX_CHARS = 4, 80  # maximum length of the better calls; of an output that did not parse


@dataclass(frozen=True)
class PostMortem:
    """The first costly call and the remedy. Without a costly call, `kind` is "none", and lap to cost are None."""

    kind: str
    lap: int | None
    command: str | None
    better: str | None
    signal: str | None
    cost: float | None  # score lost for good by this call
    regret: float  # of the race
    lesson: str


def replay_rollout(scenario: Scenario, outputs: Sequence[str]) -> Rollout:
    """Replay outputs in a race.

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
    """Write the post-mortem of a finished race.

    Args:
        race: The race, driven or replayed.
        regret: `regret_of(race.scenario, race.outputs)`.
    """
    lap = first_costly(regret)
    if lap is None:
        return PostMortem("none", None, None, None, None, None, regret.total, "Nothing costly was called.")
    loss = loss_at(regret, lap)
    kind = kind_of(race, regret, loss)
    call = race.outputs[lap - 1] if race.errors[lap - 1] is None else repr(race.outputs[lap - 1][:MAX_CHARS])
    return PostMortem(
        kind, lap, call, better_calls(regret, lap), signal_of(race, regret, loss, kind), loss.cost, regret.total,
        f"{call} in lap {lap} cost {loss.cost:.2f} ({kind.replace('_', ' ')}): {LESSONS[kind]}")


def first_costly(regret: Regret) -> int | None:
    """Return the lap of the first costly call, None for none."""
    lost = regret.lost
    costly = np.flatnonzero(lost >= max(COSTLY_REGRET, COSTLY_SHARE * lost.max()))
    return int(costly[0]) + 1 if len(costly) else None


def better_calls(regret: Regret, lap: int) -> str:
    """Return the oracle's calls from that lap on, and their score."""
    calls = [f"lap {k} {command}" for k, command in enumerate(regret.oracle[lap - 1:], lap) if command != STAY]
    text = ", ".join(calls[:MAX_COMMANDS]) + (" ..." if len(calls) > MAX_COMMANDS else "")
    return f"{text or 'STAY_OUT to the flag'} (worth {regret.values[lap - 1]:.2f}, not {regret.values[-1]:.2f})"
