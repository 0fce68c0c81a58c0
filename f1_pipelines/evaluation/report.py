"""Every predictor under every protocol that is run by default, as rows of the evaluation tables."""
from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from f1_pipelines.evaluation.baselines import BASELINES
from f1_pipelines.evaluation.protocols import SEASONS_TESTED, Predictor, evaluate, summarise
from f1_pipelines.tables.ranking import EVALUATION, EVALUATION_SUMMARY


def default_predictors() -> list[Predictor]:
    """The baselines, the reference and our ranker."""
    from f1_pipelines.models.predictors import champion, f1net_reference  # late: torch

    return [*BASELINES, f1net_reference(), champion()]


def evaluate_all(rows: pd.DataFrame, log: Callable[[str], None],
                 predictors: list[Predictor] | None = None) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Judge predictors under the protocols that test whole seasons.

    Args:
        rows: Starters of run races with features and outcome (`evaluation.targets.with_targets`).
        log: Told which protocol is being run.
        predictors: All of `default_predictors` without.

    Returns:
        Rows of `ranking.evaluation` and of `ranking.evaluation_summary`, less data_version and evaluated_at.
    """
    judged = []
    for protocol, seasons in SEASONS_TESTED.items():
        log(f"{protocol}: testing {seasons[0]} to {seasons[-1]}, each on what earlier seasons taught")
        judged.append(evaluate(predictors or default_predictors(), rows, protocol))
    per_race = pd.concat(judged, ignore_index=True)
    counts = rows.groupby("weekend").agg(starters=("driver", "size"), classified=("classified", "sum"))
    n_cars = [counts.loc[row.weekend, row.population] for row in per_race.itertuples()]
    summary = summarise(per_race).rename(columns={"races": "n_races", "delta": "delta_spearman"})
    later = ("data_version", "evaluated_at")
    per_race = per_race.assign(n_cars=n_cars, log_loss_win=None)
    return (per_race[[c for c in EVALUATION.column_names if c not in later]],
            summary[[c for c in EVALUATION_SUMMARY.column_names if c not in later]])
