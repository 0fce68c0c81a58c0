"""Which races a predictor learns from and which it is judged on, always forwards in time."""
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

# Each test season is predicted by what learned from all seasons before it.
SEASONS_TESTED = {"rolling_2019_2025": tuple(range(2019, 2026)), "holdout_2025": (2025,)}
# Each test weekend is predicted by what learned from all races before it.
SEASONS_TESTED_BY_WEEKEND = {"prequential_2026": (2026,)}


class Predictor(Protocol):
    """Anything that ranks a field: a model, or a rule that learns nothing."""

    @property
    def name(self) -> str:
        """As in `ranking.evaluation.predictor`."""
        ...

    def fit(self, train_rows: pd.DataFrame) -> None:
        """Learn from races: starters' feature rows with `official_order` (1 = winner) and `classified`."""
        ...

    def scores(self, race: pd.DataFrame) -> np.ndarray:
        """Score one race, higher = further ahead: feature rows of its starters by driver id, without targets."""
        ...


@runtime_checkable
class ProbabilisticPredictor(Protocol):
    """A predictor that has probabilities as well."""

    def drawn(self, race: pd.DataFrame) -> np.ndarray:
        """Finishing places of many races drawn from what it thinks, (draws, N); rows as for `scores`."""
        ...


@dataclass(frozen=True)
class Evaluated:
    """How predictors did.

    Attributes:
        races: One row per (weekend, predictor, population): season, race_start, protocol, n_cars and the metrics.
        cars: One row per (weekend, predictor, driver) of predictors with probabilities: these, and official_order.
    """

    races: pd.DataFrame
    cars: pd.DataFrame


RaceEvaluation = tuple[list[dict[str, object]], pd.DataFrame | None]
# By versions of the rows learnt from and tested, and the predictor's name.
KnownFolds = dict[tuple[str, str, str], list[RaceEvaluation]]


def folds(rows: pd.DataFrame, protocol: str) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
    """Train and test rows of each fold; every training race started before every test race.

    Args:
        rows: Starters of run races, as `with_targets` gives them.
        protocol: One of `PROTOCOLS`.
    """
    if protocol not in PROTOCOLS:
        raise ValueError(f'"{protocol}" is no protocol; one of {", ".join(PROTOCOLS)} is wanted')
    for season in SEASONS_TESTED.get(protocol, ()):
        train, test = rows[rows["season"] < season], rows[rows["season"] == season]
        if len(train) and len(test):  # the sample has fewer seasons than the protocol
            yield train, test
    for season in SEASONS_TESTED_BY_WEEKEND.get(protocol, ()):
        for start, race in rows[rows["season"] == season].groupby("race_start"):
            yield rows[rows["race_start"] < start], race


def evaluate_races(predictors: Sequence[Predictor], features_with_targets: pd.DataFrame, protocol: str,
                   known: KnownFolds | None = None) -> Evaluated:
    """Judge predictors on the test races of a protocol.

    Every starter is scored once; `classified` then keeps the classified cars, in their own order. Rows reach a
    predictor by driver id and, when it scores, without the outcome.

    Args:
        predictors: Who is judged.
        features_with_targets: Rows as `with_targets` gives them.
        protocol: One of `PROTOCOLS`.
        known: Folds that predictors like these were judged on under another protocol: they are not judged again. Those
            judged now are added.
    """
    rows = features_with_targets[features_with_targets["started"]].sort_values(["race_start", "driver"])
    races: list[dict[str, object]] = []
    cars: list[pd.DataFrame] = []
    for train, test in folds(rows, protocol):
        train = train.reset_index(drop=True)
        tested = [(race, race.drop(columns=list(TARGETS)).reset_index(drop=True))
                  for _, race in test.groupby("weekend", sort=False)]
        fold = None if known is None else (data_version(train), data_version(test))
        for predictor in predictors:
            done = known.get((*fold, predictor.name)) if known is not None and fold else None
            if done is None:
                predictor.fit(train)
                done = [_judge_race(predictor, race, seen) for race, seen in tested]
            if known is not None and fold:
                known[*fold, predictor.name] = done
            for judged, probabilities in done:
                races += [{**row, "protocol": protocol} for row in judged]
                cars += [] if probabilities is None else [probabilities.assign(protocol=protocol)]
    return Evaluated(pd.DataFrame(races), pd.concat(cars, ignore_index=True) if cars else pd.DataFrame())


def _judge_race(predictor: Predictor, race: pd.DataFrame, seen: pd.DataFrame) -> RaceEvaluation:
    """One race, whatever the protocol: a row for each population, and the chances of its cars if there are any."""
    order, scores, probabilities, believed = race["official_order"], np.asarray(predictor.scores(seen)), None, {}
    key = {**race[["weekend", "season", "race_start"]].iloc[0], "predictor": predictor.name}
    if isinstance(predictor, ProbabilisticPredictor):
        probabilities = position_probabilities(predictor.drawn(seen), seen["constructor"])
        probabilities = probabilities.assign(driver=seen["driver"], official_order=order.to_numpy("int64"), **key)
        believed = chance_metrics(probabilities)
    rows = []
    for population in POPULATIONS:
        counted = np.ones(len(race), bool) if population == "starters" else race["classified"].to_numpy(bool)
        rows.append({**key, "population": population, "n_cars": int(counted.sum()),
                     **race_metrics(scores[counted], order.to_numpy("float64")[counted]),
                     **(believed if population == "starters" else {})})
    return rows, probabilities


def evaluate(predictors: Sequence[Predictor], features_with_targets: pd.DataFrame, protocol: str) -> pd.DataFrame:
    """`races` of `evaluate_races`."""
    return evaluate_races(predictors, features_with_targets, protocol).races


def summarise(per_race: pd.DataFrame, against: str = "grid", chances_against: str = "grid_logit",
              draws: int = 10_000, seed: int = 0) -> pd.DataFrame:
    """Mean metrics of each predictor, and how far they are from those of another one in the same races.

    Args:
        per_race: `races` of `evaluate_races`.
        against: Whose Spearman to compare with.
        chances_against: Whose log loss of the win and Brier score of the podium to compare with, if it is there.
        draws: Bootstrap resamples.
        seed: Of the bootstrap.

    Returns:
        One row per (protocol, population, predictor): races, the mean of each metric; delta, delta_low and delta_high
        (of mean Spearman, paired, 95 % over races); the same of log_loss_win and brier_podium; best Spearman first.
    """
    if against not in set(per_race["predictor"]):
        raise ValueError(f'no rows of "{against}" to compare against; evaluate it along with the others')
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
        apart = by_predictor.sub(by_predictor[other], axis=0)
        for (protocol, population), races in apart.groupby(level=["protocol", "population"]):
            for predictor in races.columns:
                low, high = mean_interval(races[predictor], draws, seed)
                means.loc[(protocol, population, predictor), columns] = races[predictor].mean(), low, high
    return means.assign(against=against).reset_index().sort_values(
        [*key[:2], "spearman"], ascending=[True, True, False], ignore_index=True)
