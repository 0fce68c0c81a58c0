"""Simulator parameters fitted to laps, and validated against the same races."""
from typing import TYPE_CHECKING, Any

import dagster as dg
import duckdb
import pandas as pd
from pydantic import Field

from f1_pipelines.assets.checks import keys_are_unique, no_rows_check
from f1_pipelines.assets.metadata import described, preview
from f1_pipelines.assets.race_data import qualifying_results, race_laps, race_results
from f1_pipelines.resources.warehouse import Warehouse
from f1_pipelines.tables import race
from f1_pipelines.tables import sim as tables
from f1_pipelines.tables.race_faults import UNLEARNABLE
from f1_pipelines.tables.schema import Table
from f1_pipelines.warehouse.replace import replace_slices

if TYPE_CHECKING:
    from f1_pipelines.calibration.evidence import Evidence

_COMMON: dict[str, Any] = {"group_name": "simulation", "owners": ["team:simulation"], "kinds": {"python", "duckdb"},
           "code_version": "1", "backfill_policy": dg.BackfillPolicy.single_run()}
_EVERY_WEEKEND = dg.AllPartitionMapping()


@dg.asset(**_COMMON, metadata=described(tables.CIRCUITS),
          deps=[dg.AssetDep(race_laps, partition_mapping=_EVERY_WEEKEND),
                dg.AssetDep(race_results, partition_mapping=_EVERY_WEEKEND)])
def circuit_fits(context: dg.AssetExecutionContext, warehouse: Warehouse) -> dg.MaterializeResult[None]:
    """Physical parameters of each circuit in each season, with standard errors. One row per (circuit, season).

    Fits `race.laps`. Parameters that laps don't determine, and circuits without laps, keep the prior and are marked.
    """
    from f1_pipelines.calibration.circuits import circuit_rows

    with warehouse.read() as connection:
        frames = _race_frames(connection)
    evidence = _evidence(context, frames)
    rows = circuit_rows(evidence, frames["calendar"])
    with warehouse.write("circuit_fits") as connection:
        replace_slices(connection, tables.CIRCUITS, rows)
    fitted = rows[rows["provenance"] == "fitted"]
    return dg.MaterializeResult(metadata={
        "dagster/row_count": len(rows), "races": len(evidence.fits) if evidence else 0,
        "circuits": int(rows["circuit"].nunique()), "circuits_fitted": int(fitted["circuit"].nunique()),
        "through": evidence.through if evidence else "no laps",
        "preview": preview((fitted if len(fitted) else rows)[[
            "circuit", "season", "n_races", "n_laps", "base_lap_s", "base_lap_s_se", "stop_loss_green_s",
            "stop_loss_green_s_se", "lap_scatter_s"]].tail(12), 12),
    })


class ValidationConfig(dg.Config):
    """Size of the validation."""

    episodes: int = Field(100, ge=1, le=5000, description="Simulated races per real race and method.")


@dg.asset(**_COMMON, deps=[circuit_fits, dg.AssetDep(qualifying_results, partition_mapping=_EVERY_WEEKEND)],
          metadata=described(tables.VALIDATION))
def simulator_validation(context: dg.AssetExecutionContext, config: ValidationConfig,
                         warehouse: Warehouse) -> dg.MaterializeResult[None]:
    """Replays of dry races in the simulator, compared with the real races. One row per (weekend, method).

    `sim.validation_summary` has means over the races, `sim.distributions` distributions by circuit. Each row says which
    inputs were real: a replay with fitted pace is a fit, not a forecast. On sample data, which the simulator made, this
    only shows that it repeats itself.
    """
    from f1_pipelines.calibration.circuits import circuit_parameters
    from f1_pipelines.calibration.distributions import distributions
    from f1_pipelines.calibration.replay import REPLAY_ENGINE
    from f1_pipelines.calibration.validation import replayable, summarise, validate

    with warehouse.read() as connection:
        frames = _race_frames(connection)
        newest = connection.sql("SELECT * FROM sim.circuits "
                                "QUALIFY season = max(season) OVER (PARTITION BY circuit)").df()
    evidence = _evidence(context, frames)
    if evidence is None:
        return dg.MaterializeResult(metadata={"dagster/row_count": 0, "races": 0})
    rows = validate(evidence, frames["results"], frames["qualifying"], frames["calendar"], config.episodes)
    summary = summarise(rows)
    races = list(replayable(evidence, frames["results"], frames["qualifying"], frames["calendar"]))
    by_circuit = distributions(races, frames["results"], evidence.circuit,
                               {row["circuit"]: circuit_parameters(row) for row in newest.to_dict("records")},
                               evidence.events, evidence.retirements, REPLAY_ENGINE)
    with warehouse.write("simulator_validation") as connection:
        replace_slices(connection, tables.VALIDATION, rows, accept_fewer_rows=True)
        replace_slices(connection, tables.VALIDATION_SUMMARY, summary, accept_fewer_rows=True)
        replace_slices(connection, tables.DISTRIBUTIONS, by_circuit, accept_fewer_rows=True)
    orders = summary[(summary["races"] == "all") & summary["spearman"].notna()]
    return dg.MaterializeResult(metadata={
        "dagster/row_count": len(rows), "races": int(rows["weekend"].nunique()), "episodes": config.episodes,
        "orders": preview(orders[["method", "n_races", "spearman", "places_off", "winner_right", "gap_error_s"]], 20),
        "lap_times": preview(summary[summary["lap_mae_s"].notna() & (summary["races"] == "all")][
            ["method", "n_races", "n_laps", "lap_mae_s", "target_lap_mae_s"]], 20),
    })


def _evidence(context: dg.AssetExecutionContext, frames: dict[str, pd.DataFrame]) -> "Evidence | None":
    """Measure the laps. Returns None, with a warning, if there are no usable laps (f1db without an archive)."""
    from f1_pipelines.calibration.evidence import gather
    from f1_pipelines.calibration.stage import CannotFit

    try:
        evidence = gather(frames["laps"], frames["results"], frames["pit_stops"], frames["calendar"])
    except CannotFit as problem:
        context.log.warning("nothing is fitted, all circuits keep their priors: %s", problem)
        return None
    context.log.info("%d races measured, the latest %s", len(evidence.fits), evidence.through)
    return evidence


def _race_frames(connection: duckdb.DuckDBPyConnection) -> dict[str, pd.DataFrame]:
    """Read laps and results of the races that can be learnt from, and the other inputs of all races."""
    learnable = f"weekend NOT IN (SELECT weekend FROM ({UNLEARNABLE}))"

    def read(table: Table, sql: str) -> pd.DataFrame:
        return table.conform(connection.sql(sql).df())

    return {
        "laps": read(race.LAPS, f"SELECT * FROM race.laps WHERE {learnable} ORDER BY weekend, driver, lap"),
        "results": read(race.RESULTS, f"SELECT * FROM race.current_results WHERE {learnable} "
                                      "ORDER BY weekend, official_order"),
        "pit_stops": read(race.PIT_STOPS, "SELECT * FROM race.pit_stops ORDER BY weekend, driver, stop"),
        "qualifying": read(race.QUALIFYING, "SELECT * FROM race.qualifying WHERE session = 'qualifying' "
                                            "ORDER BY weekend, driver"),
        "calendar": read(race.CALENDAR, "SELECT * FROM race.calendar "
                                        "WHERE weekend IN (SELECT weekend FROM race.results) ORDER BY race_start"),
    }


simulation_checks = [
    keys_are_unique(circuit_fits, tables.CIRCUITS),
    keys_are_unique(simulator_validation, tables.VALIDATION, tables.VALIDATION_SUMMARY, tables.DISTRIBUTIONS),
    # Over the whole table, which each run rebuilds. For one race, `calibration.circuits` keeps the prior.
    no_rows_check(
        circuit_fits, "slow_laps_cost_less_than_racing_ones",
        "A stop must cost less under a safety car than under green; other fits teach wrong strategy.",
        """SELECT circuit, season, stop_loss_green_s, stop_loss_vsc_s, stop_loss_sc_s FROM sim.circuits
           WHERE stop_loss_sc_s >= stop_loss_green_s OR stop_loss_vsc_s >= stop_loss_green_s"""),
    no_rows_check(
        simulator_validation, "targets_are_met", "Accuracy targets of the simulator on real races.",
        """SELECT method, races, spearman, target_spearman, places_off, target_places_off, lap_mae_s, target_lap_mae_s
           FROM sim.validation_summary
           WHERE spearman < target_spearman OR places_off > target_places_off OR lap_mae_s > target_lap_mae_s""",
        blocking=False),
]
