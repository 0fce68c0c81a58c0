"""Compare a replay with its race: order of the finishers, gaps at the flag, lap times, stops."""
from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from f1_pipelines.calibration.real_race import RealRace
from f1_pipelines.calibration.replay import Replay
from f1_pipelines.evaluation.metrics import rank_correlation
from f1_pipelines.sim import CircuitParameters
from f1_pipelines.sim.engine.state import OUT_S

NEAR_WINNER_S = 120.0  # larger gaps belong to lapped cars and tell little (docs/physics.md#replay)


def order_scores(predicted: np.ndarray, finish: np.ndarray) -> dict[str, float]:
    """Spearman, mean error [places] and whether the winner is right, among the finishers.

    Args:
        predicted: (N,) any numbers, lower = further ahead.
        finish: (N,) classified place, NaN if not classified.

    >>> order_scores(np.array([1.0, 3.0, 2.0, 9.0]), np.array([1.0, 2.0, 3.0, np.nan]))
    {'spearman': 0.5, 'places_off': 0.6666666666666666, 'winner_right': 1.0}
    """
    ranked = np.isfinite(finish)
    real, replayed = rankdata(finish[ranked]), rankdata(predicted[ranked])
    return {"spearman": rank_correlation(real, replayed), "places_off": float(np.abs(real - replayed).mean()),
            "winner_right": float(real[replayed.argmin()] == 1.0)}


def gap_error_s(result: Replay, gap_s: np.ndarray) -> float:
    """Median error of the gap to the winner [s], for cars on the lead lap within 120 s in the real race."""
    end = result.line_s[-1]
    simulated = np.median(end - end.min(axis=1, keepdims=True), axis=0)
    near = (gap_s > 0) & (gap_s < NEAR_WINNER_S) & (simulated < 0.5 * OUT_S)
    return float(np.median(np.abs(simulated - gap_s)[near])) if near.any() else float("nan")


def lap_errors_of(result: Replay, real: RealRace, laps: pd.DataFrame) -> dict[str, float]:
    """Errors of the median simulated time of each clean lap after the start of the replay [s]."""
    line = np.where(result.line_s > 0.5 * OUT_S, np.nan, result.line_s)
    simulated = np.median(np.diff(line, axis=0), axis=1)  # retirements are inputs: a car is out in all episodes or none
    place = {driver: n for n, driver in enumerate(real.drivers)}
    compared = laps[laps["clean"] & (laps["lap"] > result.first) & (laps["lap"] <= real.laps)
                    & laps["driver"].isin(real.drivers)]
    predicted = simulated[compared["lap"].to_numpy() - 1 - result.first, compared["driver"].map(place).to_numpy()]
    error = compared["lap_time_s"].to_numpy() - predicted
    error = error[np.isfinite(error)]
    if not len(error):
        return {}
    return {"n_laps": len(error), "lap_mae_s": float(np.abs(error).mean()),
            "lap_rmse_s": float(np.sqrt(np.square(error).mean()))}


def stop_error_s(losses: pd.DataFrame, circuit: CircuitParameters) -> float:
    """Median absolute error of the circuit's green stop loss over the race's green stops [s]; NaN without any."""
    green = losses.loc[losses["kind"] == "green", "loss_s"]
    return float((green - circuit.stop_loss_green_s).abs().median()) if len(green) else float("nan")
