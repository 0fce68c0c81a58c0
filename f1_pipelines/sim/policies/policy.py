"""The interface of policies: observation in, command out."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from f1_pipelines.sim.environment.commands import Command
from f1_pipelines.sim.environment.observation import Observation


@dataclass(frozen=True)
class Decision:
    """A command and its reason in one sentence.

    A `command` that does not parse is counted as illegal and never repaired. `costs_s` has the cost of each command
    weighed, relative to the best [s]; it is empty if the policy weighs none.
    """

    command: Command | str
    reason: str
    costs_s: Mapping[str, float] = field(default_factory=dict)


class Policy(Protocol):
    """A policy: `begin` is called before each race, `decide` once a lap."""

    def begin(self, observation: Observation) -> None:
        """Start a race."""

    def decide(self, observation: Observation) -> Decision:
        """The command of the next lap."""
