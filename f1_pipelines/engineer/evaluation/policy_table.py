"""Table of scripted policies on unseen seeds of every family: `f1 policies`, or, for other splits and some policies,

    python -m f1_pipelines.engineer.evaluation.policy_table --split validation --policies expert,oracle
"""
from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import pandas as pd

from f1_pipelines.engineer.evaluation.leaderboard import ALL, family_interval, family_mean, leaderboard_parts
from f1_pipelines.sim.policies.episodes import all_episodes
from f1_pipelines.sim.scenarios import ENV_VERSION
from f1_pipelines.sim.scoring.dimensions import DIMENSIONS


def policy_table(episodes: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """Compute means by policy and family; families have equal weight in `all`.

    Args:
        episodes: Rows of `sim.policies.episodes`.

    Returns:
        Columns policy, family, n, score, low and high (95 % bootstrap interval), and the dimensions of the score.
    """
    rows = []
    for policy, own in pd.DataFrame(episodes).groupby("policy", sort=False):
        for family, races in leaderboard_parts(own):
            low, high = family_interval(races["score"], races)
            rows.append({"policy": policy, "family": family, "n": len(races), "low": low, "high": high,
                         **{name: family_mean(races[name], races) for name in ("score", *DIMENSIONS)}})
    return pd.DataFrame(rows)


def as_text(table: pd.DataFrame) -> str:
    """Format scores by policy and family, then the dimensions over all families."""
    scores = table.pivot_table(index="policy", columns="family", values="score")
    overall = table[table["family"] == ALL].set_index("policy")
    families = [name for name in dict.fromkeys(table["family"]) if name != ALL]
    seeds = table.loc[table["family"] != ALL, "n"].max()
    lines = [f"mean score, {seeds} seeds of each family, env version {ENV_VERSION}",
             f"{'policy':14}" + "".join(f"{name.replace('_', ' ')[:14]:>16}" for name in families)
             + f"{ALL:>9}  95 % interval"]
    for policy, row in overall.iterrows():
        lines.append(f"{policy:14}" + "".join(f"{scores.loc[policy, name]:16.3f}" for name in families)
                     + f"{row['score']:9.3f}  {row['low']:.3f} to {row['high']:.3f}")
    lines += ["", f"{'policy':14}" + "".join(f"{name:>12}" for name in DIMENSIONS)]
    lines += [f"{policy:14}" + "".join(f"{row[name]:12.3f}" for name in DIMENSIONS)
              for policy, row in overall.iterrows()]
    return "\n".join(lines)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Scripted policies on unseen seeds of every family.")
    parser.add_argument("--n", type=int, default=100, help="seeds of each family")
    parser.add_argument("--skip", type=int, default=0, help="first seeds of each family to skip")
    parser.add_argument("--workers", type=int, default=1, help="number of processes")
    parser.add_argument("--policies", default="", help="comma-separated; default all")
    parser.add_argument("--split", default="test", help="split of the seeds of trained families")
    args = parser.parse_args()
    names = args.policies.split(",") if args.policies else None
    print(as_text(policy_table(all_episodes(args.n, names, split=args.split, workers=args.workers, skip=args.skip))))


if __name__ == "__main__":
    main()
