"""What the races at a circuit say together: random effects of circuit and race, one number at a time.

    value of race r = mean + circuit + race + its own error

Circuits with few or noisy races are pulled to the mean, by empirical Bayes (EM on the two variances). A race that lies
seasons away counts for less: cars and tyres change. So does a race far from what its circuit and its error allow.
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

OUTLIER_SD = 2.5  # a race further out than this weighs less, as in a Huber fit
DRIFT_PER_SEASON = 0.5  # a race's variance grows by this share for each season between it and the one asked about


@dataclass(frozen=True)
class Pooled:
    """The two levels of one quantity, as seen from one season."""

    mean: float
    mean_se: float
    circuit_sd: float
    race_sd: float
    effect: dict[str, float]  # of circuits with data, shrunk
    effect_se: dict[str, float]

    def at(self, circuit: str) -> tuple[float, float]:
        """Value at a circuit and its standard error; a circuit without data has the mean and the spread of circuits."""
        error = float(np.hypot(self.effect_se.get(circuit, self.circuit_sd), self.mean_se))
        return self.mean + self.effect.get(circuit, 0.0), error

    def next_race(self, circuit: str) -> tuple[float, float]:
        """Expected value in a coming race there and its standard deviation."""
        value, error = self.at(circuit)
        return value, float(np.hypot(error, self.race_sd))


def pool(values: pd.DataFrame, season: int, most_sd: float = np.inf, floor_sd: float = 1e-4,
         rounds: int = 60) -> Pooled:
    """Shrink races to circuits and circuits to the mean.

    Args:
        values: One row per race: `circuit`, `season`, `value`, `se` (its own error; infinite or missing: no data).
        season: Seen from here; other seasons drift.
        most_sd: Largest sd of circuits to believe in, in the unit of the value.
        floor_sd: Least sd of either level, in the unit of the value.

    Raises:
        ValueError: No row has data.
    """
    data = values[np.isfinite(values["value"]) & np.isfinite(values["se"])]
    if data.empty:
        raise ValueError("nothing to pool: no race has a value with an error")
    value, se = data["value"].to_numpy(float), data["se"].to_numpy(float)
    circuits, group = np.unique(data["circuit"].to_numpy(str), return_inverse=True)
    drift = 1.0 + DRIFT_PER_SEASON * np.abs(data["season"].to_numpy(float) - season)
    spread = float(np.median(np.abs(value - np.median(value)))) * 1.4826
    circuit_var, race_var = min(max(spread**2 / 2, floor_sd**2), most_sd**2), max(spread**2 / 2, floor_sd**2)
    mean, effect, effect_var = float(np.median(value)), np.zeros(len(circuits)), np.full(len(circuits), circuit_var)
    for _ in range(rounds):
        variance = se**2 + race_var * drift
        away = np.abs(value - mean - effect[group]) / np.sqrt(variance + effect_var[group])
        variance = variance * np.maximum(away / OUTLIER_SD, 1.0)
        precision = np.bincount(group, 1 / variance)
        # The mean weighs circuits, not races: many races at one circuit say little about the others.
        level = np.bincount(group, value / variance) / precision
        weight = 1 / (circuit_var + 1 / precision)
        mean = float((weight * level).sum() / weight.sum())
        effect_var = 1 / (precision + 1 / circuit_var)
        effect = effect_var * precision * (level - mean)
        circuit_var = min(max(float(np.mean(effect**2 + effect_var)), floor_sd**2), most_sd**2)
        rest = value - mean - effect[group]
        own = race_var * drift  # E[race effect^2], of a race seen with error se
        shrunk = own / (own + se**2)
        rest = np.clip(rest, -OUTLIER_SD * np.sqrt(variance), OUTLIER_SD * np.sqrt(variance))
        second = (shrunk * rest)**2 + shrunk**2 * effect_var[group] + shrunk * se**2
        race_var = max(float(np.mean(second / drift)), floor_sd**2)
    return Pooled(mean, float(weight.sum() ** -0.5), float(np.sqrt(circuit_var)), float(np.sqrt(race_var)),
                  {str(c): float(e) for c, e in zip(circuits, effect, strict=True)},
                  {str(c): float(e) for c, e in zip(circuits, np.sqrt(effect_var), strict=True)})
