"""Pool one quantity over races with random effects of circuit and race.

    value of race r = mean + circuit effect + race effect + measurement error

Empirical Bayes (EM on the two variances) shrinks circuits with few or noisy races to the mean. Races of distant seasons
weigh less, because cars and tyres change; so do outliers among the races of a circuit.
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

OUTLIER_SD = 2.5  # races further out weigh less, as in a Huber fit
DRIFT_PER_SEASON = 0.5  # relative growth of a race's variance per season between it and the target season


@dataclass(frozen=True)
class Pooled:
    """The circuit and race levels of one quantity, pooled for one season."""

    mean: float
    mean_se: float
    circuit_sd: float
    race_sd: float
    effect: dict[str, float]  # of circuits with data, shrunk
    effect_se: dict[str, float]

    def at(self, circuit: str) -> tuple[float, float]:
        """Value and standard error at a circuit; without data the mean and the spread of circuits."""
        error = float(np.hypot(self.effect_se.get(circuit, self.circuit_sd), self.mean_se))
        return self.mean + self.effect.get(circuit, 0.0), error

    def next_race(self, circuit: str) -> tuple[float, float]:
        """Expected value and standard deviation of a future race at the circuit."""
        value, error = self.at(circuit)
        return value, float(np.hypot(error, self.race_sd))


def pool(values: pd.DataFrame, season: int, most_sd: float = np.inf, floor_sd: float = 1e-4,
         rounds: int = 60) -> Pooled:
    """Shrink races to their circuits and circuits to the mean.

    Args:
        values: One row per race: `circuit`, `season`, `value`, `se` (measurement error; infinite or missing: no data).
        season: Target season; races of other seasons weigh less.
        most_sd: Upper limit of the sd of circuits [unit of the value].
        floor_sd: Lower limit of the sd of either level [unit of the value].

    Raises:
        ValueError: No row has data.
    """
    data = values[np.isfinite(values["value"]) & np.isfinite(values["se"])]
    if data.empty:
        raise ValueError("nothing to pool: no race has a finite value and error; wanted at least one")
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
        # The mean weighs circuits, not races: many races at one circuit tell little about the others.
        level = np.bincount(group, value / variance) / precision
        weight = 1 / (circuit_var + 1 / precision)
        mean = float((weight * level).sum() / weight.sum())
        effect_var = 1 / (precision + 1 / circuit_var)
        effect = effect_var * precision * (level - mean)
        circuit_var = min(max(float(np.mean(effect**2 + effect_var)), floor_sd**2), most_sd**2)
        rest = value - mean - effect[group]
        own = race_var * drift  # E[race effect^2] of a race measured with error se
        shrunk = own / (own + se**2)
        rest = np.clip(rest, -OUTLIER_SD * np.sqrt(variance), OUTLIER_SD * np.sqrt(variance))
        second = (shrunk * rest)**2 + shrunk**2 * effect_var[group] + shrunk * se**2
        race_var = max(float(np.mean(second / drift)), floor_sd**2)
    return Pooled(mean, float(weight.sum() ** -0.5), float(np.sqrt(circuit_var)), float(np.sqrt(race_var)),
                  {str(c): float(e) for c, e in zip(circuits, effect, strict=True)},
                  {str(c): float(e) for c, e in zip(circuits, np.sqrt(effect_var), strict=True)})
