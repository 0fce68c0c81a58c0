"""Mean scores of scripted policies by family, as `f1 policies` prints them."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from f1_pipelines.engineer.evaluation.leaderboard import ALL, family_interval, family_mean, leaderboard_parts
from f1_pipelines.sim.scenarios import ENV_VERSION
from f1_pipelines.sim.scoring.dimensions import DIMENSIONS


def policy_table(episodes: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """Means by policy and family; family `all` weighs families alike.

    Args:
        episodes: Rows of `sim.policies.episodes`.

    Returns:
        policy, family, n, score, low and high (95 % bootstrap interval), and the dimensions of the score.
    """
    rows = []
    for policy, mine in pd.DataFrame(episodes).groupby("policy", sort=False):
        for family, part in leaderboard_parts(mine):
            low, high = family_interval(part["score"], part)
            rows.append({"policy": policy, "family": family, "n": len(part), "low": low, "high": high,
                         **{name: family_mean(part[name], part) for name in ("score", *DIMENSIONS)}})
    return pd.DataFrame(rows)


def as_text(table: pd.DataFrame) -> str:
    """Policies down, families across; then the dimensions over all families."""
    scores = table.pivot_table(index="policy", columns="family", values="score")
    whole = table[table["family"] == ALL].set_index("policy")
    families = [name for name in dict.fromkeys(table["family"]) if name != ALL]
    seeds = table.loc[table["family"] != ALL, "n"].max()
    lines = [f"mean score, {seeds} seeds of each family, env version {ENV_VERSION}",
             f"{'policy':14}" + "".join(f"{name.replace('_', ' ')[:14]:>16}" for name in families)
             + f"{ALL:>9}  95 % interval"]
    for policy, row in whole.iterrows():
        lines.append(f"{policy:14}" + "".join(f"{scores.loc[policy, name]:16.3f}" for name in families)
                     + f"{row['score']:9.3f}  {row['low']:.3f} to {row['high']:.3f}")
    lines += ["", f"{'policy':14}" + "".join(f"{name:>12}" for name in DIMENSIONS)]
    lines += [f"{policy:14}" + "".join(f"{row[name]:12.3f}" for name in DIMENSIONS)
              for policy, row in whole.iterrows()]
    return "\n".join(lines)
