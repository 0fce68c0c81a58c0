"""The rule by which a candidate becomes champion.

Notable choices:
- Candidate and champion are judged by the latest races, each scored by the newest of their ancestors that had not yet
  learnt from it: what each chain would have forecast. Races that either knows from its pretraining judge nobody.
- One step of a chain later, both have the same forecasts behind them: then grid order alone can stop the candidate.
- A ranker that is pretrained again takes over from one that is only pretrained, where no race since can judge them.
- Whom a person has replaced, the rule leaves alone until a candidate has learnt from a later race: the same races
  learnt again, after an amended result or with other settings, overrule nobody.
"""
from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd

from f1_pipelines.evaluation.baselines import Baseline, by_grid
from f1_pipelines.evaluation.metrics import spearman
from f1_pipelines.identity.weekends import weekend as known_weekend
from f1_pipelines.promotion.champion import CantPromote, Decision, champion_of, history, usable
from f1_pipelines.settings import settings


@dataclass(frozen=True)
class Rule:
    """When a candidate wins.

    Attributes:
        window_races: Latest races that judge.
        fewest_races: With fewer of them nothing is decided: one race says next to nothing.
        margin: By how much Spearman the candidate may be worse than the champion. Over six races the difference of two
            rankers that are equally good has a standard deviation of about this.
    """

    window_races: int = 6
    fewest_races: int = 3
    margin: float = 0.02


RULE = Rule()


def decide(connection: duckdb.DuckDBPyConnection, candidate: str, rows: pd.DataFrame, folder: Path,
           rule: Rule = RULE) -> Decision | None:
    """What the rule says of a candidate; None where it is champion, or the champion has learnt on from it.

    Args:
        connection: To the warehouse, with the candidate's row in it.
        candidate: Id of the newest link of a chain.
        rows: Starters of run races with features and outcome.
        folder: Where checkpoints lie.
        rule: The rule.

    Raises:
        CantPromote: The candidate is unknown or can't be used.
    """
    champion, ours = champion_of(connection), usable(connection, candidate, folder)
    if champion is not None and candidate in ancestry(connection, champion):
        return None

    def told(decision: str, reason: str, **numbers: float) -> Decision:
        return Decision(candidate, champion, ours.trained.trained_through, decision, "rule", reason,
                        margin=rule.margin, **numbers)

    if champion is None:
        return told("promoted", "the first champion")
    try:
        theirs = usable(connection, champion, folder)
    except CantPromote as unusable:
        return told("promoted", f"predictions had no champion: {unusable}")
    starts = rows.groupby("weekend")["race_start"].first().sort_values()
    if left := _decided_against(connection, candidate, starts):
        return told("candidate", f"a person decided against {left}; only one that has learnt from a later race may win")
    scores = _forecasts(connection, candidate, champion, rows, starts, folder, rule)
    if scores.empty and ours.meta["kind"] == theirs.meta["kind"] == "pretrained":
        return told("promoted", "pretrained again, and no race since to judge it by", n_races=0)
    if len(scores) < rule.fewest_races:
        return told("candidate", f"{len(scores)} races to judge it by (needs {rule.fewest_races})", n_races=len(scores))
    mean = scores.mean()
    numbers = {"n_races": len(scores), **{f"{name}_spearman": float(mean[name]) for name in scores}}
    said = (f"Spearman {mean['candidate']:.3f} over {len(scores)} races, champion {mean['champion']:.3f}, grid "
            f"{mean['grid']:.3f}")
    if mean["candidate"] < mean["champion"] - rule.margin:
        return told("candidate", f"worse than the champion by more than {rule.margin:g}: {said}", **numbers)
    if mean["candidate"] <= mean["grid"]:
        return told("candidate", f"not better than grid order: {said}", **numbers)
    return told("promoted", said, **numbers)


def ancestry(connection: duckdb.DuckDBPyConnection, checkpoint: str) -> list[str]:
    """The checkpoint, its parent, and so on to the pretrained one."""
    return [link for (link,) in connection.execute("""
        WITH RECURSIVE chain AS (
            SELECT checkpoint, parent, 0 AS steps FROM ranking.checkpoints WHERE checkpoint = ?
            UNION ALL
            SELECT link.checkpoint, link.parent, steps + 1
            FROM ranking.checkpoints link JOIN chain ON link.checkpoint = chain.parent)
        SELECT checkpoint FROM chain ORDER BY steps""", [checkpoint]).fetchall()]


def _decided_against(connection: duckdb.DuckDBPyConnection, candidate: str, starts: pd.Series) -> str | None:
    """A checkpoint that a person left for another, where the candidate has learnt from no later race than that one."""
    left: dict[str, None] = {}
    for row in history(connection).itertuples():
        if row.decided_by == "operator":
            left.pop(row.candidate, None)
            if isinstance(row.champion, str):
                left[row.champion] = None
    learnt = {one: _start(through, starts) for one, through in connection.execute(
        "SELECT checkpoint, trained_through FROM ranking.checkpoints WHERE list_contains(?::VARCHAR[], checkpoint)",
        [[candidate, *left]]).fetchall()}
    return next((one for one in left if one in learnt and learnt[candidate] <= learnt[one]), None)


def _forecasts(connection: duckdb.DuckDBPyConnection, candidate: str, champion: str, rows: pd.DataFrame,
               starts: pd.Series, folder: Path, rule: Rule) -> pd.DataFrame:
    """Spearman of candidate, champion and grid in each of the latest races that both can be judged by."""
    chains = {name: [usable(connection, link, folder) for link in ancestry(connection, of)]
              for name, of in (("candidate", candidate), ("champion", champion))}
    judged = []
    for weekend in starts.index[-rule.window_races:]:
        race = rows[rows["weekend"] == weekend].sort_values("driver", ignore_index=True)
        rankers = {name: next((link.trained for link in chain
                               if _start(link.trained.trained_through, starts) < starts[weekend]), None)
                   for name, chain in chains.items()}
        if None in rankers.values():
            continue
        scores = {name: ranker.scores(race) for name, ranker in rankers.items()} | {
            "grid": Baseline("grid", by_grid).scores(race)}
        order = race["official_order"].astype("float64")
        judged.append({name: spearman(score, order) for name, score in scores.items()})
    return pd.DataFrame(judged, columns=["candidate", "champion", "grid"], dtype=np.float64)


def _start(weekend: str, starts: pd.Series) -> pd.Timestamp:
    return starts[weekend] if weekend in starts.index else known_weekend(weekend, settings().calendar_path).race_start
