"""What a policy is: it reads an observation and calls a lap."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from f1_pipelines.sim.environment.commands import Command
from f1_pipelines.sim.environment.observation import Observation


@dataclass(frozen=True)
class Decision:
    """A call and why, in one sentence. `command` may be text that does not parse: that is counted, not mended."""

    command: Command | str
    reason: str


class Policy(Protocol):
    """Called once a lap; `begin` before each race."""

    def begin(self, observation: Observation) -> None:
        """A new race."""

    def decide(self, observation: Observation) -> Decision:
        """The call of the coming lap."""
