"""Tables of schema `sim`: parameters fitted to each circuit, and validation of the simulator on real races."""
from __future__ import annotations

from dataclasses import fields

from f1_pipelines.sim.engine.parameters import COMPOUNDS, CircuitParameters
from f1_pipelines.tables.race import WEEKEND
from f1_pipelines.tables.schema import Column, Table

PROVENANCES = ("fitted", "circuit_prior", "prior")
IDENTITY = ("circuit", "season", "provenance")  # fields of CircuitParameters that are not physical parameters


def parameter_columns() -> dict[str, tuple[str, int | None, str]]:
    """Map each column to its (field of `CircuitParameters`, index in its tuple or None, comment with the unit)."""
    columns: dict[str, tuple[str, int | None, str]] = {}
    for f in fields(CircuitParameters):
        if f.name in IDENTITY:
            continue
        unit = f"[{f.metadata['unit']}]"
        if isinstance(f.default, tuple):
            columns |= {f"{f.name}_{compound}": (f.name, n, f"{f.name} of {compound} {unit}")
                        for n, compound in enumerate(COMPOUNDS)}
        else:
            columns[f.name] = (f.name, None, f"{f.name} {unit}")
    return columns


CIRCUITS = Table(
    "sim", "circuits", "Parameters of each circuit in each season, fitted to real laps where available",
    ("circuit", "season"), (
        Column("circuit", "VARCHAR", "Circuit id", required=True),
        Column("season", "INTEGER", "Season of the values; data of more distant seasons weigh less", required=True,
               minimum=1950),
        Column("layout", "VARCHAR", "Layout id"),
        Column("provenance", "VARCHAR", "fitted: from dry races at the circuit; circuit_prior: from the simulator's "
               "measured table; prior: pooled values", required=True, allowed=PROVENANCES),
        Column("n_laps", "INTEGER", "Fitted clean laps in free air at the circuit", required=True, minimum=0),
        Column("n_races", "INTEGER", "Fitted dry races at the circuit", required=True, minimum=0),
        Column("n_stops", "INTEGER", "Fitted green-flag stops at the circuit, for the stop loss", required=True,
               minimum=0),
        Column("through", "VARCHAR", "Last weekend with fitted laps; missing without any"),
        *(column for name, (_, _, comment) in parameter_columns().items() for column in (
            Column(name, "DOUBLE", comment, required=True),
            Column(f"{name}_se", "DOUBLE", f"Standard error of {name}; missing if it is the prior", minimum=0))),
    ), slice_by=("season",))

_METHOD = Column("method", "VARCHAR", "Method: grid, pace_rank, replay_fitted, replay_half, replay_ex_ante, "
                 "laps_random_fifth, ... (calibration/validation.py lists them)", required=True)
_INPUTS = Column("real_inputs", "VARCHAR", "Inputs from the real race; all others are simulated or known before",
                 required=True)
_SCORES = (
    Column("n_finishers", "INTEGER", "Classified cars ranked", minimum=0),
    Column("spearman", "DOUBLE", "Rank correlation of the finishers' order with the real one", minimum=-1, maximum=1),
    Column("places_off", "DOUBLE", "Mean absolute position error of finishers [places]", minimum=0),
    Column("winner_right", "DOUBLE", "Share of races with the correct winner", minimum=0, maximum=1),
    Column("gap_error_s", "DOUBLE", "Median error of the gap to the winner, cars within 120 s of it [s]", minimum=0),
    Column("n_laps", "INTEGER", "Predicted laps that were not fitted", minimum=0),
    Column("lap_mae_s", "DOUBLE", "Mean absolute error of their times [s]", minimum=0),
    Column("lap_rmse_s", "DOUBLE", "Root mean square error of their times [s]", minimum=0),
    Column("stop_error_s", "DOUBLE", "Median absolute error of the circuit's stop loss over the race's green-flag "
           "stops [s]", minimum=0),
)
_RUN = (
    Column("episodes", "INTEGER", "Number of simulated races in the mean; missing without simulation", minimum=1),
    Column("engine_version", "INTEGER", "Version of the engine; missing without simulation", minimum=1),
)

VALIDATION = Table(
    "sim", "validation", "Errors of the simulator and the baselines on real races: order, gaps, lap times, stops",
    ("weekend", "method"), (WEEKEND, _METHOD, _INPUTS, *_SCORES, *_RUN), slice_by=("method",))

VALIDATION_SUMMARY = Table(
    "sim", "validation_summary", "Each method over its races: means for orders, medians for lap times",
    ("method", "races"), (
        _METHOD,
        Column("races", "VARCHAR", "all of the method, or 2019_peer (the 17 races of the published simulator's scores)",
               required=True),
        Column("n_races", "INTEGER", "Races", required=True, minimum=1), _INPUTS, *_SCORES[1:],
        Column("spearman_se", "DOUBLE", "Standard error of the mean Spearman over races", minimum=0),
        Column("places_off_se", "DOUBLE", "Standard error of the mean position error over races", minimum=0),
        Column("target_spearman", "DOUBLE", "Minimum Spearman required; missing for baselines"),
        Column("target_places_off", "DOUBLE", "Maximum position error allowed [places]"),
        Column("target_lap_mae_s", "DOUBLE", "Maximum lap time error allowed [s]"),
    ), slice_by=("method",))

DISTRIBUTIONS = Table(
    "sim", "distributions", "Quantities of simulated and of real races, by circuit and over all",
    ("circuit", "quantity"), (
        Column("circuit", "VARCHAR", "Circuit id, or all", required=True),
        Column("quantity", "VARCHAR", "Quantity with its unit", required=True),
        Column("real", "DOUBLE", "Value in real races", required=True),
        Column("real_se", "DOUBLE", "Its standard error over races", minimum=0),
        Column("simulated", "DOUBLE", "Value in simulated races", required=True),
        Column("n_races", "INTEGER", "Number of real races", required=True, minimum=0),
    ), slice_by=("circuit",))

SIM_TABLES = (CIRCUITS, VALIDATION, VALIDATION_SUMMARY, DISTRIBUTIONS)
