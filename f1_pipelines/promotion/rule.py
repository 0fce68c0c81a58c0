"""The rule by which a candidate becomes champion.

Notable choices:
- First its own weights are tested (`promotion.acceptance`): whatever its ancestors forecast, one that fails waits.
- Then skill is compared on all races since the pretrainings of candidate and champion, each scored by the newest of
  their ancestors that had not yet learnt from it: what each chain would have forecast. A link is a pure function of
  parent, window and settings, so that these are the candidate's forecasts as long as the settings were its own; races
  after links of other settings judge nobody. Nor do races that either knows from its pretraining.
- The candidate waits where it is worse than the champion or than grid order by an interval of 99 %: a decision falls
  after each race. Of 298 decisions on healthy chains over 2018-2026, each by what was stored then, test and rule
  refuse none; a mean over the latest six races against the grid refused 85 of 290.
- One step of a chain later, both have the same forecasts behind them: then only its own weights or grid order stop it.
- A ranker that is pretrained again takes over from one that is only pretrained, where no race since can judge them.
- Whom a person has replaced, the rule leaves alone until a candidate has learnt from a later race: the same races
  learnt again, after an amended result or with other settings, overrule nobody.
"""
from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import duckdb
import numpy as np
import pandas as pd

from f1_pipelines.evaluation.baselines import Baseline, by_grid
from f1_pipelines.evaluation.bootstrap import mean_interval
from f1_pipelines.evaluation.metrics import spearman
from f1_pipelines.identity.weekends import weekend as known_weekend
from f1_pipelines.promotion.acceptance import LEVEL, LIMITS, Limits, acceptance_test
from f1_pipelines.promotion.champion import (
    CantPromote,
    PromotionDecision,
    UnknownCheckpoint,
    acceptance_of,
    ancestry,
    champion_of,
    history,
    usable,
)
from f1_pipelines.settings import settings

if TYPE_CHECKING:
    from f1_pipelines.models.checkpoints import Checkpoint


@dataclass(frozen=True)
class Rule:
    """When a candidate wins.

    Attributes:
        fewest_races: With fewer of them nothing is decided: one race says next to nothing.
        interval_races: Races from which on an interval against the champion says something.
        enough_races: Races from which on a mean below the margin and an interval against grid order do. Over 14 races
            the difference of two rankers of our model that are equally good has a standard deviation of .01, of two
            different models .02.
        margin: By how much Spearman the candidate may be worse than the champion.
        limits: Of the acceptance test of its own weights.
    """

    fewest_races: int = 3
    interval_races: int = 6
    enough_races: int = 14
    margin: float = 0.02
    limits: Limits = LIMITS


RULE = Rule()


def decide(connection: duckdb.DuckDBPyConnection, candidate: str, rows: pd.DataFrame, folder: Path,
           rule: Rule = RULE, failed_checks: Sequence[str] = ()) -> PromotionDecision | None:
    """What the rule says of a candidate; None where it is champion, or the champion has learnt on from it.

    Args:
        connection: To the warehouse, with the candidate's row in it.
        candidate: Id of the newest link of a chain.
        rows: Starters of run races with features and outcome.
        folder: Where checkpoints lie.
        rule: The rule.
        failed_checks: Blocking checks of what was trained that did not pass, each as a phrase.

    Raises:
        UnknownCheckpoint: The warehouse has no such candidate.
    """
    champion = champion_of(connection)
    if champion is not None and candidate in ancestry(connection, champion):
        return None
    through = _trained_through(connection, candidate)

    def decision_of(decision: Literal["promoted", "candidate"], reason: str, **numbers: Any) -> PromotionDecision:
        return PromotionDecision(candidate, champion, through, decision, "rule", reason, margin=rule.margin, **numbers)

    if failed_checks:
        return decision_of("candidate", f"blocking checks did not pass: {'; '.join(failed_checks)}")
    try:
        ours = usable(connection, candidate, folder)
    except UnknownCheckpoint:
        raise
    except CantPromote as unusable:
        return decision_of("candidate", str(unusable))
    theirs, without = _champion(connection, champion, folder)
    acceptance = acceptance_of(connection, ours, rows, folder, _model_for(ours, theirs, rows, rule), rule.limits)
    if acceptance.refusal:
        return decision_of("candidate", acceptance.refusal, **acceptance.numbers)
    if theirs is None:
        return decision_of("promoted", without, **acceptance.numbers)
    starts = rows.groupby("weekend")["race_start"].first().sort_values()
    if left := _decided_against(connection, candidate, starts):
        return decision_of("candidate",
                           f"a person decided against {left}; only one that has learnt from a later race may win",
                    **acceptance.numbers)
    scores = _forecasts(connection, ours, theirs, rows, starts, folder)
    decision, reason, numbers = _compared(scores, rule)
    if scores.empty and ours.meta["kind"] == theirs.meta["kind"] == "pretrained":
        decision, reason = "promoted", "pretrained again, and no race since to judge it by"
    return decision_of(decision, reason, **acceptance.numbers, **numbers)


def _trained_through(connection: duckdb.DuckDBPyConnection, candidate: str) -> str:
    stored = connection.execute("SELECT trained_through FROM ranking.checkpoints WHERE checkpoint = ?",
                                [candidate]).fetchall()
    return str(stored[0][0]) if stored else ""


def _champion(connection: duckdb.DuckDBPyConnection, champion: str | None,
              folder: Path) -> tuple[Checkpoint | None, str]:
    """The champion, loaded; None, and why, where predictions have none that they could use."""
    if champion is None:
        return None, "the first champion"
    try:
        return usable(connection, champion, folder), ""
    except CantPromote as unusable:
        return None, f"predictions had no champion: {unusable}"


def _model_for(candidate: Checkpoint, champion: Checkpoint | None, rows: pd.DataFrame, rule: Rule) -> Checkpoint | None:
    """The champion where a pretrained candidate should agree with it: nobody needs to agree with a broken one."""
    if champion is None or candidate.meta["parent"]:
        return None
    return champion if acceptance_test(champion, rows, limits=rule.limits).refusal is None else None


def _compared(scores: pd.DataFrame, rule: Rule) -> tuple[Literal["promoted", "candidate"], str, dict[str, float]]:
    """What forecasts say: the decision, why, and the numbers."""
    races = len(scores)
    if races < rule.fewest_races:
        return "candidate", f"{races} races to judge it by (needs {rule.fewest_races})", {"n_races": races}
    mean = scores.mean()
    (low, high), (grid_low, grid_high) = (mean_interval(scores["candidate"] - scores[other], level=LEVEL)
                                          for other in ("champion", "grid"))
    numbers = {"n_races": races, **{f"{name}_spearman": float(mean[name]) for name in scores},
               "over_champion_low": low, "over_champion_high": high, "over_grid_low": grid_low,
               "over_grid_high": grid_high}
    summary = (f"Spearman {mean['candidate']:.3f} over {races} races, champion {mean['champion']:.3f}, grid "
               f"{mean['grid']:.3f}")
    if races >= rule.interval_races and high < 0:
        return "candidate", f"worse than the champion, by {-high:.3f} at least: {summary}", numbers
    if races >= rule.enough_races and mean["candidate"] < mean["champion"] - rule.margin:
        return "candidate", f"worse than the champion by more than {rule.margin:g}: {summary}", numbers
    if races >= rule.enough_races and grid_high < 0:
        return "candidate", f"worse than grid order, by {-grid_high:.3f} at least: {summary}", numbers
    return "promoted", summary, numbers


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


def _forecasts(connection: duckdb.DuckDBPyConnection, candidate: Checkpoint, champion: Checkpoint, rows: pd.DataFrame,
               starts: pd.Series, folder: Path) -> pd.DataFrame:
    """Spearman of candidate, champion and grid in each race that both can be judged by."""
    from f1_pipelines.models.training import one_thread

    chains = {"candidate": _chain(connection, candidate, folder), "champion": _chain(connection, champion, folder)}
    learnt = {link.id: _start(link.trained.trained_through, starts) for chain in chains.values() for link in chain}
    first = max(learnt[chain[-1].id] for chain in chains.values())
    judged, known = [], dict(tuple(rows[rows["race_start"] > first].groupby("weekend")))
    for weekend in starts.index[starts > first]:
        race = known[weekend].sort_values("driver", ignore_index=True)
        forecasters = {name: _forecaster(chain, [link for link in chain if learnt[link.id] < starts[weekend]])
                       for name, chain in chains.items()}
        rankers = {name: ranker for name, ranker in forecasters.items() if ranker is not None}
        if len(rankers) < len(forecasters) or len(race) < 2:
            continue
        each = {ranker.id: ranker.trained for ranker in rankers.values()}  # mostly one: both come the same way
        with one_thread():
            theirs = {name: np.nan_to_num(trained.scores(race)) for name, trained in each.items()}
        scores = {name: theirs[ranker.id] for name, ranker in rankers.items()} | {
            "grid": Baseline("grid", by_grid).scores(race)}
        order = race["official_order"].astype("float64")
        judged.append({name: spearman(score, order) for name, score in scores.items()})
    return pd.DataFrame(judged, columns=["candidate", "champion", "grid"], dtype=np.float64)


def _chain(connection: duckdb.DuckDBPyConnection, newest: Checkpoint, folder: Path) -> list[Checkpoint]:
    """The checkpoint and its ancestors, the pretrained one last; without those that can't be used any more."""
    chain = [newest]
    for link in ancestry(connection, newest.id)[1:]:
        with suppress(CantPromote):
            chain.append(usable(connection, link, folder))
    return chain


def _forecaster(chain: list[Checkpoint], earlier: list[Checkpoint]) -> Checkpoint | None:
    """Whose forecast counts as that of the chain's newest: the latest of those that had not yet learnt from the race,
    if it was made by the same settings; pretrained ones have none."""
    if not earlier:
        return None
    same = earlier[0].meta.get("learning") == chain[0].meta.get("learning")
    return earlier[0] if same or earlier[0].meta["kind"] == "pretrained" else None


def _start(weekend: str, starts: pd.Series) -> pd.Timestamp:
    return starts[weekend] if weekend in starts.index else known_weekend(weekend, settings().calendar_path).race_start
