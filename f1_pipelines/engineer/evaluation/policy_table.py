"""All scripted policies on unseen seeds of every family: `f1 policies`, or

    python -m f1_pipelines.engineer.evaluation.policy_table --n 100
"""
from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pandas as pd

from f1_pipelines.engineer.evaluation.leaderboard import ALL, family_interval, family_mean
from f1_pipelines.engineer.seed_ranges import RaceKey, policy_table_races
from f1_pipelines.engineer.workers import map_races
from f1_pipelines.sim.policies.play import POLICIES, played, policy_for
from f1_pipelines.sim.scenarios import ENV_VERSION, FAMILIES, make_scenario
from f1_pipelines.sim.scoring.dimensions import DIMENSIONS


def policy_episodes(n: int, policies: Sequence[str] = tuple(POLICIES), families: Sequence[str] = tuple(FAMILIES),
                    split: str = "test", workers: int = 1, skip: int = 0,
                    on_race: Callable[[int, int], None] | None = None) -> pd.DataFrame:
    """One row for each race and policy, with the score and its dimensions.

    Args:
        n: Seeds of each family.
        policies: Names of the policies.
        families: Families raced.
        split: Split of the seeds; the family that is never trained on has its own.
        workers: Number of processes.
        skip: Seeds of each family to leave out first.
        on_race: Called after each race with the number of races done and of all races.
    """
    keys, rows = policy_table_races(n, split, skip, families), []
    for done, race in enumerate(map_races(partial(_race, policies=tuple(policies)), keys, workers), start=1):
        rows += race
        if on_race:
            on_race(done, len(keys))
    return pd.DataFrame(rows)


def policy_table(episodes: pd.DataFrame) -> pd.DataFrame:
    """Mean score with its 95 % bootstrap interval, and mean dimensions, by policy and family and over all families."""
    rows = []
    for policy, own in episodes.groupby("policy", sort=False):
        parts = [*own.groupby("family", sort=False), (ALL, own)]
        for family, races in parts:
            low, high = family_interval(races["score"], races["family"])
            rows.append({"policy": policy, "family": family, "n": len(races), "low": low, "high": high, **{
                name: family_mean(races[name], races["family"]) for name in ("score", *DIMENSIONS)}})
    return pd.DataFrame(rows)


def as_text(table: pd.DataFrame, split: str = "test") -> str:
    """The table as text: policies down, families across; then the dimensions over all families."""
    families = [family for family in table["family"].unique() if family != ALL]
    by_key = {(row["policy"], row["family"]): row for row in table.to_dict("records")}
    policies = table["policy"].unique()
    lines = [f"mean score, n = {table['n'].iloc[0]} seeds per family, split {split}, env version {ENV_VERSION}, "
             "95 % bootstrap interval of all",
             f"{'policy':14}" + "".join(f"{family.replace('_', ' ')[:14]:>16}" for family in families)
             + f"{'all':>9}{'low':>7}{'high':>7}"]
    for policy in policies:
        whole = by_key[policy, ALL]
        lines.append(f"{policy:14}" + "".join(f"{by_key[policy, family]['score']:16.3f}" for family in families)
                     + f"{whole['score']:9.3f}{whole['low']:7.3f}{whole['high']:7.3f}")
    lines += ["", f"{'policy':14}" + "".join(f"{name:>12}" for name in DIMENSIONS)]
    lines += [f"{policy:14}" + "".join(f"{by_key[policy, ALL][name]:12.3f}" for name in DIMENSIONS)
              for policy in policies]
    return "\n".join(lines)


def _race(key: RaceKey, policies: Sequence[str]) -> list[dict[str, Any]]:
    scenario, rows = make_scenario(*key), []
    for name in policies:
        race = played(scenario, policy_for(name, scenario), name)
        rows.append({"policy": name, "family": key[0], "seed": key[1], "split": race.split, **race.score})
    return rows


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Scripted policies on unseen seeds of every family.")
    parser.add_argument("--n", type=int, default=100, help="seeds of each family")
    parser.add_argument("--skip", type=int, default=0, help="seeds of each family to leave out first")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--policies", default="", help="comma-separated; default all")
    parser.add_argument("--split", default="test")
    given = parser.parse_args()
    names = given.policies.split(",") if given.policies else tuple(POLICIES)
    episodes = policy_episodes(given.n, names, split=given.split, workers=given.workers, skip=given.skip)
    print(as_text(policy_table(episodes), given.split))


if __name__ == "__main__":
    main()
