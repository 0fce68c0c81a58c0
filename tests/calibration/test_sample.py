"""Fitting the simulated sample seasons recovers the parameters that they were simulated with."""
from datetime import UTC, datetime

import pandas as pd
import pytest

from f1_pipelines.calibration.circuits import fit_circuits
from f1_pipelines.identity.weekends import season_weekends
from f1_pipelines.sources.sample import SampleSource, true_parameters
from f1_pipelines.tables.sim import parameter_columns

SEASONS = (2023, 2024, 2025)


@pytest.fixture(scope="module")
def comparison() -> pd.DataFrame:
    """Truth, fit and error of each fitted parameter of each circuit of 2024."""
    sample = SampleSource(now=lambda: datetime(2026, 8, 22, tzinfo=UTC))
    weekends = [weekend for season in SEASONS for weekend in season_weekends(season)]
    results = sample.results(weekends).tables
    rows = fit_circuits(sample.laps(weekends).tables["race.laps"], results["race.results"], results["race.pit_stops"],
                        sample.calendar(SEASONS))
    truth = {weekend.circuit: true_parameters(weekend) for weekend in weekends if weekend.season == 2024}
    values = []
    for row in rows[rows["season"] == 2024].itertuples():
        for column, (name, index, _) in parameter_columns().items():
            value = getattr(truth[row.circuit], name)
            values.append((row.circuit, column, value if index is None else value[index], getattr(row, column),
                           getattr(row, f"{column}_se")))
    frame = pd.DataFrame(values, columns=["circuit", "parameter", "truth", "fit", "se"]).dropna(subset=["se"])
    return frame.astype({"truth": float, "fit": float, "se": float})


@pytest.mark.parametrize("parameter", [
    "track_trend_s_per_lap", "degradation_s_per_lap_soft", "degradation_s_per_lap_medium", "degradation_s_per_lap_hard",
    "stop_loss_green_s", "stop_loss_vsc_s", "sc_per_race", "vsc_per_race", "accident_per_race", "mechanical_per_race",
    "first_lap_loss_s", "pass_intercept"])
def test_a_parameter_is_recovered_within_its_error(comparison, parameter):
    rows = comparison[comparison["parameter"] == parameter]
    error = (rows["fit"] - rows["truth"]) / rows["se"]
    assert len(rows) == 24
    assert (error**2).mean() ** 0.5 < 2.0 and abs(error.median()) < 1.5


@pytest.mark.parametrize(("parameter", "within"), [
    ("base_lap_s", 0.012), ("lap_scatter_s", 0.2), ("vsc_lap_ratio", 0.05), ("sc_leader_ratio", 0.04),
    ("sc_catch_ratio", 0.07), ("first_lap_places", 0.15), ("pass_per_advantage", 0.15), ("pass_per_gap", 0.25)])
def test_other_parameters_are_recovered_within_a_relative_error(comparison, parameter, within):
    """Their standard errors cover only noise, not two biases: laps behind the safety car are 2 % short, because the
    engine's ratio is to a lap without fuel; the gap counts less in passes, because lap noise also causes passes."""
    rows = comparison[comparison["parameter"] == parameter]
    assert (rows["fit"] / rows["truth"] - 1).abs().median() < within


def test_fitted_parameters_correlate_with_the_truth_over_circuits(comparison):
    for parameter, least in (("degradation_s_per_lap_medium", 0.8), ("stop_loss_green_s", 0.9), ("pass_circuit", 0.8)):
        rows = comparison[comparison["parameter"] == parameter]
        assert rows["truth"].corr(rows["fit"]) > least, parameter
