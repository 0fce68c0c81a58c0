"""Which races a predictor learns from and which it is judged on, always forwards in time."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
import pandas as pd

from f1_pipelines.evaluation.bootstrap import mean_interval
from f1_pipelines.evaluation.metrics import METRICS, race_metrics
from f1_pipelines.evaluation.targets import TARGETS
from f1_pipelines.tables.ranking import POPULATIONS, PROTOCOLS

# Each test season is predicted by what learned from all seasons before it.
SEASONS_TESTED = {"rolling_2019_2025": tuple(range(2019, 2026)), "holdout_2025": (2025,)}
# Each test weekend is predicted by what learned from all races before it.
SEASONS_TESTED_BY_WEEKEND = {"prequential_2026": (2026,)}


class Predictor(Protocol):
    """Anything that ranks a field: a model, or a rule that learns nothing."""

    name: str

    def fit(self, train: pd.DataFrame) -> None:
        """Learn from races: starters' feature rows with `official_order` (1 = winner) and `classified`."""
        ...

    def scores(self, race: pd.DataFrame) -> np.ndarray:
        """Score one race, higher = further ahead: feature rows of its starters by driver id, without targets."""
        ...


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


def evaluate(predictors: Sequence[Predictor], features_with_targets: pd.DataFrame, protocol: str) -> pd.DataFrame:
    """Judge predictors on the test races of a protocol.

    Every starter is scored once; `classified` then keeps the classified cars, in their own order. Rows reach a
    predictor by driver id and, when it scores, without the outcome.

    Returns:
        One row per (weekend, predictor, population): season, race_start, protocol and the metrics.
    """
    rows = features_with_targets[features_with_targets["started"]].sort_values(["race_start", "driver"])
    judged: list[dict[str, object]] = []
    for train, test in folds(rows, protocol):
        for predictor in predictors:
            predictor.fit(train.reset_index(drop=True))
            for weekend, race in test.groupby("weekend", sort=False):
                scores = np.asarray(predictor.scores(race.drop(columns=list(TARGETS)).reset_index(drop=True)))
                for population in POPULATIONS:
                    kept = np.ones(len(race), bool) if population == "starters" else race["classified"].to_numpy(bool)
                    judged.append({
                        "weekend": weekend, "season": race["season"].iloc[0], "race_start": race["race_start"].iloc[0],
                        "predictor": predictor.name, "protocol": protocol, "population": population,
                        **race_metrics(scores[kept], race["official_order"].to_numpy("float64")[kept]),
                    })
    return pd.DataFrame(judged)


def summarise(per_race: pd.DataFrame, against: str = "grid", draws: int = 10_000, seed: int = 0) -> pd.DataFrame:
    """Mean metrics of each predictor, and how far its Spearman is from that of `against` in the same races.

    Returns:
        One row per (protocol, population, predictor): races, the mean of each metric, delta (of mean Spearman, paired),
        delta_low and delta_high (95 % over races), and against; best mean Spearman first.
    """
    if against not in set(per_race["predictor"]):
        raise ValueError(f'no rows of "{against}" to compare against; evaluate it along with the others')
    key = ["protocol", "population", "predictor"]
    means = per_race.groupby(key).agg(races=("weekend", "nunique"), **{name: (name, "mean") for name in METRICS})
    rho = per_race.set_index(["protocol", "population", "weekend", "predictor"])["spearman"].unstack()  # noqa: PD010
    delta = rho.sub(rho[against], axis=0)
    for (protocol, population), races in delta.groupby(level=["protocol", "population"]):
        for predictor in races.columns:
            low, high = mean_interval(races[predictor], draws, seed)
            means.loc[(protocol, population, predictor), ["delta", "delta_low", "delta_high"]] = (
                races[predictor].mean(), low, high)
    return means.assign(against=against).reset_index().sort_values(
        [*key[:2], "spearman"], ascending=[True, True, False], ignore_index=True)
