"""Who may sit on the pit wall of a served race: the scripted policies and every promoted language model.

What is not available is an error that says so; no script ever stands in for a model.
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

MODEL_CACHE_SIZE = 3  # language models kept in memory, the ones asked for last
ENGINEERS_FOLDER = "engineers"  # in the folder of checkpoints


class PolicyUnavailable(RuntimeError):
    """A policy that exists but can't be had here and now. Says why."""


@dataclass(frozen=True)
class AvailablePolicy:
    """A policy by name. `kind` is `scripted`, `oracle` (knows the future) or `language model`."""

    name: str
    kind: str
    checkpoint: str = ""  # of a language model


@dataclass(frozen=True)
class PromotedEngineer:
    """A promoted language model: its checkpoint and the folder of that in the folder of engineers."""

    checkpoint: str
    folder: str


class LanguageModel:
    """A model on the pit wall. What it puts out is called as it stands, parsed or not."""

    def __init__(self, checkpoint: str, engineer: Engineer, turn: threading.Lock) -> None:
        self._checkpoint, self._engineer, self._turn = checkpoint, engineer, turn

    def begin(self, observation: Observation) -> None:
        """Nothing to prepare: it answers each observation alone."""

    def decide(self, observation: Observation) -> Decision:
        """Its greedy answer. Races that ask at once wait for each other."""
        with self._turn:
            [output] = self._engineer.commands([observation.text])
        return Decision(output, f"Put out by the language model {self._checkpoint}.")


def available_policies() -> list[AvailablePolicy]:
    """All that `create_policy` takes, scripted ones first."""
    scripted = [AvailablePolicy(name, "oracle" if name == "oracle" else "scripted") for name in POLICIES]
    return scripted + [AvailablePolicy(name, "language model", engineer.checkpoint) for name,
                       engineer in promoted_engineers().items()]


def create_policy(name: str, scenario: Scenario) -> Policy:
    """A fresh policy for one race.

    Raises:
        UnknownPolicy: There is none of that name; the message lists those there are.
        PolicyUnavailable: A promoted model that can't be loaded.
    """
    if name in POLICIES:
        return POLICIES[name](scenario)
    engineers = promoted_engineers()
    if name not in engineers:
        raise UnknownPolicy(f"unknown policy {str(name)[:40]!r}. Valid: {', '.join([*POLICIES, *engineers])}.")
    promoted = engineers[name]
    engineer, turn = _load_engineer(promoted.checkpoint,
                                    settings().checkpoints_path / ENGINEERS_FOLDER / promoted.folder)
    return LanguageModel(promoted.checkpoint, engineer, turn)


def promoted_engineers() -> dict[str, PromotedEngineer]:
    """Every promoted language model by name, `grpo-tiny` for one; none where the warehouse has none."""
    try:
        with published() as connection:
            rows = connection.execute("SELECT stage || '-' || profile, checkpoint, path FROM strategy.engineers "
                                      "WHERE promoted ORDER BY ALL").fetchall()
    except (NoWarehouse, duckdb.CatalogException):  # a warehouse from before there were engineers
        return {}
    return {name: PromotedEngineer(checkpoint, folder) for name, checkpoint, folder in rows}


@lru_cache(maxsize=MODEL_CACHE_SIZE)
def _load_engineer(checkpoint: str, folder: Path) -> tuple[Engineer, threading.Lock]:
    from f1_pipelines.checkpoints.store import CheckpointError
    from f1_pipelines.engineer.inference.checkpoints import load_engineer

    try:
        return load_engineer(folder), threading.Lock()
    except CheckpointError:  # its words name the folder
        raise PolicyUnavailable(f"the language model {checkpoint} can't be loaded: its files are gone, damaged, or of "
                                "another version; `f1 doctor` and a new training help.") from None
