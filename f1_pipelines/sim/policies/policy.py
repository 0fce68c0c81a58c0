"""What a policy is: it reads an observation and calls a lap."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from f1_pipelines.sim.environment.commands import Command
from f1_pipelines.sim.environment.observation import Observation


@dataclass(frozen=True)
class Decision:
    """A call and why, in one sentence. `command` may be text that does not parse: that is counted, not mended.

    `costs_s` holds what was weighed, seconds worse than the best of it by command; empty for who weighs nothing.
    """

    command: Command | str
    reason: str
    costs_s: Mapping[str, float] = field(default_factory=dict)


class Policy(Protocol):
    """Called once a lap; `begin` before each race."""

    def begin(self, observation: Observation) -> None:
        """A new race."""

    def decide(self, observation: Observation) -> Decision:
        """The call of the coming lap."""
