"""How far probabilities can be believed: Brier score, log loss, and what happened as often as was said."""
from __future__ import annotations

import numpy as np
import pandas as pd

from f1_pipelines.chances import PODIUM, POINTS

BINS = 10
# A winner who was never drawn was not impossible: half a draw of 10,000.
LEAST = 5e-5
CHANCE_METRICS = ("log_loss_win", "brier_win", "brier_podium", "brier_points")
LAST_PLACE = {"win": 1, "podium": PODIUM, "points": POINTS}  # that makes the event happen


def chance_metrics(cars: pd.DataFrame) -> dict[str, float]:
    """Scores of the probabilities of one race.

    Args:
        cars: One row per starter: p_win, p_podium, p_points, official_order.

    Returns:
        log_loss_win; brier_win, summed over the cars as for any choice among many; brier_podium and brier_points, mean
        over the cars.
    """
    error = {event: (cars[f"p_{event}"] - happened(cars, event)) ** 2 for event in LAST_PLACE}
    winner = cars.loc[cars["official_order"] == 1, "p_win"].iloc[0]
    return {"log_loss_win": float(-np.log(max(winner, LEAST))), "brier_win": float(error["win"].sum()),
            "brier_podium": float(error["podium"].mean()), "brier_points": float(error["points"].mean())}


def happened(cars: pd.DataFrame, event: str) -> pd.Series:
    """1.0 for the cars that it happened to, 0.0 for the others."""
    return (cars["official_order"] <= LAST_PLACE[event]).astype("float64")


def reliability(cars: pd.DataFrame) -> pd.DataFrame:
    """Predicted probabilities in bins of equal width, and how often they came true.

    Args:
        cars: Rows as `evaluation.protocols.judge` gives them.

    Returns:
        One row per (predictor, protocol, event, bin that is not empty): n, mean_probability, frequency.
    """
    tables = []
    for event in LAST_PLACE:
        said = cars[f"p_{event}"].to_numpy("float64")
        # 0.3 as a share of draws may lie a hair below three tenths.
        number = np.clip(np.floor(said * BINS + 1e-9).astype(int), 0, BINS - 1) + 1
        rows = cars[["predictor", "protocol"]].assign(event=event, bin=number, said=said, did=happened(cars, event))
        tables.append(rows.groupby(["predictor", "protocol", "event", "bin"], as_index=False).agg(
            n=("said", "size"), mean_probability=("said", "mean"), frequency=("did", "mean")))
    return pd.concat(tables, ignore_index=True)


def expected_calibration_error(table: pd.DataFrame) -> pd.DataFrame:
    """How far predicted and observed are apart on average over the cars.

    Args:
        table: Rows of `reliability`.

    Returns:
        On (predictor, protocol): ece_win, ece_podium, ece_points.
    """
    apart = (table["mean_probability"] - table["frequency"]).abs() * table["n"]
    key = ["predictor", "protocol", "event"]
    sums = table.assign(apart=apart).groupby(key)[["apart", "n"]].sum()
    return (sums["apart"] / sums["n"]).unstack("event").add_prefix("ece_")  # noqa: PD010
