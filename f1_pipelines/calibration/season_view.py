"""The evidence for one season: each quantity is pooled once, then read for any circuit."""
from __future__ import annotations

import numpy as np
import pandas as pd

from f1_pipelines.calibration import incidents, safety_cars
from f1_pipelines.calibration.empirical_bayes import pool
from f1_pipelines.calibration.evidence import Evidence
from f1_pipelines.sim.engine.priors import RATIO_2026

# Column of sim.circuits -> quantity of the evidence that gives it directly.
DIRECT = {
    "lap_scatter_s": "scatter", "compound_offset_s_soft": "offset_soft", "compound_offset_s_hard": "offset_hard",
    "degradation_s_per_lap_soft": "slope_soft", "degradation_s_per_lap_medium": "slope_medium",
    "degradation_s_per_lap_hard": "slope_hard", "fresh_tyre_gain_s": "fresh_gain", "dirty_air_s": "dirty_air",
    "stop_loss_green_s": "stop_green", "stop_scatter_s": "stop_scatter", "vsc_lap_ratio": "ratio_vsc",
    "vsc_last_lap_ratio": "ratio_vsc_ending", "sc_first_leader_ratio": "ratio_sc_first_leader",
    "sc_first_catch_ratio": "ratio_sc_first_catch", "sc_leader_ratio": "ratio_sc_leader",
    "sc_catch_ratio": "ratio_sc_catch", "first_lap_places": "first_lap_places", "first_lap_loss_s": "first_lap_loss"}
RATIO_TO_GREEN = {"stop_loss_vsc_s": "stop_vsc", "stop_loss_vsc_ending_s": "stop_vsc_ending",
                  "stop_loss_sc_s": "stop_sc"}
# Circuits hardly differ in these (docs/physics.md#lap-time: .03-.20 s; #first-lap): the limit guards against outliers.
MOST_CIRCUIT_SD = {"offset_soft": 0.15, "offset_hard": 0.10, "first_lap_loss": 1.0}
MOST_SEASON_SD = 0.03  # docs/physics.md#rules-of-2026: 2026 against 2022-25 by circuit, .978 to 1.038
SEASON_SD = 0.01  # sd of the pace ratio of two seasons under the same rules [share of a lap]

Value = tuple[float, float]  # value, standard error


class SeasonView:
    """Measured parameters of circuits in one season; the more distant another season, the less it counts."""

    def __init__(self, evidence: Evidence, season: int):
        self.evidence, self.season = evidence, season
        raced = {weekend: evidence.circuit[weekend] for weekend in evidence.distance}
        self._rates = {kind: safety_cars.event_rates(evidence.events, raced, kind) for kind in ("sc", "vsc", "red")}
        self._hazards = {kind: incidents.hazard(evidence.retirements, raced, kind, season)
                         for kind in ("accident", "mechanical")}
        self._rows = {name: rows for name, rows in evidence.by_race.groupby("quantity")
                      if np.isfinite(rows["se"]).any()}
        self._pooled = {name: pool(rows, season, MOST_CIRCUIT_SD.get(name, np.inf)) for name, rows in self._rows.items()
                        if name not in RATIO_TO_GREEN.values()}
        # Few circuits have many stops under VSC or SC; ratios to green stops can be pooled over all circuits.
        for name in set(RATIO_TO_GREEN.values()) & set(self._rows) if "stop_green" in self._pooled else ():
            rows = self._rows[name]
            green = rows["circuit"].map(lambda circuit: self._pooled["stop_green"].at(circuit)[0])
            self._pooled[name] = pool(rows.assign(value=rows["value"] / green, se=rows["se"] / green), season)

    def races(self, circuit: str, quantity: str) -> tuple[int, int]:
        """Number of races at the circuit with data on a quantity, and number of observations."""
        rows = self._rows.get(quantity)
        if rows is None:
            return 0, 0
        of_circuit = rows[rows["circuit"] == circuit]
        return len(of_circuit), int(of_circuit["n"].sum())

    def measured(self, circuit: str) -> dict[str, Value]:
        """Measured columns of `sim.circuits`, and `trend` (fuel and track together [s/lap])."""
        values = {column: self._pooled[name].at(circuit) for column, name in DIRECT.items() if name in self._pooled}
        if "trend" in self._pooled:
            values["trend"] = self._pooled["trend"].at(circuit)
        for column, name in RATIO_TO_GREEN.items():
            if name in self._pooled:
                green = values["stop_loss_green_s"][0]
                value, error = self._pooled[name].at(circuit)
                values[column] = max(value, 0.0) * green, error * green
        values["base_lap_s"] = base_lap(self._rows["base"], circuit, self.season)
        return {**values, **self._frequencies(circuit), **self._passing(circuit)}

    def _frequencies(self, circuit: str) -> dict[str, Value]:
        tables = {"sc_per_race": self._rates["sc"], "vsc_per_race": self._rates["vsc"],
                  "red_per_race": self._rates["red"], "accident_per_race": self._hazards["accident"],
                  "mechanical_per_race": self._hazards["mechanical"]}
        rows = {column: table.loc[circuit if circuit in table.index else ""] for column, table in tables.items()}
        return {column: (float(row["value"]), float(row["se"])) for column, row in rows.items()}

    def _passing(self, circuit: str) -> dict[str, Value]:
        """Pass parameters of the season's era, or of the latest era with pairs if it has none."""
        rule = self.evidence.pass_rule
        if not rule.era:
            return {}
        fitted = rule.of_season(self.season) or rule.of_season(max(low for low, _ in rule.era))
        if fitted is None:
            return {}
        coef, se = fitted
        values = {"pass_intercept": (float(coef[0]), float(se[0])),
                  "pass_per_advantage": (float(coef[1]), float(se[1])),
                  "pass_per_gap": (-float(coef[2]), float(se[2]))}  # the engine subtracts the gap term
        return {**values, "pass_circuit": rule.circuit[circuit]} if circuit in rule.circuit else values


def base_lap(base: pd.DataFrame, circuit: str, season: int) -> tuple[float, float]:
    """Lap of the median car at half distance on new mediums [s], and its standard error.

    Uses the season's own races at the circuit. Without any, it scales the nearest other season by the ratio of the two
    seasons' laps on circuits that both visited.
    """
    at_circuit = base[base["circuit"] == circuit]
    own = at_circuit[at_circuit["season"] == season]
    if len(own):
        weight = 1 / own["se"] ** 2
        return float((own["value"] * weight).sum() / weight.sum()), float(weight.sum() ** -0.5)
    nearest = at_circuit.assign(away=(at_circuit["season"] - season).abs()).sort_values(["away", "season"])
    other = int(nearest["season"].iloc[0])
    lap = base.pivot_table(index="circuit", columns="season", values="value")
    both = np.log((lap[season] / lap[other]).dropna()) if season in lap.columns else pd.Series(dtype=float)
    spread = max(float(both.std()), SEASON_SD) if len(both) >= 2 else 2 * SEASON_SD
    usual = np.log(RATIO_2026) * (int(season >= 2026) - int(other >= 2026))
    trust = len(both) / (len(both) + (spread / SEASON_SD) ** 2)
    change = trust * (float(both.median()) if len(both) else 0.0) + (1 - trust) * usual
    value = float(nearest.loc[nearest["season"] == other, "value"].mean()) * float(np.exp(change))
    return value, value * min(spread, MOST_SEASON_SD)
