"""Quality of predicted probabilities: Brier score, log loss and calibration."""
from __future__ import annotations

import math

import numpy as np
import pandas as pd

from f1_pipelines.evaluation.probabilities import PODIUM, POINTS
from f1_pipelines.tables.bounds import clip_rounding

BINS = 10
# Probability of a winner who was never drawn: half a draw of 10,000.
LEAST_PROBABILITY = 5e-5
CHANCE_METRICS = ("log_loss_win", "brier_win", "brier_podium", "brier_points")
LAST_PLACE = {"win": 1, "podium": PODIUM, "points": POINTS}  # last place that counts as the event


def chance_metrics(cars: pd.DataFrame) -> dict[str, float]:
    """Scores of the probabilities of one race.

    Args:
        cars: One row per starter: p_win, p_podium, p_points, official_order.

    Returns:
        log_loss_win; brier_win, summed over the cars (multi-class); brier_podium and brier_points, mean over cars.
    """
    error = {event: math.fsum((_probabilities(cars, event) - outcomes_of(cars, event)) ** 2) for event in LAST_PLACE}
    winner = _probabilities(cars, "win")[cars["official_order"] == 1].iloc[0]
    return {"log_loss_win": 0.0 - math.log(max(winner, LEAST_PROBABILITY)), "brier_win": error["win"],
            "brier_podium": error["podium"] / len(cars), "brier_points": error["points"] / len(cars)}


def outcomes_of(cars: pd.DataFrame, event: str) -> pd.Series:
    """1.0 for the cars to which the event happened, 0.0 for the others."""
    return (cars["official_order"] <= LAST_PLACE[event]).astype("float64")


def reliability(cars: pd.DataFrame) -> pd.DataFrame:
    """Bin predicted probabilities into `BINS` equal widths and compare them with observed frequencies.

    Args:
        cars: Rows as for `chance_metrics` of any races, with predictor and protocol.

    Returns:
        One row per (predictor, protocol, event, non-empty bin): n, mean_probability, frequency.
    """
    tables = []
    for event in LAST_PLACE:
        probability = _probabilities(cars, event).to_numpy()
        # A share of draws such as 0.3 may be slightly below 3/10.
        number = np.clip(np.floor(probability * BINS + 1e-9).astype(int), 0, BINS - 1) + 1
        rows = cars[["predictor", "protocol"]].assign(event=event, bin=number, probability=probability,
                                                      happened=outcomes_of(cars, event))
        tables.append(rows.groupby(["predictor", "protocol", "event", "bin"], as_index=False).agg(
            n=("probability", "size"), mean_probability=("probability", "mean"), frequency=("happened", "mean")))
    table = pd.concat(tables, ignore_index=True)
    return table.assign(mean_probability=clip_rounding(table["mean_probability"], 0.0, 1.0))


def expected_calibration_error(table: pd.DataFrame) -> pd.DataFrame:
    """Mean absolute difference of predicted probability and observed frequency over the cars.

    Args:
        table: Rows of `reliability`.

    Returns:
        On (predictor, protocol): ece_win, ece_podium, ece_points.
    """
    error = (table["mean_probability"] - table["frequency"]).abs() * table["n"]
    key = ["predictor", "protocol", "event"]
    sums = table.assign(error=error).groupby(key)[["error", "n"]].sum()
    return clip_rounding(sums["error"] / sums["n"], 0.0, 1.0).unstack("event").add_prefix("ece_")  # noqa: PD010


def _probabilities(cars: pd.DataFrame, event: str) -> pd.Series:
    """Predicted probabilities of the event; those of mixtures and means may exceed 1 by a rounding error."""
    return clip_rounding(cars[f"p_{event}"].astype("float64"), 0.0, 1.0)
