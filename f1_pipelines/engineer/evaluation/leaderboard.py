"""Means, intervals and paired differences of an evaluation: rows of `strategy.leaderboard`.

The table of scripted policies (`policy_table`) uses `family_mean` and `family_interval`, too.
"""
from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from f1_pipelines.evaluation.bootstrap import DRAWS, mean_interval
from f1_pipelines.sim.scenarios import FAMILIES
from f1_pipelines.sim.scoring.dimensions import DIMENSIONS

ALL, UNSEEN_CIRCUIT = "all", "unseen_circuit"
SAME = 1e-9  # scores closer than this are equal


def leaderboard(episodes: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each policy and variant: of each family, of all families, and of unseen circuits.

    Families have equal weight in `all` and `unseen_circuit`. Differences are paired over the races of both policies.

    Args:
        episodes: Rows of `strategy.episodes`.
    """
    rows = []
    for (policy, variant), own in episodes.groupby(["policy", "variant"], sort=False):
        for family, races in leaderboard_parts(own):
            rows.append({"policy": policy, "variant": variant, "family": family, **_row(races, episodes)})
    return pd.DataFrame(rows)


def family_mean(values: ArrayLike, races: pd.DataFrame) -> float:
    """Return the mean over families of the mean over their races.

    Each mean is an exactly rounded sum, so it can't leave the range of the values, as a weighted sum can (42 scores of
    1.0 with weights of 1/42 gave 1.0000000000000002).

    Args:
        values: (races,) values.
        races: (races,) rows with their `family`.
    """
    by_family = pd.Series(np.asarray(values, float)).groupby(races["family"].to_numpy())
    means = [math.fsum(group) / len(group) for _, group in by_family]
    return math.fsum(means) / len(means)


def family_interval(values: ArrayLike, races: pd.DataFrame) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of `family_mean`, with races weighted for equal weight of families."""
    return mean_interval(np.asarray(values, float) * _weights(races["family"]) * len(races))


def leaderboard_parts(own: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield a policy's episodes by family, of all families (`all`), and on unseen circuits."""
    on_unseen = own["split"] == UNSEEN_CIRCUIT
    for family in FAMILIES:
        races = own[~on_unseen & (own["family"] == family)]
        if len(races):
            yield family, races
    if (~on_unseen).any():
        yield ALL, own[~on_unseen]
    if on_unseen.any():
        yield UNSEEN_CIRCUIT, own[on_unseen]


def _row(races: pd.DataFrame, episodes: pd.DataFrame) -> dict[str, object]:
    low, high = family_interval(races["score"], races)
    keyed = races.set_index(["family", "seed"])
    plain = episodes[episodes["variant"] == "plain"]
    sft = _paired(keyed, plain[plain["policy"] == "sft"])
    gain = races["score"].to_numpy(float) - sft if sft is not None else None
    over_low, over_high = family_interval(gain, races) if gain is not None else (None, None)
    gap, gap_low, gap_high = _gap_closed(keyed, plain)
    return {
        "checkpoint": races["checkpoint"].iloc[0], "n": len(races), "mean": family_mean(races["score"], races),
        "low": low, "high": high, "gap_closed": gap, "gap_low": gap_low, "gap_high": gap_high,
        "over_sft": family_mean(gain, races) if gain is not None else None, "over_sft_low": over_low,
        "over_sft_high": over_high,
        "regret": family_mean(races["regret"], races) if races["regret"].notna().all() else None,
        **{name: family_mean(races[name], races) for name in DIMENSIONS},
        "parse_failures": float(races["parse_failures"].sum() / races["laps_called"].sum()),
        "constant_score": bool(len(races) > 2 and races["score"].max() - races["score"].min() < SAME),
        **{name: races[name].iloc[0] for name in ("env_version", "prompt_version", "scenes_version", "made_at")},
    }


def _weights(families: pd.Series) -> np.ndarray:
    """Return (races,) weights that add up to 1, with the same sum in each family."""
    counts = families.map(families.value_counts()).to_numpy(float)
    weights: np.ndarray = 1.0 / (counts * families.nunique())
    return weights


def _paired(keyed: pd.DataFrame, other: pd.DataFrame) -> np.ndarray | None:
    """Return another policy's scores in the same races and order; None if one is missing."""
    scores = other.set_index(["family", "seed"])["score"].reindex(keyed.index)
    return None if scores.isna().any() else scores.to_numpy(float)


def _gap_closed(keyed: pd.DataFrame, plain: pd.DataFrame) -> tuple[float | None, float | None, float | None]:
    """Return the closed share of the gap from untrained to expert, and its interval from resampled races."""
    untrained = _paired(keyed, plain[plain["policy"] == "untrained"])
    expert = _paired(keyed, plain[plain["policy"] == "expert"])
    if untrained is None or expert is None:
        return None, None, None
    weights = _weights(keyed.reset_index()["family"])
    gained, gap = weights * (keyed["score"].to_numpy(float) - untrained), weights * (expert - untrained)
    if abs(gap.sum()) < SAME:
        return None, None, None
    draws = np.random.default_rng(0).integers(len(gained), size=(DRAWS // 4, len(gained)))
    low, high = np.quantile(gained[draws].sum(axis=1) / gap[draws].sum(axis=1), (0.025, 0.975))
    return float(gained.sum() / gap.sum()), float(low), float(high)
