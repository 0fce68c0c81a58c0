"""The rule by which a candidate becomes champion.

Notable choices:
- First the candidate's own weights must pass the acceptance test (`promotion.acceptance`), whatever its ancestors
  forecast. A candidate that fails waits.
- Then skill is compared on all races since the pretrainings of candidate and champion. Each race is scored by the
  newest ancestor that had not yet learnt from it, which is what each chain would have forecast. A link is a pure
  function of parent, window and settings, so these forecasts are the candidate's if the settings are its own; races
  after links of other settings don't count, nor do races of either pretraining.
- The candidate waits if a 99 % interval has it below the champion or grid order; the level allows for a decision after
  each race. Of 298 decisions on healthy chains over 2018-2026, each from what was stored then, test and rule refuse
  none; comparing the mean over the latest six races with the grid refused 85 of 290.
- The next link of the champion's chain has the same forecasts, so only its own weights or grid order can stop it.
- A new pretrained ranker replaces a champion that is only pretrained, if no race since can compare them.
- After an operator replaced a checkpoint, a candidate needs a later race to win: training on the same races again, with
  an amended result or other settings, does not overrule the operator.
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
    """Parameters of the rule.

    Attributes:
        fewest_races: Minimum number of races to decide on.
        interval_races: Minimum number of races for the interval against the champion.
        enough_races: Minimum number of races for the margin and for the interval against grid order. Over 14 races the
            difference of two equally good rankers of our model has a standard deviation of .01, of two different
            models .02.
        margin: Spearman by which the candidate may be worse than the champion.
        limits: Limits of the acceptance test.
    """

    fewest_races: int = 3
    interval_races: int = 6
    enough_races: int = 14
    margin: float = 0.02
    limits: Limits = LIMITS


RULE = Rule()


def decide(connection: duckdb.DuckDBPyConnection, candidate: str, rows: pd.DataFrame, folder: Path,
           rule: Rule = RULE, failed_checks: Sequence[str] = ()) -> PromotionDecision | None:
    """Decide on a candidate; None if it is the champion or an ancestor of it.

    Args:
        connection: Connection to the warehouse, which has the candidate's row.
        candidate: Id of the newest link of a chain.
        rows: Starters of completed races with features and outcome.
        folder: Checkpoint folder.
        rule: Parameters of the rule.
        failed_checks: Failed blocking checks of the training assets, each as a phrase.

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
        candidate_checkpoint = usable(connection, candidate, folder)
    except UnknownCheckpoint:
        raise
    except CantPromote as problem:
        return decision_of("candidate", str(problem))
    champion_checkpoint, no_champion = _champion(connection, champion, folder)
    reference = _reference(candidate_checkpoint, champion_checkpoint, rows, rule)
    acceptance = acceptance_of(connection, candidate_checkpoint, rows, folder, reference, rule.limits)
    if acceptance.refusal:
        return decision_of("candidate", acceptance.refusal, **acceptance.numbers)
    if champion_checkpoint is None:
        return decision_of("promoted", no_champion, **acceptance.numbers)
    starts = rows.groupby("weekend")["race_start"].first().sort_values()
    if replaced := _replaced_by_operator(connection, candidate, starts):
        return decision_of("candidate",
                           f"a person decided against {replaced}; only one that has learnt from a later race may win",
                           **acceptance.numbers)
    scores = _forecasts(connection, candidate_checkpoint, champion_checkpoint, rows, starts, folder)
    decision, reason, numbers = _compare(scores, rule)
    if scores.empty and candidate_checkpoint.meta["kind"] == champion_checkpoint.meta["kind"] == "pretrained":
        decision, reason = "promoted", "pretrained again, and no race since to judge it by"
    return decision_of(decision, reason, **acceptance.numbers, **numbers)


def _trained_through(connection: duckdb.DuckDBPyConnection, candidate: str) -> str:
    stored = connection.execute("SELECT trained_through FROM ranking.checkpoints WHERE checkpoint = ?",
                                [candidate]).fetchall()
    return str(stored[0][0]) if stored else ""


def _champion(connection: duckdb.DuckDBPyConnection, champion: str | None,
              folder: Path) -> tuple[Checkpoint | None, str]:
    """Load the champion; None and the reason if predictions have no usable one."""
    if champion is None:
        return None, "the first champion"
    try:
        return usable(connection, champion, folder), ""
    except CantPromote as problem:
        return None, f"predictions had no champion: {problem}"


def _reference(candidate: Checkpoint, champion: Checkpoint | None, rows: pd.DataFrame, rule: Rule) -> Checkpoint | None:
    """The champion, if the candidate is pretrained and the champion itself passes the acceptance test; else None."""
    if champion is None or candidate.meta["parent"]:
        return None
    return champion if acceptance_test(champion, rows, limits=rule.limits).refusal is None else None


def _compare(scores: pd.DataFrame, rule: Rule) -> tuple[Literal["promoted", "candidate"], str, dict[str, float]]:
    """Decision, reason and numbers from the Spearman of each race."""
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


def _replaced_by_operator(connection: duckdb.DuckDBPyConnection, candidate: str, starts: pd.Series) -> str | None:
    """A checkpoint that an operator replaced, if the candidate has learnt from no later race than that checkpoint."""
    replaced: dict[str, None] = {}
    for row in history(connection).itertuples():
        if row.decided_by == "operator":
            replaced.pop(row.candidate, None)
            if isinstance(row.champion, str):
                replaced[row.champion] = None
    last_races = {checkpoint: _start(through, starts) for checkpoint, through in connection.execute(
        "SELECT checkpoint, trained_through FROM ranking.checkpoints WHERE list_contains(?::VARCHAR[], checkpoint)",
        [[candidate, *replaced]]).fetchall()}
    return next((checkpoint for checkpoint in replaced
                 if checkpoint in last_races and last_races[candidate] <= last_races[checkpoint]), None)


def _forecasts(connection: duckdb.DuckDBPyConnection, candidate: Checkpoint, champion: Checkpoint, rows: pd.DataFrame,
               starts: pd.Series, folder: Path) -> pd.DataFrame:
    """Spearman of candidate, champion and grid in each race that both chains forecast."""
    from f1_pipelines.models.training import one_thread

    chains = {"candidate": _chain(connection, candidate, folder), "champion": _chain(connection, champion, folder)}
    last_races = {link.id: _start(link.trained.trained_through, starts) for chain in chains.values() for link in chain}
    pretrained_through = max(last_races[chain[-1].id] for chain in chains.values())
    spearmans, races = [], dict(tuple(rows[rows["race_start"] > pretrained_through].groupby("weekend")))
    for weekend in starts.index[starts > pretrained_through]:
        race = races[weekend].sort_values("driver", ignore_index=True)
        forecasters = {name: _forecaster(chain, [link for link in chain if last_races[link.id] < starts[weekend]])
                       for name, chain in chains.items()}
        rankers = {name: ranker for name, ranker in forecasters.items() if ranker is not None}
        if len(rankers) < len(forecasters) or len(race) < 2:
            continue
        by_id = {ranker.id: ranker.trained for ranker in rankers.values()}  # often one: both chains may share it
        with one_thread():
            scores_by_id = {id_: np.nan_to_num(trained.scores(race)) for id_, trained in by_id.items()}
        scores = {name: scores_by_id[ranker.id] for name, ranker in rankers.items()} | {
            "grid": Baseline("grid", by_grid).scores(race)}
        order = race["official_order"].astype("float64")
        spearmans.append({name: spearman(score, order) for name, score in scores.items()})
    return pd.DataFrame(spearmans, columns=["candidate", "champion", "grid"], dtype=np.float64)


def _chain(connection: duckdb.DuckDBPyConnection, newest: Checkpoint, folder: Path) -> list[Checkpoint]:
    """The checkpoint and its usable ancestors, the pretrained one last."""
    chain = [newest]
    for link in ancestry(connection, newest.id)[1:]:
        with suppress(CantPromote):
            chain.append(usable(connection, link, folder))
    return chain


def _forecaster(chain: list[Checkpoint], earlier: list[Checkpoint]) -> Checkpoint | None:
    """The checkpoint whose forecast counts for the chain's newest one: the newest that had not learnt from the race, if
    it has the same settings or is pretrained."""
    if not earlier:
        return None
    same = earlier[0].meta.get("learning") == chain[0].meta.get("learning")
    return earlier[0] if same or earlier[0].meta["kind"] == "pretrained" else None


def _start(weekend: str, starts: pd.Series) -> pd.Timestamp:
    return starts[weekend] if weekend in starts.index else known_weekend(weekend, settings().calendar_path).race_start
