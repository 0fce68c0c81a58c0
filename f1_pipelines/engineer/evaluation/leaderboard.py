"""Means, intervals and paired differences of evaluated policies: rows of `strategy.leaderboard`."""
from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd

from f1_pipelines.evaluation.bootstrap import DRAWS, mean_interval
from f1_pipelines.sim.scenarios import FAMILIES
from f1_pipelines.sim.scoring.dimensions import DIMENSIONS

ALL, UNSEEN_CIRCUIT = "all", "unseen_circuit"
SAME = 1e-9


def leaderboard(episodes: pd.DataFrame) -> pd.DataFrame:
    """A row for each policy, variant and family, for all families and for unseen circuits.

    Families weigh alike in `all` and `unseen_circuit`: each race weighs one over the races of its family. Differences
    are paired: over the races that both policies have.

    Args:
        episodes: Rows of `strategy.episodes`.
    """
    rows = []
    for (policy, variant), mine in episodes.groupby(["policy", "variant"], sort=False):
        for family, part in leaderboard_parts(mine):
            rows.append({"policy": policy, "variant": variant, "family": family, **_row(part, episodes)})
    return pd.DataFrame(rows)


def leaderboard_parts(mine: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """A policy's episodes by family, all families together (`all`), and those on unseen circuits."""
    apart = mine["split"] == UNSEEN_CIRCUIT
    for family in FAMILIES:
        part = mine[~apart & (mine["family"] == family)]
        if len(part):
            yield family, part
    if (~apart).any():
        yield ALL, mine[~apart]
    if apart.any():
        yield UNSEEN_CIRCUIT, mine[apart]


def _row(part: pd.DataFrame, episodes: pd.DataFrame) -> dict[str, object]:
    low, high = family_interval(part["score"], part)
    keyed = part.set_index(["family", "seed"])
    plain = episodes[episodes["variant"] == "plain"]
    sft = _paired(keyed, plain[plain["policy"] == "sft"])
    over = part["score"].to_numpy(float) - sft if sft is not None else None
    over_low, over_high = family_interval(over, part) if over is not None else (None, None)
    gap, gap_low, gap_high = _gap(keyed, plain)
    return {
        "checkpoint": part["checkpoint"].iloc[0], "n": len(part), "mean": family_mean(part["score"], part),
        "low": low, "high": high, "gap_closed": gap, "gap_low": gap_low, "gap_high": gap_high,
        "over_sft": family_mean(over, part) if over is not None else None, "over_sft_low": over_low,
        "over_sft_high": over_high,
        "regret": family_mean(part["regret"], part) if part["regret"].notna().all() else None,
        **{name: family_mean(part[name], part) for name in DIMENSIONS},
        "parse_failures": float(part["parse_failures"].sum() / part["laps_called"].sum()),
        "constant_score": bool(len(part) > 2 and part["score"].max() - part["score"].min() < SAME),
        **{name: part[name].iloc[0] for name in ("env_version", "prompt_version", "scenes_version", "made_at")},
    }


def family_mean(values: object, races: pd.DataFrame) -> float:
    """Mean over families of the mean over their races, each an exactly rounded sum: it can't leave the span of the
    values, as a sum of weights of 1/42 does (42 scores of 1.0 came to 1.0000000000000002)."""
    families = pd.Series(np.asarray(values, float)).groupby(races["family"].to_numpy())
    means = [math.fsum(own) / len(own) for _, own in families]
    return math.fsum(means) / len(means)


def _weights(races: pd.DataFrame) -> np.ndarray:
    """(n,) such that families weigh alike; they add up to 1."""
    counts = races["family"].map(races["family"].value_counts()).to_numpy(float)
    return 1.0 / (counts * races["family"].nunique())


def family_interval(values: object, races: pd.DataFrame) -> tuple[float, float]:
    """95 % bootstrap interval of the weighted mean. Weighing a race by its family's share keeps a mean a mean."""
    return mean_interval(np.asarray(values, float) * _weights(races) * len(races))


def _paired(keyed: pd.DataFrame, other: pd.DataFrame) -> np.ndarray | None:
    """Scores of another policy on the same races in the same order; None unless it has them all."""
    scores = other.set_index(["family", "seed"])["score"].reindex(keyed.index)
    return None if scores.isna().any() else scores.to_numpy(float)


def _gap(keyed: pd.DataFrame, plain: pd.DataFrame) -> tuple[float | None, float | None, float | None]:
    """Share of the way from untrained to expert, and its interval, races drawn together for all three."""
    floor = _paired(keyed, plain[plain["policy"] == "untrained"])
    top = _paired(keyed, plain[plain["policy"] == "expert"])
    if floor is None or top is None:
        return None, None, None
    weights = _weights(keyed.reset_index())
    won, whole = weights * (keyed["score"].to_numpy(float) - floor), weights * (top - floor)
    if abs(whole.sum()) < SAME:
        return None, None, None
    drawn = np.random.default_rng(0).integers(len(won), size=(DRAWS // 4, len(won)))
    low, high = np.quantile(won[drawn].sum(axis=1) / whole[drawn].sum(axis=1), (0.025, 0.975))
    return float(won.sum() / whole.sum()), float(low), float(high)
