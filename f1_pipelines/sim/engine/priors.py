"""Parameters of a circuit before any of its laps is fitted.

`sim/data/circuit_priors.csv` was measured on real laps and shrunk towards the pooled values. Where it lacks a circuit
(a new track) or a value (no race of 2026 yet), the pooled value stands in and `provenance` says so: no circuit is
refused for lack of data.
"""
from __future__ import annotations

import csv
from functools import cache
from pathlib import Path
from typing import Any, cast

from f1_pipelines.sim.engine.noise import log
from f1_pipelines.sim.engine.parameters import CircuitParameters

_TABLE = Path(__file__).parents[1] / "data" / "circuit_priors.csv"
RACE_FUEL_KG = 101.0  # burnt over a Grand Prix; the limit is 110 kg
REFERENCE_AGE_LAPS = 10  # the median clean lap of the table was driven on tyres of about this age
RATIO_2026 = 1.015  # docs/physics.md#rules-of-2026: lap times of 2026 against 2022-25 on the same circuits
POOLED_P_SC, POOLED_P_VSC = 0.57, 0.36  # docs/physics.md#circuits: value of circuits without a race
_CLIFF_OVER_P90 = 1.1  # teams stop before the cliff: put it 10 % after 90 % of the stops
_STOP_AGE_P90 = (0.44, 0.52, 0.62)  # docs/physics.md#lap-time: laps on a set at a green stop, share of the distance


@cache
def prior_rows() -> dict[str, dict[str, str]]:
    """The table, one row per circuit id."""
    with _TABLE.open(encoding="utf-8", newline="") as file:
        return {row["circuit"]: row for row in csv.DictReader(file)}


@cache
def circuit_prior(circuit: str, season: int = 2025) -> CircuitParameters:
    """Parameters of a circuit in a season, before fitting.

    Args:
        circuit: Circuit id (`monaco`, `spa-francorchamps`). An unknown one gets the pooled values.
        season: Year. From 2026 on, pace, overtaking and reliability follow the new rules.

    Returns:
        The parameters; `provenance` is `circuit_prior`, or `prior` where no lap of the circuit was measured.
    """
    era = _era(season)
    row = prior_rows().get(circuit)
    if row is None:
        return CircuitParameters(circuit=circuit, season=season, **era)
    measures = {name: float(value) for name, value in row.items() if name not in ("circuit", "years") and value}
    laps = int(row["race_laps"])
    slopes = tuple(measures[f"{compound}_s_per_lap"] for compound in ("soft", "medium", "hard"))
    burn = RACE_FUEL_KG / laps
    default = CircuitParameters()
    measured = "lap_2025_s" in measures or "lap_2026_s" in measures
    return CircuitParameters(
        circuit=circuit, season=season, provenance="circuit_prior" if measured else "prior", race_laps=laps,
        base_lap_s=_lap_s(measures, season, default) - slopes[1] * REFERENCE_AGE_LAPS,
        track_trend_s_per_lap=round(measures["trend_s_per_lap"] + burn * default.fuel_effect_s_per_kg, 4),
        fuel_burn_kg_per_lap=burn, lap_scatter_s=measures["lap_scatter_s"],
        degradation_s_per_lap=(*slopes, *default.degradation_s_per_lap[3:]),
        cliff_laps=(*(round(laps * share * _CLIFF_OVER_P90, 1) for share in _STOP_AGE_P90), *default.cliff_laps[3:]),
        stop_loss_green_s=measures["stop_green_s"], stop_loss_vsc_s=measures["stop_vsc_s"],
        stop_loss_vsc_ending_s=round(0.96 * measures["stop_green_s"], 2), stop_loss_sc_s=measures["stop_sc_s"],
        stop_scatter_s=min(measures.get("stop_green_sd_s", default.stop_scatter_s), 2.2),
        sc_per_race=default.sc_per_race * _rate_ratio(measures["p_sc"], POOLED_P_SC),
        vsc_per_race=default.vsc_per_race * _rate_ratio(measures["p_vsc"], POOLED_P_VSC),
        pass_circuit=log(measures["p_pass"] / (1 - measures["p_pass"])) + 0.1,
        first_lap_places=measures.get("first_lap_places", default.first_lap_places), **era)


def _era(season: int) -> dict[str, Any]:
    """What the 2026 rules changed: docs/physics.md#overtaking, #retirements, #safety-car (VSC for stopped cars)."""
    if season < 2026:
        return {}
    return {"pass_intercept": -0.52, "pass_per_advantage": 1.46, "pass_per_gap": 3.39,
            "accident_per_race": 0.045, "mechanical_per_race": 0.10}


def _lap_s(measures: dict[str, float], season: int, default: CircuitParameters) -> float:
    """Median clean race lap of the season's era [s], scaled from the other era where it has none."""
    old, new = measures.get("lap_2025_s"), measures.get("lap_2026_s")
    if old is None and new is None:
        return default.base_lap_s + default.degradation_s_per_lap[1] * REFERENCE_AGE_LAPS
    if season < 2026:
        return old if old is not None else cast("float", new) / RATIO_2026
    return new if new is not None else cast("float", old) * RATIO_2026


def _rate_ratio(p: float, pooled: float) -> float:
    """Rate of a circuit over the pooled rate, from the two chances of at least one (Poisson counts)."""
    return log(1 - p) / log(1 - pooled)
