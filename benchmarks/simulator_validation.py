"""The simulator against real races: fits, lap times not fitted, replays, distributions; targets and baselines beside.

    F1_SHARED=/path/to/shared python -m benchmarks.simulator_validation [--episodes 100] [--out FOLDER]

Reads real laps (F1_SHARED/data/laps) and f1db (F1_SHARED/data/f1db-csv); writes nothing unless asked to.
"""
from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # many small matrices: threads only wait for each other

import argparse
import resource
import time
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd

from f1_pipelines.calibration.circuits import circuit_parameters, circuit_rows
from f1_pipelines.calibration.distributions import distributions
from f1_pipelines.calibration.evidence import gather
from f1_pipelines.calibration.incidents import noise_shape, residuals
from f1_pipelines.calibration.replay import REPLAY_ENGINE
from f1_pipelines.calibration.validation import INPUTS, replayable, summarise, validate
from f1_pipelines.calibration.wet import wet_ratios
from f1_pipelines.identity.weekends import known_weekends
from f1_pipelines.sim.engine.parameters import INTER, SOFT, WET
from f1_pipelines.sim.engine.weather import INTER_WET_CROSSOVER, SLICK_INTER_CROSSOVER, lap_ratio
from f1_pipelines.sources.f1db.release import F1dbRelease
from f1_pipelines.sources.f1db.source import F1dbSource
from f1_pipelines.sources.laps_archive import LapsArchive
from f1_pipelines.tables.sim import parameter_columns

SHARED = Path(os.environ.get("F1_SHARED") or Path(__file__).parents[2] / "shared")
# facts/physics.md: what another implementation reached on the same laps.
PHYSICS = {"grid": (0.764, 2.43), "pace_rank": (0.887, 1.51), "replay_fitted": (0.949, 0.97),
           "replay_fitted_noise_free": (0.946, 1.01), "replay_fitted_lap_1": (0.960, 0.82), "half_order": (0.847, 1.83),
           "replay_half": (0.927, 1.19), "ex_ante_rank": (0.818, 2.12), "replay_ex_ante": (0.878, 1.73),
           "replay_ex_ante_no_stops": (0.858, 1.86), "replay_qualifying": (0.846, 1.93)}
PEER = {"grid": (0.781, 2.41), "pace_rank": (0.860, 1.77), "replay_fitted": (0.934, 1.10),
        "replay_ex_ante": (0.884, 1.68), "published simulator": (0.804, 2.29)}
LAPS = {"laps_random_fifth": 0.39, "laps_random_fifth_race_alone": 0.41, "laps_random_fifth_driver_median": 0.86,
        "laps_random_fifth_linear": 0.70, "laps_last_quarter": 0.55, "laps_last_quarter_race_alone": 0.58,
        "laps_last_quarter_driver_median": 1.30, "laps_last_quarter_linear": 1.16, "laps_later_race": 0.47,
        "laps_later_race_driver_median": 0.81, "laps_later_race_linear": 0.89, "laps_later_race_ten_laps": 0.64,
        "laps_later_race_ten_laps_driver_median": 1.34, "laps_later_race_ten_laps_linear": 1.59}


@contextmanager
def timed(what: str):
    wall, cpu = time.perf_counter(), time.process_time()
    yield
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"  [{what}: {time.perf_counter() - wall:.1f} s, CPU {time.process_time() - cpu:.1f} s, peak so far "
          f"{peak:.0f} MB]")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=100, help="simulated races for each real one and method")
    parser.add_argument("--out", type=Path, help="write the tables there as CSV")
    options = parser.parse_args()
    with timed("read"):
        frames = read(SHARED)
    with timed("measure every race"):
        evidence = gather(frames["laps"], frames["results"], frames["pit_stops"], frames["calendar"])
    with timed("sim.circuits"):
        circuits = circuit_rows(evidence, frames["calendar"])
    show_circuits(circuits)
    show_noise_and_rain(evidence)
    with timed("sim.validation"):
        validation = validate(evidence, frames["results"], frames["qualifying"], frames["calendar"], options.episodes)
    summary = summarise(validation)
    show_laps(summary)
    show_orders(summary)
    with timed("sim.distributions"):
        races = list(replayable(evidence, frames["results"], frames["qualifying"], frames["calendar"]))
        latest = circuits.sort_values("season").drop_duplicates("circuit", keep="last")
        free = {row.circuit: circuit_parameters(row._asdict()) for row in latest.itertuples()}
        spread = distributions(races, frames["results"], evidence.circuit, free, evidence.events, evidence.retirements,
                               REPLAY_ENGINE)
    show_distributions(spread)
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        for name, frame in (("circuits", circuits), ("validation", validation), ("validation_summary", summary),
                            ("distributions", spread)):
            frame.to_csv(options.out / f"{name}.csv", index=False)


def read(shared: Path) -> dict[str, pd.DataFrame]:
    """Frames of schema race from the archive and f1db."""
    archive = LapsArchive(shared / "data" / "laps")
    f1db = F1dbSource(F1dbRelease(shared / "data" / "f1db-csv"), lambda: datetime.now(UTC))
    weekends = archive.weekends()
    everything = [weekend for weekend in known_weekends() if weekend.season <= weekends[-1].season]
    results, qualifying = f1db.results(everything).tables, f1db.qualifying(everything).tables["race.qualifying"]
    return {"laps": archive.laps(weekends).tables["race.laps"], "results": results["race.results"],
            "pit_stops": results["race.pit_stops"], "qualifying": qualifying[qualifying["session"] == "qualifying"],
            "calendar": f1db.calendar(range(2018, weekends[-1].season + 1))}


def show_circuits(circuits: pd.DataFrame) -> None:
    fitted = circuits[circuits["provenance"] == "fitted"]
    names = set(fitted["circuit"])
    print(f"\nsim.circuits: {len(circuits)} rows, {circuits['circuit'].nunique()} circuits, {len(names)} of them "
          f"fitted; priors: {', '.join(sorted(set(circuits['circuit']) - names))}")
    rows = [(name, fitted[name].min(), fitted[name].median(), fitted[name].max(),
             fitted[f"{name}_se"].median() if fitted[f"{name}_se"].notna().any() else "prior")
            for name in parameter_columns()]
    columns = ["parameter (all seasons, fitted rows)", "least", "median", "most", "error"]
    print(table(pd.DataFrame(rows, columns=columns)))


TYRES = {"slick": SOFT, "inter": INTER, "wet": WET}


def show_noise_and_rain(evidence) -> None:
    clean = evidence.staged[evidence.staged["clean"] & evidence.staged["weekend"].isin(list(evidence.fits))]
    shape = noise_shape(residuals(clean, evidence.fits))
    print("\nResiduals: " + ", ".join(f"{name} {value:.3f}" for name, value in shape.items()))
    ratio = wet_ratios(evidence.staged, evidence.circuit).groupby("compound")["ratio"].describe()[
        ["count", "25%", "50%", "75%"]]
    print("Rain tyres over a dry lap, real:")
    print(table(ratio.reset_index()))
    print("the engine, by wetness: " + "; ".join(
        f"{w}: " + ", ".join(f"{name} {lap_ratio(compound, w):.2f}" for name, compound in TYRES.items())
        for w in (SLICK_INTER_CROSSOVER, 0.5, INTER_WET_CROSSOVER)))


def show_laps(summary: pd.DataFrame) -> None:
    rows = summary[summary["method"].str.startswith("laps_")]
    print("\nLap times that were not fitted, medians over races [s]. Inputs: tyres and gaps of all laps, and")
    for inputs, of_inputs in rows.groupby("real_inputs"):
        print(f"  {inputs}: {', '.join(of_inputs['method'])}")
    shown = rows[["method", "n_races", "n_laps", "lap_mae_s", "lap_rmse_s", "target_lap_mae_s"]].assign(
        physics=rows["method"].map(LAPS), verdict=[verdict(r.lap_mae_s <= r.target_lap_mae_s)
                                                  if pd.notna(r.target_lap_mae_s) else "" for r in rows.itertuples()])
    print(table(shown))


def show_orders(summary: pd.DataFrame) -> None:
    rows = summary[~summary["method"].str.startswith("laps_")].copy()
    for races, reference in (("all", PHYSICS), ("2019_peer", PEER)):
        part = rows[rows["races"] == races].set_index("method").reindex(
            [name for name in INPUTS if name in set(rows["method"])]).reset_index()
        print(f"\nOrder of the finishers, dry races without red flag ({races}), means over races")
        met = [verdict(r.spearman >= r.target_spearman and r.places_off <= r.target_places_off)
               if pd.notna(r.target_spearman) else "" for r in part.itertuples()]
        known = [" / ".join(map(str, reference[m])) if m in reference else "" for m in part["method"]]
        print(table(part[["method", "n_races", "spearman", "spearman_se", "places_off", "places_off_se", "winner_right",
                          "gap_error_s", "lap_mae_s", "target_spearman", "target_places_off"]].assign(
                              physics=known, verdict=met)))
    print(f"(the published simulator on its 17 races: {PEER['published simulator'][0]} / "
          f"{PEER['published simulator'][1]})\n\nReal inputs:")
    for method, inputs in INPUTS.items():
        print(f"  {method}: {inputs}")


def show_distributions(spread: pd.DataFrame) -> None:
    print("\nDistributions. Inputs: grid, stops, track status, retirements, fitted pace; nothing is real for VSC, SC "
          "and red flags per race, their laps, and retirements per car")
    by_circuit = spread[spread["circuit"] != "all"]
    likeness = {quantity: rows[["real", "simulated"]].astype(float).corr().iloc[0, 1] if len(rows) > 2 else None
                for quantity, rows in by_circuit.groupby("quantity")}
    rows = spread[spread["circuit"] == "all"][["quantity", "real", "real_se", "simulated", "n_races"]]
    print(table(rows.assign(correlation_over_circuits=rows["quantity"].map(likeness))))
    for quantity in ("passes per race, gap < 1.5 s", "places changed, grid to flag, mean", "stop loss green, median, s",
                     "sc per race", "gap to the winner, P5, s"):
        rows = by_circuit[by_circuit["quantity"] == quantity]
        print(f"\n{quantity}, by circuit: real / simulated (races)")
        print("  " + ", ".join(f"{r.circuit} {r.real:.1f} / {r.simulated:.1f} ({r.n_races})"
                               for r in rows.itertuples()))


def verdict(met: bool) -> str:
    return "met" if met else "MISSED"


def table(frame: pd.DataFrame) -> str:
    plain = frame.astype(object).where(frame.notna(), "")
    return plain.to_string(index=False, float_format=lambda value: f"{value:.3f}")


if __name__ == "__main__":
    main()
