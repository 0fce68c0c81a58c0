"""Acceptance test: whether an engineer may be served, decided by its own races and never by its training log alone.

Notable choices:
- An engineer without evaluation is not served. Episodes name their checkpoint, so only its own races count.
- The untrained model is served as the baseline: it must have been evaluated, but its outputs need not parse.
- No engineer may be worse than its parent on held-out races by the paired 95 % interval, and GRPO must have raised the
  score on the validation races that select its checkpoint.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from f1_pipelines.checkpoints.store import CheckpointError
from f1_pipelines.engineer.inference.checkpoints import finite_weights, read_checkpoint
from f1_pipelines.evaluation.bootstrap import mean_interval

MAX_PARSE_FAILURES = 0.005  # share of a trained engineer's outputs
MIN_RACES = 6


@dataclass(frozen=True)
class Verdict:
    """Whether an engineer may be served, and why. `evaluated`: whether its own weights were tested."""

    accepted: bool
    reason: str
    evaluated: bool = True


def acceptance_verdict(engineer: Mapping[str, Any], episodes: pd.DataFrame, history: pd.DataFrame,
                       folder: Path) -> Verdict:
    """Test an engineer by its own races.

    Args:
        engineer: Row of `strategy.engineers`.
        episodes: Rows of `strategy.episodes` of variant plain: its own, and its parent's in the same races.
        history: Rows of `strategy.training_curve` of its training.
        folder: Folder of engineer checkpoints.
    """
    stage, checkpoint = str(engineer["stage"]), str(engineer["checkpoint"])
    try:
        stored = read_checkpoint(folder / str(engineer["path"]))
    except CheckpointError as error:
        return Verdict(False, f"it can't be loaded: {error}")
    if stored.id != checkpoint:
        return Verdict(False, f"its folder holds {stored.id}, not {checkpoint}")
    if not finite_weights(stored.path):
        return Verdict(False, "its weights are not finite")
    own = episodes[(episodes["checkpoint"] == checkpoint) & (episodes["policy"] == stage)]
    if len(own) < MIN_RACES:
        return Verdict(False, f"it has driven {len(own)} races of the evaluation (needs {MIN_RACES}); materialize "
                       "strategy_evaluation", evaluated=False)
    score = own["score"].to_numpy("float64", na_value=np.nan)
    if not np.isfinite(score).all():
        return Verdict(False, f"{int((~np.isfinite(score)).sum())} of its {len(own)} races have no finite score")
    summary = f"score {score.mean():.3f} over {len(own)} races"
    if own["fallbacks"].sum():
        return Verdict(False, f"a script called in its place {int(own['fallbacks'].sum())} times")
    if stage == "untrained":
        return Verdict(True, f"{summary}: the baseline")
    unparsed = float(own["parse_failures"].sum() / own["laps_called"].sum())
    if unparsed > MAX_PARSE_FAILURES:
        return Verdict(False, f"{unparsed:.1%} of its outputs are no commands (at most {MAX_PARSE_FAILURES:.1%})")
    if worse := _worse_than(own, episodes[episodes["checkpoint"] == engineer["parent"]]):
        return Verdict(False, worse)
    if not _better_by_selection(history):
        return Verdict(False, "no GRPO step beat the SFT engineer on the validation races")
    return Verdict(True, summary)


def _worse_than(own: pd.DataFrame, parent: pd.DataFrame) -> str | None:
    """Return a sentence if the engineer is worse than its parent in the races of both, else None."""
    paired = own.merge(parent, on=["family", "seed"], suffixes=("", "_parent"))
    difference = paired["score"].astype("float64") - paired["score_parent"].astype("float64")
    high = mean_interval(difference)[1]
    if high < 0:
        return (f"worse than its parent: {difference.mean():.3f} over {len(paired)} races, 95 % interval up to "
                f"{high:.3f}")
    return None


def _better_by_selection(history: pd.DataFrame) -> bool:
    """Whether a GRPO step beat the SFT engineer on the selection races; True without a selection."""
    selected = history[history["metric"] == "selection_score"]
    if selected.empty:
        return True
    before, after = (selected.loc[selected["step"].eq(0) == first, "value"].max() for first in (True, False))
    return bool(after > (before if pd.notna(before) else -1.0))
