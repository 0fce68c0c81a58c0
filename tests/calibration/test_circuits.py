"""`sim.circuits`: a row for each circuit, fitted or marked as prior; later seasons change no earlier evidence."""
from dataclasses import replace
from types import SimpleNamespace

import duckdb
import numpy as np
import pandas as pd
import pytest

from f1_pipelines.calibration.circuits import (
    STOPS,
    circuit_parameters,
    circuit_rows,
    fit_circuits,
    fitted_row,
    pooled_prior,
)
from f1_pipelines.calibration.evidence import gather
from f1_pipelines.calibration.real_race import RealRace
from f1_pipelines.calibration.replay import replay
from f1_pipelines.calibration.simulated_laps import simulated_laps
from f1_pipelines.calibration.stage import CannotFit
from f1_pipelines.sim import CircuitParameters, circuit_prior
from f1_pipelines.sim.engine.parameters import HARD, MEDIUM, SC
from f1_pipelines.tables.sim import CIRCUITS, SIM_TABLES, parameter_columns

pytestmark = pytest.mark.xdist_group("fits")  # the real seasons are measured once


@pytest.fixture(scope="module")
def rows(real) -> pd.DataFrame:
    return circuit_rows(real.evidence, real.calendar)


def row_of(rows: pd.DataFrame, circuit: str, season: int) -> pd.Series:
    return rows[(rows["circuit"] == circuit) & (rows["season"] == season)].iloc[0]


def test_at_least_24_circuits_are_fitted_with_one_row_per_season(rows, real):
    fitted = rows[rows["provenance"] == "fitted"]
    assert fitted["circuit"].nunique() >= 24  # three seasons; all nine give 29
    assert not rows.duplicated(["circuit", "season"]).any()
    assert set(rows["circuit"]) == set(real.calendar["circuit"])
    assert (fitted["n_laps"] > 300).all() and (fitted["n_races"] >= 1).all()


def test_a_circuit_without_laps_has_the_prior_and_is_marked_as_prior(rows):
    madrid = row_of(rows, "madring", 2026)
    assert madrid["provenance"] == "prior" and madrid["n_laps"] == 0 and pd.isna(madrid["through"])
    assert madrid[[f"{name}_se" for name in parameter_columns()]].isna().all()
    assert circuit_parameters(madrid) == replace(circuit_prior("madring", 2026), race_laps=int(madrid["race_laps"]))


def test_parameters_that_laps_cannot_show_keep_the_prior_without_an_error(rows):
    monza, prior = row_of(rows, "monza", 2024), circuit_prior("monza", 2024)
    for column in ("cliff_laps_soft", "fuel_effect_s_per_kg", "standstill_s", "degradation_s_per_lap_wet"):
        assert pd.isna(monza[f"{column}_se"])
    assert monza["cliff_laps_soft"] == prior.cliff_laps[0]
    for column in ("base_lap_s", "degradation_s_per_lap_hard", "stop_loss_green_s", "sc_per_race", "pass_circuit"):
        assert monza[f"{column}_se"] > 0


def test_fitted_rows_agree_with_known_measurements(rows):
    for circuit, green, medium in (("bahrain", 24.2, 0.103), ("monza", 25.5, 0.057), ("spielberg", 21.6, 0.048)):
        row = row_of(rows, circuit, 2024)
        assert row["stop_loss_green_s"] == pytest.approx(green, abs=1.0)
        assert row["degradation_s_per_lap_medium"] == pytest.approx(medium, abs=0.03)
        assert row["track_trend_s_per_lap"] - row["fuel_burn_kg_per_lap"] * row["fuel_effect_s_per_kg"] < -0.02
    assert row_of(rows, "monaco", 2024)["pass_circuit"] == rows["pass_circuit"].min()
    assert row_of(rows, "monza", 2026)["base_lap_s"] == pytest.approx(87.0 * 1.015, abs=3.5)


def test_parameters_survive_the_round_trip_through_the_table(rows):
    row = row_of(rows, "suzuka", 2024)
    parameters = circuit_parameters(row)
    assert isinstance(parameters, CircuitParameters) and parameters.provenance == "fitted"
    assert parameters.degradation_s_per_lap[MEDIUM] == row["degradation_s_per_lap_medium"]
    assert parameters.race_laps == 53 and np.isfinite(parameters.values).all()


def test_duckdb_accepts_the_tables_and_rows(rows):
    with duckdb.connect() as conn:
        conn.execute("CREATE SCHEMA sim")
        for table in SIM_TABLES:
            conn.execute(table.ddl())
        conn.register("frame", CIRCUITS.conform(rows))
        conn.execute("INSERT INTO sim.circuits BY NAME SELECT * FROM frame")
        assert conn.execute("SELECT count(*) FROM sim.circuits").fetchone() == (len(rows),)
    for name, (_, _, comment) in parameter_columns().items():
        assert "[" in comment, name


def test_evidence_before_a_season_ignores_that_season(real):
    in_2024 = real.laps["weekend"].str.startswith("2024")
    spoilt = real.laps.assign(lap_time_s=real.laps["lap_time_s"].mask(in_2024, real.laps["lap_time_s"] * 1.02 + 1),
                              is_pit_in=real.laps["is_pit_in"] & ~in_2024)
    results = real.results.assign(status=real.results["status"].mask(
        real.results["weekend"].str.startswith("2024"), "finished"))
    evidence = gather(spoilt, results, real.pit_stops, real.calendar)
    season = real.calendar[real.calendar["season"] == 2024]
    rows, changed = (circuit_rows(e.before(2024), season, pooled_prior) for e in (real.evidence, evidence))
    pd.testing.assert_frame_equal(rows, changed)
    assert set(rows["through"].dropna()) == {"2023-abu-dhabi"}
    with pytest.raises(CannotFit, match="no fitted race before 2022"):
        real.evidence.before(2022)


def test_laps_of_unknown_weekends_are_ignored_and_no_laps_is_an_error(real):
    unknown = real.laps[real.laps["weekend"] == "2024-monza"].assign(weekend="1999-nowhere")
    with pytest.raises(CannotFit):
        fit_circuits(unknown, real.results, real.pit_stops, real.calendar)


def test_stop_losses_keep_the_prior_if_stops_cost_more_under_a_safety_car():
    """One faulty race must not block the tables made from all circuits."""
    prior = pooled_prior("monza", 2026)

    def row(**measured: tuple[float, float]) -> dict:
        view = SimpleNamespace(season=2026, evidence=SimpleNamespace(through="2026-italy"),
                               races=lambda circuit, quantity: (1, 40), measured=lambda circuit: dict(measured))
        return fitted_row(view, prior, "monza-1")

    valid = row(stop_loss_green_s=(24.0, 0.5), stop_loss_sc_s=(12.0, 2.0))
    assert (valid["stop_loss_green_s"], valid["stop_loss_sc_s_se"]) == (24.0, 2.0)
    for invalid in ({"stop_loss_sc_s": (25.0, 3.0)}, {"stop_loss_vsc_s": (24.0, 3.0)}):
        reset = row(stop_loss_green_s=(24.0, 0.5), base_lap_s=(81.0, 0.1), **invalid)
        for name in STOPS:
            assert (reset[name], reset[f"{name}_se"]) == (getattr(prior, name), None)
        assert (reset["base_lap_s"], reset["provenance"]) == (81.0, "fitted")


def test_wet_races_alone_are_refused(real):
    wet = real.laps[real.laps["weekend"] == "2022-japan"]
    with pytest.raises(CannotFit, match="none of 1 races is dry"):
        fit_circuits(wet, real.results, real.pit_stops, real.calendar)


def test_missing_results_and_session_times_are_refused(real):
    bahrain = real.laps[real.laps["weekend"] == "2023-bahrain"]
    with pytest.raises(CannotFit, match="no results"):
        fit_circuits(bahrain, real.results.head(0), real.pit_stops, real.calendar)
    with pytest.raises(CannotFit, match="session_time_s is missing"):
        fit_circuits(bahrain.assign(session_time_s=float("nan")), real.results, real.pit_stops, real.calendar)


def test_a_tyre_age_of_500_laps_is_ignored(real):
    bahrain = real.laps[real.laps["weekend"] == "2023-bahrain"]
    faulty = bahrain.assign(tyre_age_laps=bahrain["tyre_age_laps"].mask(bahrain.index % 97 == 0, 500))
    rows = [fit_circuits(laps, real.results, real.pit_stops, real.calendar).iloc[0] for laps in (bahrain, faulty)]
    assert rows[1]["base_lap_s"] == pytest.approx(rows[0]["base_lap_s"], abs=0.1)


def test_a_single_race_is_enough(real):
    spain = real.laps[real.laps["weekend"] == "2024-spain"]
    rows = fit_circuits(spain, real.results, real.pit_stops, real.calendar)
    assert rows.loc[rows["provenance"] == "fitted", "circuit"].unique().tolist() == ["catalunya"]


def test_fitting_simulated_races_recovers_the_engine_parameters():
    """Simulated races, measured like real ones, give the circuit that they were simulated with."""
    truth = CircuitParameters(
        circuit="testland", season=2024, race_laps=50, base_lap_s=88.0, stop_loss_green_s=24.0, sc_catch_ratio=1.25,
        degradation_s_per_lap=(0.09, 0.07, 0.05, 0.06, 0.04))
    weekends = [f"2024-test-{n}" for n in range(6)]
    laps, results = zip(*(engine_race(truth, weekend, n) for n, weekend in enumerate(weekends)), strict=True)
    calendar = pd.DataFrame({"weekend": weekends, "season": 2024, "circuit": "testland", "layout": "testland-1",
                             "race_laps": 50, "race_start": pd.date_range("2024-03-01", periods=6, tz="UTC")})
    stops = pd.DataFrame({"weekend": [], "driver": [], "lap": []})
    row = fit_circuits(pd.concat(laps), pd.concat(results), stops, calendar).iloc[0]
    assert row["provenance"] == "fitted" and row["n_races"] == 6
    trend = truth.track_trend_s_per_lap - truth.fuel_burn_kg_per_lap * truth.fuel_effect_s_per_kg
    fitted_trend = row["track_trend_s_per_lap"] - row["fuel_burn_kg_per_lap"] * row["fuel_effect_s_per_kg"]
    assert fitted_trend == pytest.approx(trend, abs=0.008)
    assert row["degradation_s_per_lap_medium"] == pytest.approx(0.07, abs=0.012)
    assert row["degradation_s_per_lap_hard"] == pytest.approx(0.05, abs=0.012)
    assert row["base_lap_s"] == pytest.approx(88.0, abs=0.4)
    assert row["stop_loss_green_s"] == pytest.approx(24.0, abs=0.6)
    assert row["sc_leader_ratio"] == pytest.approx(truth.sc_leader_ratio, abs=0.05)
    assert row["pass_per_advantage"] == pytest.approx(truth.pass_per_advantage, abs=1.0)


def engine_race(circuit: CircuitParameters, weekend: str, seed: int,
                cars: int = 20) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Laps and classification of one simulated race with a stop for each car and one safety car."""
    laps, n = circuit.race_laps, np.arange(cars)
    drivers = tuple(f"driver-{car:02d}" for car in n)
    pit = np.full((laps, cars), -1)
    start = np.where(n % 2 == 0, MEDIUM, HARD)
    pit[9 + (n * 7 + seed) % 24, n] = np.where(n % 2 == 0, HARD, MEDIUM)
    status = np.zeros(laps, dtype=int)
    status[33 + seed:38 + seed] = SC
    race = RealRace(
        weekend=weekend, season=2024, circuit=circuit.circuit, laps=laps, drivers=drivers, constructors=drivers,
        finish=n + 1.0, laps_done=np.full(cars, laps), stopped=np.zeros(cars, dtype=bool), status=status,
        start_compound=start, start_wear=np.zeros(cars), pit=pit, set_wear=np.zeros((laps, cars)),
        line_s=np.full((laps, cars), np.nan))
    result = replay(race, circuit, np.linspace(-0.8, 0.8, cars), episodes=seed + 1)
    results = pd.DataFrame({"weekend": weekend, "driver": drivers, "grid_position": n + 1, "grid_status": "grid",
                            "status": "finished", "classified": True, "status_text": None})
    return simulated_laps(result, race, seed), results
