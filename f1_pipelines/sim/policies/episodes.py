"""Races of all policies on unseen seeds of all families: one row per policy and race."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from f1_pipelines.sim.policies.play import POLICIES, played, policy_for
from f1_pipelines.sim.scenarios import ENV_VERSION, FAMILIES, UNSEEN_FAMILY, make_scenario, seeds_of
from f1_pipelines.sim.workers import map_races


def race_rows(key: tuple[str, int], policies: Sequence[str]) -> list[dict[str, Any]]:
    """One row per policy for the sprint of a family and seed."""
    family, seed = key
    scenario = make_scenario(family, seed)
    rows = []
    for name in policies:
        race = played(scenario, policy_for(name, scenario), name)
        rows.append({"policy": name, "family": family, "seed": seed, "split": race.split, "circuit": race.circuit,
                     "env_version": ENV_VERSION, **race.score, "position": race.info["position"],
                     "best_position": race.info["best_position"], "regret_s": race.info["regret_s"],
                     "illegal": race.info["illegal"]})
    return rows


def all_episodes(n: int, policies: Sequence[str] | None = None, families: Sequence[str] | None = None,
                 split: str = "test", workers: int = 1, skip: int = 0,
                 on_race: Callable[[int, int], None] | None = None) -> list[dict[str, Any]]:
    """Rows of every policy on the same races.

    Args:
        n: Seeds of each family.
        policies: Names of policies; None for all.
        families: Scenario families; None for all.
        split: Split of the seeds; the family that is never trained on uses its own split.
        workers: Processes.
        skip: Seeds of each split to leave out first.
        on_race: Called after each scenario with the numbers of scenarios done and in all.
    """
    keys = [(family, seed) for family in families or FAMILIES for seed in seeds_of(
        family, "unseen_family" if family == UNSEEN_FAMILY else split, skip + n)[skip:]]
    rows = []
    for done, race in enumerate(map_races(partial(race_rows, policies=list(policies or POLICIES)), keys, workers), 1):
        rows += race
        if on_race:
            on_race(done, len(keys))
    return rows
