"""`sim.circuits`: the physics of each circuit in each season, with errors, and the way back to the engine.

What laps cannot tell stays a prior, without an error: the split of the trend into fuel and track, the cliff (teams stop
before it), rain tyres, the standstill within a stop.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from f1_pipelines.calibration.evidence import Evidence, gather
from f1_pipelines.calibration.season_view import SeasonView
from f1_pipelines.sim.engine.parameters import CircuitParameters
from f1_pipelines.sim.engine.priors import RACE_FUEL_KG, circuit_prior
from f1_pipelines.tables.sim import CIRCUITS, parameter_columns

ParameterPrior = Callable[[str, int], CircuitParameters]

# Kept inside what physics allows when few noisy races push a value out of it: slopes are not negative.
BOUNDS = {"degradation_s_per_lap_soft": (0.0, 0.4), "degradation_s_per_lap_medium": (0.0, 0.4),
          "degradation_s_per_lap_hard": (0.0, 0.4), "dirty_air_s": (0.0, 2.0),
          "stop_scatter_s": (0.5, 3.0), "lap_scatter_s": (0.1, 1.5), "first_lap_loss_s": (0.0, 10.0)}
# A stop under a neutralisation costs less than a green one; losses that say otherwise tell nothing, and stay the prior.
STOPS = ("stop_loss_green_s", "stop_loss_vsc_s", "stop_loss_sc_s")


def fit_circuits(laps: pd.DataFrame, results: pd.DataFrame, stops: pd.DataFrame, calendar: pd.DataFrame,
                 prior: ParameterPrior = circuit_prior) -> pd.DataFrame:
    """Rows of `sim.circuits` for every circuit and season of the calendar.

    Args:
        laps, results, stops, calendar: Rows of `race.laps`, `race.results` (newest versions), `race.pit_stops` and
            `race.calendar`. Only weekends with laps teach; every one of the calendar gets a row.
        prior: What to believe of a circuit without laps.
    """
    return circuit_rows(gather(laps, results, stops, calendar), calendar, prior)


def circuit_rows(evidence: Evidence | None, calendar: pd.DataFrame,
                 prior: ParameterPrior = circuit_prior) -> pd.DataFrame:
    """Rows of `sim.circuits` from what was measured, all priors where nothing was; `calendar` says which are wanted."""
    wanted = calendar[["circuit", "season", "layout", "race_laps"]].astype({"circuit": object, "layout": object})
    wanted = wanted.assign(races=1).groupby(["season", "circuit", "layout"], as_index=False).agg(
        races=("races", "sum"), race_laps=("race_laps", "max"))
    # Two layouts in one season (Bahrain 2020): the usual one has the row.
    usual = wanted.groupby(["circuit", "layout"])["races"].transform("sum")
    wanted = wanted.assign(usual=usual).sort_values("usual", kind="stable").drop_duplicates(["season", "circuit"],
                                                                                          keep="last")
    longest = calendar.groupby("circuit")["race_laps"].max()
    seen = {season: SeasonView(evidence, season) if evidence else None for season in sorted(wanted["season"].unique())}
    rows = []
    for row in wanted.sort_values(["season", "circuit"]).itertuples():
        start = prior(row.circuit, int(row.season))
        if start.provenance == "prior" and pd.notna(longest.get(row.circuit)):
            start = with_distance(start, int(longest[row.circuit]))
        view = seen[row.season]
        rows.append(fitted_row(view, start, row.layout) if view else prior_row(start, row.layout))
    return CIRCUITS.conform(pd.DataFrame(rows))


def circuit_parameters(row: Mapping[str, Any] | pd.Series) -> CircuitParameters:
    """What the engine wants, from one row of `sim.circuits`."""
    values: dict[str, Any] = {}
    for column, (name, index, _) in parameter_columns().items():
        if index is None:
            values[name] = float(row[column])
        else:
            values.setdefault(name, []).append(float(row[column]))
    tuples: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name,
                              value in values.items()}
    return CircuitParameters(**{
        **tuples, "race_laps": int(values["race_laps"]), "circuit": str(row["circuit"]),
                                "season": int(row["season"]), "provenance": str(row["provenance"])})


def pooled_prior(circuit: str, season: int) -> CircuitParameters:
    """The pooled values whatever the circuit: for tests that must not know the table of all seasons."""
    return CircuitParameters(circuit=circuit, season=season, provenance="prior")


def with_distance(start: CircuitParameters, race_laps: int) -> CircuitParameters:
    """The same circuit over another distance: the fuel lasts for it, and fuel and track trend keep their sum."""
    burn = RACE_FUEL_KG / race_laps
    shift = (burn - start.fuel_burn_kg_per_lap) * start.fuel_effect_s_per_kg
    return replace(start, race_laps=race_laps, fuel_burn_kg_per_lap=burn,
                   track_trend_s_per_lap=start.track_trend_s_per_lap + shift)


def prior_row(start: CircuitParameters, layout: str) -> dict[str, Any]:
    """One row of a circuit of which nothing was measured."""
    values = _flat(start)
    return {"circuit": start.circuit, "season": start.season, "layout": layout, "provenance": start.provenance,
            "n_laps": 0, "n_races": 0, "n_stops": 0, "through": None, **values,
            **{f"{name}_se": None for name in values}}


def fitted_row(view: SeasonView, start: CircuitParameters, layout: str) -> dict[str, Any]:
    """One row: what was measured in place of the prior, as far as it was."""
    values, circuit = _flat(start), start.circuit
    errors: dict[str, float | None] = {}
    races, laps = view.races(circuit, "base")
    if races:
        measured: dict[str, tuple[float, float | None]] = dict(view.measured(circuit))
        burnt = start.fuel_burn_kg_per_lap * start.fuel_effect_s_per_kg
        trend, trend_se = measured.pop("trend", (values["track_trend_s_per_lap"] - burnt, None))
        measured["track_trend_s_per_lap"] = (trend + burnt, trend_se)
        for column, (value, error) in measured.items():
            low, high = BOUNDS.get(column, (-np.inf, np.inf))
            values[column], errors[column] = min(max(value, low), high), error
        if max(values[name] for name in STOPS[1:]) >= values[STOPS[0]]:
            # Few noisy stops, or a race with faulty laps: one circuit must not stop all that is made from the others.
            values.update({name: _flat(start)[name] for name in STOPS})
            errors.update(dict.fromkeys(STOPS))
    return {"circuit": circuit, "season": view.season, "layout": layout,
            "provenance": "fitted" if races else start.provenance, "n_laps": laps, "n_races": races,
            "n_stops": view.races(circuit, "stop_green")[1], "through": view.evidence.through if races else None,
            **values, **{f"{name}_se": errors.get(name) for name in values}}


def _flat(start: CircuitParameters) -> dict[str, float]:
    values = {}
    for column, (name, index, _) in parameter_columns().items():
        value = getattr(start, name)
        values[column] = float(value if index is None else value[index])
    return values

