"""Rows of `sim.circuits` (physics by circuit and season, with standard errors) and engine parameters from them.

Quantities that laps cannot show keep the prior and have no error: the split of the trend into fuel and track, the cliff
(teams stop before it), rain tyres, the standstill within a stop.
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

# Physical limits: few noisy races could push a value out of them, such as a slope below 0.
BOUNDS = {"degradation_s_per_lap_soft": (0.0, 0.4), "degradation_s_per_lap_medium": (0.0, 0.4),
          "degradation_s_per_lap_hard": (0.0, 0.4), "dirty_air_s": (0.0, 2.0),
          "stop_scatter_s": (0.5, 3.0), "lap_scatter_s": (0.1, 1.5), "first_lap_loss_s": (0.0, 10.0)}
# A stop under a neutralisation costs less than a green one. Losses that contradict this are replaced by the prior.
STOPS = ("stop_loss_green_s", "stop_loss_vsc_s", "stop_loss_sc_s")


def fit_circuits(laps: pd.DataFrame, results: pd.DataFrame, stops: pd.DataFrame, calendar: pd.DataFrame,
                 prior: ParameterPrior = circuit_prior) -> pd.DataFrame:
    """Fit the rows of `sim.circuits` for every circuit and season of the calendar.

    Args:
        laps, results, stops, calendar: Rows of `race.laps`, `race.results` (newest versions), `race.pit_stops` and
            `race.calendar`. Weekends without laps add nothing to the fit, but their circuits get rows too.
        prior: Parameters of a circuit without laps.
    """
    return circuit_rows(gather(laps, results, stops, calendar), calendar, prior)


def circuit_rows(evidence: Evidence | None, calendar: pd.DataFrame,
                 prior: ParameterPrior = circuit_prior) -> pd.DataFrame:
    """Build the rows of `sim.circuits` for the calendar's circuits and seasons; without evidence all are priors."""
    keys = calendar[["circuit", "season", "layout", "race_laps"]].astype({"circuit": object, "layout": object})
    keys = keys.assign(races=1).groupby(["season", "circuit", "layout"], as_index=False).agg(
        races=("races", "sum"), race_laps=("race_laps", "max"))
    # Two layouts in one season (Bahrain 2020): the row is of the more frequent one.
    layout_races = keys.groupby(["circuit", "layout"])["races"].transform("sum")
    keys = keys.assign(layout_races=layout_races).sort_values("layout_races", kind="stable").drop_duplicates(
        ["season", "circuit"], keep="last")
    longest = calendar.groupby("circuit")["race_laps"].max()
    views = {season: SeasonView(evidence, season) if evidence else None for season in sorted(keys["season"].unique())}
    rows = []
    for key in keys.sort_values(["season", "circuit"]).itertuples():
        parameters = prior(key.circuit, int(key.season))
        if parameters.provenance == "prior" and pd.notna(longest.get(key.circuit)):
            parameters = with_distance(parameters, int(longest[key.circuit]))
        view = views[key.season]
        rows.append(fitted_row(view, parameters, key.layout) if view else prior_row(parameters, key.layout))
    return CIRCUITS.conform(pd.DataFrame(rows))


def circuit_parameters(row: Mapping[str, Any] | pd.Series) -> CircuitParameters:
    """Convert one row of `sim.circuits` to engine parameters."""
    values: dict[str, Any] = {}
    for column, (name, index, _) in parameter_columns().items():
        if index is None:
            values[name] = float(row[column])
        else:
            values.setdefault(name, []).append(float(row[column]))
    tuples: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value
                              for name, value in values.items()}
    return CircuitParameters(**{
        **tuples, "race_laps": int(values["race_laps"]), "circuit": str(row["circuit"]),
        "season": int(row["season"]), "provenance": str(row["provenance"])})


def pooled_prior(circuit: str, season: int) -> CircuitParameters:
    """Give every circuit the pooled prior, for backtests that must not use the prior table fitted on all seasons."""
    return CircuitParameters(circuit=circuit, season=season, provenance="prior")


def with_distance(prior: CircuitParameters, race_laps: int) -> CircuitParameters:
    """Change the race distance: the fuel lasts for it, and the sum of fuel and track trend stays the same."""
    burn = RACE_FUEL_KG / race_laps
    shift = (burn - prior.fuel_burn_kg_per_lap) * prior.fuel_effect_s_per_kg
    return replace(prior, race_laps=race_laps, fuel_burn_kg_per_lap=burn,
                   track_trend_s_per_lap=prior.track_trend_s_per_lap + shift)


def prior_row(prior: CircuitParameters, layout: str) -> dict[str, Any]:
    """The row of a circuit without measurements."""
    values = _flat(prior)
    return {"circuit": prior.circuit, "season": prior.season, "layout": layout, "provenance": prior.provenance,
            "n_laps": 0, "n_races": 0, "n_stops": 0, "through": None, **values,
            **{f"{name}_se": None for name in values}}


def fitted_row(view: SeasonView, prior: CircuitParameters, layout: str) -> dict[str, Any]:
    """The row of a circuit: measured values replace the prior where there are any."""
    values, circuit = _flat(prior), prior.circuit
    errors: dict[str, float | None] = {}
    races, laps = view.races(circuit, "base")
    if races:
        measured: dict[str, tuple[float, float | None]] = dict(view.measured(circuit))
        fuel_trend = prior.fuel_burn_kg_per_lap * prior.fuel_effect_s_per_kg
        trend, trend_se = measured.pop("trend", (values["track_trend_s_per_lap"] - fuel_trend, None))
        measured["track_trend_s_per_lap"] = (trend + fuel_trend, trend_se)
        for column, (value, error) in measured.items():
            low, high = BOUNDS.get(column, (-np.inf, np.inf))
            values[column], errors[column] = min(max(value, low), high), error
        if max(values[name] for name in STOPS[1:]) >= values[STOPS[0]]:
            # Few noisy stops, or a race with faulty laps: one circuit must not block the tables made from all of them.
            values.update({name: _flat(prior)[name] for name in STOPS})
            errors.update(dict.fromkeys(STOPS))
    return {"circuit": circuit, "season": view.season, "layout": layout,
            "provenance": "fitted" if races else prior.provenance, "n_laps": laps, "n_races": races,
            "n_stops": view.races(circuit, "stop_green")[1], "through": view.evidence.through if races else None,
            **values, **{f"{name}_se": errors.get(name) for name in values}}


def _flat(parameters: CircuitParameters) -> dict[str, float]:
    values = {}
    for column, (name, index, _) in parameter_columns().items():
        value = getattr(parameters, name)
        values[column] = float(value if index is None else value[index])
    return values

