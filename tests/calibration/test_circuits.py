"""`sim.circuits`: a row for every circuit, fitted or marked as a prior; what comes later never moves what was known."""
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


def test_twenty_five_circuits_are_fitted_and_each_season_of_each_has_one_row(rows, real):
    fitted = rows[rows["provenance"] == "fitted"]
    assert fitted["circuit"].nunique() >= 24  # of three seasons; all nine give 29
    assert not rows.duplicated(["circuit", "season"]).any()
    assert set(rows["circuit"]) == set(real.calendar["circuit"])
    assert (fitted["n_laps"] > 300).all() and (fitted["n_races"] >= 1).all()


def test_a_circuit_without_laps_is_the_prior_and_says_so(rows):
    madrid = row_of(rows, "madring", 2026)
    assert madrid["provenance"] == "prior" and madrid["n_laps"] == 0 and pd.isna(madrid["through"])
    assert madrid[[f"{name}_se" for name in parameter_columns()]].isna().all()
    assert circuit_parameters(madrid) == replace(circuit_prior("madring", 2026), race_laps=int(madrid["race_laps"]))


def test_what_laps_cannot_tell_has_no_error_and_stays_the_prior(rows):
    monza, prior = row_of(rows, "monza", 2024), circuit_prior("monza", 2024)
    for column in ("cliff_laps_soft", "fuel_effect_s_per_kg", "standstill_s", "degradation_s_per_lap_wet"):
        assert pd.isna(monza[f"{column}_se"])
    assert monza["cliff_laps_soft"] == prior.cliff_laps[0]
    for column in ("base_lap_s", "degradation_s_per_lap_hard", "stop_loss_green_s", "sc_per_race", "pass_circuit"):
        assert monza[f"{column}_se"] > 0


def test_fitted_rows_agree_with_what_was_measured(rows):
    for circuit, green, medium in (("bahrain", 24.2, 0.103), ("monza", 25.5, 0.057), ("spielberg", 21.6, 0.048)):
        row = row_of(rows, circuit, 2024)
        assert row["stop_loss_green_s"] == pytest.approx(green, abs=1.0)
        assert row["degradation_s_per_lap_medium"] == pytest.approx(medium, abs=0.03)
        assert row["track_trend_s_per_lap"] - row["fuel_burn_kg_per_lap"] * row["fuel_effect_s_per_kg"] < -0.02
    assert row_of(rows, "monaco", 2024)["pass_circuit"] == rows["pass_circuit"].min()
    assert row_of(rows, "monza", 2026)["base_lap_s"] == pytest.approx(87.0 * 1.015, abs=3.5)


def test_parameters_go_to_the_table_and_back(rows):
    row = row_of(rows, "suzuka", 2024)
    parameters = circuit_parameters(row)
    assert isinstance(parameters, CircuitParameters) and parameters.provenance == "fitted"
    assert parameters.degradation_s_per_lap[MEDIUM] == row["degradation_s_per_lap_medium"]
    assert parameters.race_laps == 53 and np.isfinite(parameters.values).all()


def test_the_tables_exist_in_duckdb(rows):
    with duckdb.connect() as conn:
        conn.execute("CREATE SCHEMA sim")
        for table in SIM_TABLES:
            conn.execute(table.ddl())
        conn.register("frame", CIRCUITS.conform(rows))
        conn.execute("INSERT INTO sim.circuits BY NAME SELECT * FROM frame")
        assert conn.execute("SELECT count(*) FROM sim.circuits").fetchone() == (len(rows),)
    for name, (_, _, comment) in parameter_columns().items():
        assert "[" in comment, name


def test_nothing_of_a_season_is_known_before_it(real):
    then = real.laps["weekend"].str.startswith("2024")
    spoilt = real.laps.assign(lap_time_s=real.laps["lap_time_s"].mask(then, real.laps["lap_time_s"] * 1.02 + 1),
                              is_pit_in=real.laps["is_pit_in"] & ~then)
    results = real.results.assign(status=real.results["status"].mask(
        real.results["weekend"].str.startswith("2024"), "finished"))
    evidence = gather(spoilt, results, real.pit_stops, real.calendar)
    season = real.calendar[real.calendar["season"] == 2024]
    told, again = (circuit_rows(e.before(2024), season, pooled_prior) for e in (real.evidence, evidence))
    pd.testing.assert_frame_equal(told, again)
    assert set(told["through"].dropna()) == {"2023-abu-dhabi"}
    with pytest.raises(CannotFit, match="no fitted race before 2022"):
        real.evidence.before(2022)


def test_laps_of_unknown_weekends_are_left_out_and_no_laps_is_an_error(real):
    strange = real.laps[real.laps["weekend"] == "2024-monza"].assign(weekend="1999-nowhere")
    with pytest.raises(CannotFit):
        fit_circuits(strange, real.results, real.pit_stops, real.calendar)


def test_stops_that_would_cost_more_under_a_safety_car_stay_the_prior_and_have_no_error():
    """One odd race must not make a circuit that stops everything made from the others."""
    prior = pooled_prior("monza", 2026)

    def row(**measured: tuple[float, float]) -> dict:
        view = SimpleNamespace(season=2026, evidence=SimpleNamespace(through="2026-italy"),
                               races=lambda circuit, quantity: (1, 40), measured=lambda circuit: dict(measured))
        return fitted_row(view, prior, "monza-1")

    sound = row(stop_loss_green_s=(24.0, 0.5), stop_loss_sc_s=(12.0, 2.0))
    assert (sound["stop_loss_green_s"], sound["stop_loss_sc_s_se"]) == (24.0, 2.0)
    for odd in ({"stop_loss_sc_s": (25.0, 3.0)}, {"stop_loss_vsc_s": (24.0, 3.0)}):
        back = row(stop_loss_green_s=(24.0, 0.5), base_lap_s=(81.0, 0.1), **odd)
        for name in STOPS:
            assert (back[name], back[f"{name}_se"]) == (getattr(prior, name), None)
        assert (back["base_lap_s"], back["provenance"]) == (81.0, "fitted")


def test_wet_races_alone_teach_nothing(real):
    wet = real.laps[real.laps["weekend"] == "2022-japan"]
    with pytest.raises(CannotFit, match="none of 1 races is dry"):
        fit_circuits(wet, real.results, real.pit_stops, real.calendar)


def test_without_results_or_times_of_day_it_says_what_is_missing(real):
    one = real.laps[real.laps["weekend"] == "2023-bahrain"]
    with pytest.raises(CannotFit, match="no results"):
        fit_circuits(one, real.results.head(0), real.pit_stops, real.calendar)
    with pytest.raises(CannotFit, match="session_time_s is missing"):
        fit_circuits(one.assign(session_time_s=float("nan")), real.results, real.pit_stops, real.calendar)


def test_a_set_of_500_laps_is_a_fault_of_the_feed(real):
    one = real.laps[real.laps["weekend"] == "2023-bahrain"]
    odd = one.assign(tyre_age_laps=one["tyre_age_laps"].mask(one.index % 97 == 0, 500))
    rows = [fit_circuits(laps, real.results, real.pit_stops, real.calendar).iloc[0] for laps in (one, odd)]
    assert rows[1]["base_lap_s"] == pytest.approx(rows[0]["base_lap_s"], abs=0.1)


def test_a_single_race_is_enough(real):
    one = real.laps[real.laps["weekend"] == "2024-spain"]
    rows = fit_circuits(one, real.results, real.pit_stops, real.calendar)
    assert rows.loc[rows["provenance"] == "fitted", "circuit"].unique().tolist() == ["catalunya"]


def test_the_engines_own_races_give_its_parameters_back():
    """Races driven by the engine, measured as real ones are: the circuit that drove them comes out again."""
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
    found = row["track_trend_s_per_lap"] - row["fuel_burn_kg_per_lap"] * row["fuel_effect_s_per_kg"]
    assert found == pytest.approx(trend, abs=0.008)
    assert row["degradation_s_per_lap_medium"] == pytest.approx(0.07, abs=0.012)
    assert row["degradation_s_per_lap_hard"] == pytest.approx(0.05, abs=0.012)
    assert row["base_lap_s"] == pytest.approx(88.0, abs=0.4)
    assert row["stop_loss_green_s"] == pytest.approx(24.0, abs=0.6)
    assert row["sc_leader_ratio"] == pytest.approx(truth.sc_leader_ratio, abs=0.05)
    assert row["pass_per_advantage"] == pytest.approx(truth.pass_per_advantage, abs=1.0)


def engine_race(circuit: CircuitParameters, weekend: str, seed: int,
                cars: int = 20) -> tuple[pd.DataFrame, pd.DataFrame]:
    """One race of the engine with a stop for each car and one safety car, as laps and a classification."""
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
