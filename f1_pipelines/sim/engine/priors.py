"""What to believe of a circuit before any lap of it was fitted.

The table beside this module was measured on real laps and shrunk; where it has no row (a new track) or a gap (no race
of 2026 yet), the pooled value stands in and `provenance` says so: a circuit is never refused for want of data.
"""
from __future__ import annotations

import csv
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np

from f1_pipelines.sim.engine.noise import log
from f1_pipelines.sim.engine.parameters import CircuitParameters

_TABLE = Path(__file__).parents[1] / "data" / "circuit_priors.csv"
RACE_FUEL_KG = 101.0  # burnt over a Grand Prix; 110 kg is the most that may be
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
        circuit: Circuit id (`monaco`, `spa-francorchamps`). Unknown ones get the pooled values.
        season: Year; from 2026 on pace, overtaking and reliability are those of the new rules.

    Returns:
        `provenance` is `circuit_prior`, or `prior` where no lap of that circuit was ever measured.
    """
    era = _era(season)
    row = prior_rows().get(circuit)
    if row is None:
        return CircuitParameters(circuit=circuit, season=season, **era)
    number = {name: float(value) for name, value in row.items() if name not in ("circuit", "years") and value}
    laps = int(row["race_laps"])
    slopes = tuple(number[f"{compound}_s_per_lap"] for compound in ("soft", "medium", "hard"))
    burn = RACE_FUEL_KG / laps
    default = CircuitParameters()
    measured = "lap_2025_s" in number or "lap_2026_s" in number
    return CircuitParameters(
        circuit=circuit, season=season, provenance="circuit_prior" if measured else "prior", race_laps=laps,
        base_lap_s=_lap_s(number, season, default) - slopes[1] * REFERENCE_AGE_LAPS,
        track_trend_s_per_lap=round(number["trend_s_per_lap"] + burn * default.fuel_effect_s_per_kg, 4),
        fuel_burn_kg_per_lap=burn, lap_scatter_s=number["lap_scatter_s"],
        degradation_s_per_lap=(*slopes, *default.degradation_s_per_lap[3:]),
        cliff_laps=(*(round(laps * share * _CLIFF_OVER_P90, 1) for share in _STOP_AGE_P90), *default.cliff_laps[3:]),
        stop_loss_green_s=number["stop_green_s"], stop_loss_vsc_s=number["stop_vsc_s"],
        stop_loss_vsc_ending_s=round(0.96 * number["stop_green_s"], 2), stop_loss_sc_s=number["stop_sc_s"],
        stop_scatter_s=min(number.get("stop_green_sd_s", default.stop_scatter_s), 2.2),
        sc_per_race=default.sc_per_race * _rate_ratio(number["p_sc"], POOLED_P_SC),
        vsc_per_race=default.vsc_per_race * _rate_ratio(number["p_vsc"], POOLED_P_VSC),
        pass_circuit=float(log(np.array(number["p_pass"] / (1 - number["p_pass"])))) + 0.1,
        first_lap_places=number.get("first_lap_places", default.first_lap_places), **era)


def _era(season: int) -> dict[str, Any]:
    """What the 2026 rules changed: docs/physics.md#overtaking, #retirements, #safety-car (VSC for stopped cars)."""
    if season < 2026:
        return {}
    return {"pass_intercept": -0.52, "pass_per_advantage": 1.46, "pass_per_gap": 3.39,
            "accident_per_race": 0.045, "mechanical_per_race": 0.10}


def _lap_s(number: dict[str, float], season: int, default: CircuitParameters) -> float:
    """Median clean race lap of that era [s]; the other era's, scaled, where this one has none."""
    old, new = number.get("lap_2025_s"), number.get("lap_2026_s")
    if old is None and new is None:
        return default.base_lap_s + default.degradation_s_per_lap[1] * REFERENCE_AGE_LAPS
    if season < 2026:
        return old if old is not None else cast("float", new) / RATIO_2026
    return new if new is not None else cast("float", old) * RATIO_2026


def _rate_ratio(p: float, pooled: float) -> float:
    """Rate of a circuit over the pooled rate, from the two chances of at least one (Poisson counts)."""
    return float(log(np.array(1 - p)) / log(np.array(1 - pooled)))
