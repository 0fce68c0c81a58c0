"""All policies over unseen seeds of every family, side by side: `policy_leaderboard(100)`, or as a command

    python -m f1_pipelines.sim.policies.leaderboard --n 100
"""
from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np

from f1_pipelines.sim.policies.play import POLICIES, played, policy_for
from f1_pipelines.sim.scenarios import ENV_VERSION, FAMILIES, UNSEEN_FAMILY, make_scenario, seeds_of
from f1_pipelines.sim.scoring.dimensions import DIMENSIONS


def evaluation_seeds(family: str, n: int, split: str = "test", skip: int = 0) -> list[int]:
    """The seeds a table is made of: `n` of the split (of a family never trained on: of that family) after `skip`."""
    return seeds_of(family, "unseen_family" if family == UNSEEN_FAMILY else split, skip + n)[skip:]


def episodes(family: str, seed: int, policies: Sequence[str]) -> list[dict[str, Any]]:
    """One row per policy for one sprint."""
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
    """Rows of `episodes` for `n` seeds of each family, the first `skip` of the split left out.

    `on_race` is called with the number of races driven and the number of races in all; each is driven by every policy.
    """
    names, jobs = list(policies or POLICIES), []
    for family in families or FAMILIES:
        jobs += [(family, seed, names) for seed in evaluation_seeds(family, n, split, skip)]
    if workers == 1:
        return _collected((episodes(*job) for job in jobs), len(jobs), on_race)
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        return _collected(pool.map(episodes, *zip(*jobs, strict=True), chunksize=4), len(jobs), on_race)


def _collected(races: Iterable[list[dict[str, Any]]], n: int,
               on_race: Callable[[int, int], None] | None) -> list[dict[str, Any]]:
    rows = []
    for done, race in enumerate(races, 1):
        rows += race
        if on_race:
            on_race(done, n)
    return rows


def policy_leaderboard(n: int, policies: Sequence[str] | None = None, families: Sequence[str] | None = None,
                       split: str = "test", workers: int = 1, skip: int = 0,
                       on_race: Callable[[int, int], None] | None = None) -> list[dict[str, Any]]:
    """Mean score and dimensions by policy and family, and over all families (`family` = `all`).

    Returns:
        Rows with policy, family, n, split, env_version, score, its 95 % half interval, and the six dimensions.
    """
    return summarised(all_episodes(n, policies, families, split, workers, skip, on_race), split)


def summarised(rows: Sequence[dict[str, Any]], split: str = "test") -> list[dict[str, Any]]:
    """Means of episodes by policy and family; `all` weighs families alike."""
    table = []
    for policy in dict.fromkeys(row["policy"] for row in rows):
        mine = [row for row in rows if row["policy"] == policy]
        parts = []
        for family in dict.fromkeys(row["family"] for row in mine):
            few = [row for row in mine if row["family"] == family]
            parts.append(_mean(policy, family, split, few))
        table += parts
        whole = {key: float(np.mean([part[key] for part in parts])) for key in ("score", *DIMENSIONS)}
        table.append({"policy": policy, "family": "all", "split": split, "n": sum(p["n"] for p in parts),
                      "env_version": ENV_VERSION, **whole,
                      "interval": float(np.sqrt(np.sum([p["interval"]**2 for p in parts])) / len(parts))})
    return table


def _mean(policy: str, family: str, split: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    values = {key: float(np.mean([row[key] for row in rows])) for key in ("score", *DIMENSIONS)}
    spread = float(np.std([row["score"] for row in rows], ddof=1)) if len(rows) > 1 else 0.0
    return {"policy": policy, "family": family, "split": rows[0]["split"], "n": len(rows), "env_version": ENV_VERSION,
            **values, "interval": 1.96 * spread / len(rows)**0.5}


def as_text(table: Sequence[dict[str, Any]]) -> str:
    """Policies down, families across; then the dimensions over all families."""
    families = [f for f in dict.fromkeys(row["family"] for row in table) if f != "all"]
    by = {(row["policy"], row["family"]): row for row in table}
    policies = list(dict.fromkeys(row["policy"] for row in table))
    short = {f: f.replace("_", " ")[:14] for f in families}
    lines = [f"mean score, n = {table[0]['n']} seeds a family, split {table[0]['split']}, env version {ENV_VERSION}",
             f"{'policy':14}" + "".join(f"{short[f]:>16}" for f in families) + f"{'all':>9}{'+-':>7}"]
    for p in policies:
        lines.append(f"{p:14}" + "".join(f"{by[p, f]['score']:16.3f}" for f in families)
                     + f"{by[p, 'all']['score']:9.3f}{by[p, 'all']['interval']:7.3f}")
    lines += ["", f"{'policy':14}" + "".join(f"{d:>12}" for d in DIMENSIONS)]
    lines += [f"{p:14}" + "".join(f"{by[p, 'all'][d]:12.3f}" for d in DIMENSIONS) for p in policies]
    return "\n".join(lines)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Every policy over unseen seeds of every family.")
    parser.add_argument("--n", type=int, default=100, help="seeds of each family")
    parser.add_argument("--skip", type=int, default=0, help="seeds of each split to leave out first")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--policies", default="", help="comma-separated; default all")
    parser.add_argument("--split", default="test")
    given = parser.parse_args()
    names = given.policies.split(",") if given.policies else None
    print(as_text(policy_leaderboard(given.n, names, split=given.split, workers=given.workers,
                                     skip=given.skip)))


if __name__ == "__main__":
    main()
