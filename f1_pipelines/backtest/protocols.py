"""Evaluation protocols: which races a predictor trains on and which later races it is evaluated on."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import pandas as pd

from f1_pipelines.evaluation.bootstrap import mean_interval
from f1_pipelines.evaluation.calibration import CHANCE_METRICS, chance_metrics
from f1_pipelines.evaluation.metrics import METRICS, race_metrics
from f1_pipelines.evaluation.probabilities import position_probabilities
from f1_pipelines.evaluation.targets import TARGETS
from f1_pipelines.features.history import data_version
from f1_pipelines.tables.evaluation import POPULATIONS, PROTOCOLS

# Each test season is predicted after training on all earlier seasons.
SEASONS_TESTED = {"rolling_2019_2025": tuple(range(2019, 2026)), "holdout_2025": (2025,)}
# Each test weekend is predicted after training on all earlier races.
SEASONS_TESTED_BY_WEEKEND = {"prequential_2026": (2026,)}


class Predictor(Protocol):
    """Anything that ranks a field: a model, or a fixed rule."""

    @property
    def name(self) -> str:
        """Its name in `ranking.evaluation.predictor`."""
        ...

    def fit(self, train_rows: pd.DataFrame) -> None:
        """Train on races: starters' feature rows with `official_order` (1 = winner) and `classified`."""
        ...

    def scores(self, race: pd.DataFrame) -> np.ndarray:
        """Score one race, higher = further ahead: feature rows of its starters by driver id, without targets."""
        ...


@runtime_checkable
class ProbabilisticPredictor(Protocol):
    """A predictor that also gives probabilities."""

    def drawn(self, race: pd.DataFrame) -> np.ndarray:
        """Sample the finishing places of many races, (draws, N); rows as for `scores`."""
        ...


@dataclass(frozen=True)
class Evaluated:
    """Results of an evaluation.

    Attributes:
        races: One row per (weekend, predictor, population): season, race_start, protocol, n_cars and the metrics.
        cars: One row per (weekend, predictor, driver) of probabilistic predictors: probabilities and official_order.
    """

    races: pd.DataFrame
    cars: pd.DataFrame


RaceEvaluation = tuple[list[dict[str, object]], pd.DataFrame | None]
# By version of the training rows, version of the test rows, and predictor name.
KnownFolds = dict[tuple[str, str, str], list[RaceEvaluation]]


def folds(rows: pd.DataFrame, protocol: str) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
    """Yield training and test rows of each fold; every training race started before every test race.

    Args:
        rows: Starters of completed races, from `with_targets`.
        protocol: One of `PROTOCOLS`.

    Raises:
        ValueError: The protocol is unknown.
    """
    if protocol not in PROTOCOLS:
        raise ValueError(f'"{protocol}" is no protocol; wanted one of {", ".join(PROTOCOLS)}')
    for season in SEASONS_TESTED.get(protocol, ()):
        train, test = rows[rows["season"] < season], rows[rows["season"] == season]
        if len(train) and len(test):  # the sample has fewer seasons than the protocol
            yield train, test
    for season in SEASONS_TESTED_BY_WEEKEND.get(protocol, ()):
        for start, race in rows[rows["season"] == season].groupby("race_start"):
            yield rows[rows["race_start"] < start], race


def evaluate_races(predictors: Sequence[Predictor], features_with_targets: pd.DataFrame, protocol: str,
                   known: KnownFolds | None = None) -> Evaluated:
    """Evaluate predictors on the test races of a protocol.

    Every starter is scored once; population `classified` then keeps the classified cars, in their relative order.
    Predictors get rows sorted by driver id and, for scoring, without the outcome.

    Args:
        predictors: Predictors to evaluate.
        features_with_targets: Rows from `with_targets`.
        protocol: One of `PROTOCOLS`.
        known: Results of folds that the same predictors had under other protocols; reused here, and extended with new
            folds.
    """
    rows = features_with_targets[features_with_targets["started"]].sort_values(["race_start", "driver"])
    races: list[dict[str, object]] = []
    cars: list[pd.DataFrame] = []
    for train, test in folds(rows, protocol):
        train = train.reset_index(drop=True)
        tests = [(race, race.drop(columns=list(TARGETS)).reset_index(drop=True))
                 for _, race in test.groupby("weekend", sort=False)]
        fold = None if known is None else (data_version(train), data_version(test))
        for predictor in predictors:
            evaluated = known.get((*fold, predictor.name)) if known is not None and fold else None
            if evaluated is None:
                predictor.fit(train)
                evaluated = [_evaluate_race(predictor, race, inputs) for race, inputs in tests]
            if known is not None and fold:
                known[*fold, predictor.name] = evaluated
            for metrics, probabilities in evaluated:
                races += [{**row, "protocol": protocol} for row in metrics]
                cars += [] if probabilities is None else [probabilities.assign(protocol=protocol)]
    return Evaluated(pd.DataFrame(races), pd.concat(cars, ignore_index=True) if cars else pd.DataFrame())


def _evaluate_race(predictor: Predictor, race: pd.DataFrame, inputs: pd.DataFrame) -> RaceEvaluation:
    """Metrics of one race, a row for each population, and the probabilities of its cars if the predictor has any."""
    order, scores, probabilities, chances = race["official_order"], np.asarray(predictor.scores(inputs)), None, {}
    key = {**race[["weekend", "season", "race_start"]].iloc[0], "predictor": predictor.name}
    if isinstance(predictor, ProbabilisticPredictor):
        probabilities = position_probabilities(predictor.drawn(inputs), inputs["constructor"])
        probabilities = probabilities.assign(driver=inputs["driver"], official_order=order.to_numpy("int64"), **key)
        chances = chance_metrics(probabilities)
    rows = []
    for population in POPULATIONS:
        included = np.ones(len(race), bool) if population == "starters" else race["classified"].to_numpy(bool)
        rows.append({**key, "population": population, "n_cars": int(included.sum()),
                     **race_metrics(scores[included], order.to_numpy("float64")[included]),
                     **(chances if population == "starters" else {})})
    return rows, probabilities


def evaluate(predictors: Sequence[Predictor], features_with_targets: pd.DataFrame, protocol: str) -> pd.DataFrame:
    """As `evaluate_races`, but return its `races` only."""
    return evaluate_races(predictors, features_with_targets, protocol).races


def summarise(per_race: pd.DataFrame, against: str = "grid", chances_against: str = "grid_logit",
              draws: int = 10_000, seed: int = 0) -> pd.DataFrame:
    """Mean metrics of each predictor, and their differences from another predictor on the same races.

    Args:
        per_race: `races` of `evaluate_races`.
        against: Predictor to compare Spearman with.
        chances_against: Predictor to compare log loss of the win and Brier score of the podium with, if present.
        draws: Bootstrap resamples.
        seed: Seed of the bootstrap.

    Returns:
        One row per (protocol, population, predictor): races, the mean of each metric; delta, delta_low and delta_high
        (of mean Spearman, paired, 95 % over races); the same for log_loss_win and brier_podium; best Spearman first.

    Raises:
        ValueError: `against` has no rows.
    """
    if against not in set(per_race["predictor"]):
        raise ValueError(f'no rows of "{against}" to compare against; evaluate it with the others')
    per_race = per_race.reindex(columns=[*dict.fromkeys([*per_race.columns, *CHANCE_METRICS])])
    key = ["protocol", "population", "predictor"]
    means = per_race.groupby(key).agg(
        races=("weekend", "nunique"), **{name: (name, "mean") for name in (*METRICS, *CHANCE_METRICS)})
    compared = {"spearman": ("delta", against), "log_loss_win": ("delta_log_loss_win", chances_against),
                "brier_podium": ("delta_brier_podium", chances_against)}
    for metric, (name, other) in compared.items():
        values = per_race.set_index(["protocol", "population", "weekend", "predictor"])[metric].astype("float64")
        by_predictor = values.unstack()  # noqa: PD010
        columns = [name, f"{name}_low", f"{name}_high"]
        means[columns] = np.nan
        if other not in by_predictor.columns:
            continue
        deltas = by_predictor.sub(by_predictor[other], axis=0)
        for (protocol, population), races in deltas.groupby(level=["protocol", "population"]):
            for predictor in races.columns:
                low, high = mean_interval(races[predictor], draws, seed)
                means.loc[(protocol, population, predictor), columns] = races[predictor].mean(), low, high
    return means.assign(against=against).reset_index().sort_values(
        [*key[:2], "spearman"], ascending=[True, True, False], ignore_index=True)
