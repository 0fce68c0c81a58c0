"""Policies for served races: the scripted ones and every promoted language model.

An unavailable model is an error; no other policy replaces it.
"""
from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from f1_pipelines.serve.published_warehouse import NoWarehouse, published
from f1_pipelines.settings import settings
from f1_pipelines.sim.environment.observation import Observation
from f1_pipelines.sim.policies.play import POLICIES, UnknownPolicy
from f1_pipelines.sim.policies.policy import Decision, Policy
from f1_pipelines.sim.scenarios import Scenario

if TYPE_CHECKING:
    from f1_pipelines.engineer.inference.engineer import Engineer

MODEL_CACHE_SIZE = 3  # language models in memory, the most recently used
ENGINEERS_FOLDER = "engineers"  # in the folder of checkpoints


class PolicyUnavailable(RuntimeError):
    """The policy exists but can't be loaded. The message says why."""


@dataclass(frozen=True)
class AvailablePolicy:
    """A policy to choose from. `kind` is `scripted`, `oracle` (knows the future) or `language model`."""

    name: str
    kind: str
    checkpoint: str = ""  # checkpoint id of a language model


@dataclass(frozen=True)
class PromotedEngineer:
    """A promoted language model: its checkpoint id and the name of its folder in `ENGINEERS_FOLDER`."""

    checkpoint: str
    folder: str


class LanguageModel:
    """A language model as a policy. Its output is the command, valid or not."""

    def __init__(self, checkpoint: str, engineer: Engineer, lock: threading.Lock) -> None:
        self._checkpoint, self._engineer, self._lock = checkpoint, engineer, lock

    def begin(self, observation: Observation) -> None:
        """Does nothing: the model keeps no state between observations."""

    def decide(self, observation: Observation) -> Decision:
        """Return the greedy completion. Concurrent races take turns."""
        with self._lock:
            [output] = self._engineer.commands([observation.text])
        return Decision(output, f"Output of the language model {self._checkpoint}.")


def available_policies() -> list[AvailablePolicy]:
    """List the policies that `create_policy` accepts, the scripted ones first."""
    scripted = [AvailablePolicy(name, "oracle" if name == "oracle" else "scripted") for name in POLICIES]
    return scripted + [AvailablePolicy(name, "language model", engineer.checkpoint)
                       for name, engineer in promoted_engineers().items()]


def create_policy(name: str, scenario: Scenario) -> Policy:
    """Create a policy for one race.

    Raises:
        UnknownPolicy: No policy has that name; the message lists the valid ones.
        PolicyUnavailable: The language model can't be loaded.
    """
    if name in POLICIES:
        return POLICIES[name](scenario)
    engineers = promoted_engineers()
    if name not in engineers:
        raise UnknownPolicy(f"unknown policy {str(name)[:40]!r}. Valid: {', '.join([*POLICIES, *engineers])}.")
    promoted = engineers[name]
    engineer, lock = _load_engineer(promoted.checkpoint,
                                    settings().checkpoints_path / ENGINEERS_FOLDER / promoted.folder)
    return LanguageModel(promoted.checkpoint, engineer, lock)


def promoted_engineers() -> dict[str, PromotedEngineer]:
    """Return every promoted language model by name, such as `grpo-tiny`; empty without a warehouse."""
    try:
        with published() as connection:
            rows = connection.execute("SELECT stage || '-' || profile, checkpoint, path FROM strategy.engineers "
                                      "WHERE promoted ORDER BY ALL").fetchall()
    except (NoWarehouse, duckdb.CatalogException):  # an old warehouse has no table of engineers
        return {}
    return {name: PromotedEngineer(checkpoint, folder) for name, checkpoint, folder in rows}


@lru_cache(maxsize=MODEL_CACHE_SIZE)
def _load_engineer(checkpoint: str, folder: Path) -> tuple[Engineer, threading.Lock]:
    from f1_pipelines.checkpoints.store import CheckpointError
    from f1_pipelines.engineer.inference.checkpoints import load_engineer

    try:
        return load_engineer(folder), threading.Lock()
    except CheckpointError:  # its message names the folder
        raise PolicyUnavailable(f"the language model {checkpoint} can't be loaded: its files are missing, damaged or "
                                "from another version; run `f1 doctor`, or train it again.") from None
