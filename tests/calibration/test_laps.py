"""The lap model recovers known parameters of synthetic laps, resists outliers, and gives known values on real laps."""
import numpy as np
import pandas as pd
import pytest

from f1_pipelines.calibration.empirical_bayes import pool
from f1_pipelines.calibration.lap_model import TERMS, Prior, fit_race
from f1_pipelines.calibration.races import TermPriors, term_values
from f1_pipelines.calibration.robust import huber_ridge
from f1_pipelines.calibration.stage import CannotFit, stage_laps
from f1_pipelines.calibration.validation import validate

pytestmark = pytest.mark.xdist_group("fits")  # the real seasons are measured once


def fitted(laps: pd.DataFrame, prior: Prior | None = None):
    staged = stage_laps(laps)
    return fit_race(staged[staged["clean"]], laps["lap"].max() / 2, prior)


def test_the_parameters_of_synthetic_races_are_recovered(synthetic_laps, truth):
    fits = [fitted(synthetic_laps(truth, seed=seed)) for seed in range(4)]
    expected = dict(zip(TERMS, (truth.trend, *truth.offsets, *truth.slopes), strict=False))
    for term, value in expected.items():
        k = TERMS.index(term)
        mean, se = np.mean([f.terms[k] for f in fits]), np.mean([f.terms_se[k] for f in fits])
        assert mean == pytest.approx(value, abs=2.5 * se), term
    assert np.mean([f.scatter_s for f in fits]) == pytest.approx(truth.scatter_s, rel=0.1)
    pace = np.array([fits[0].pace_s[f"driver-{car:02d}"] for car in range(12)])
    assert np.allclose(np.diff(pace), 0.15, atol=0.25)


def test_outliers_move_the_robust_fit_by_less_than_twice_its_error(synthetic_laps, truth):
    laps = synthetic_laps(truth)
    spoilt = laps.copy()
    spoilt.loc[spoilt.index % 25 == 7, "lap_time_s"] += 3.5
    plain, robust = fitted(laps), fitted(spoilt)
    assert (np.abs(plain.terms - robust.terms) < 2 * plain.terms_se).all()


def test_a_term_without_data_keeps_its_prior_and_has_infinite_error(synthetic_laps, truth):
    laps = synthetic_laps(truth)
    fit = fitted(laps[laps["compound"] != "SOFT"])
    assert fit.terms[TERMS.index("slope_soft")] == pytest.approx(0.05)
    values = term_values({"2024-testland": fit}, {"2024-testland": "testland"}).set_index("term")
    assert np.isinf(values.loc["slope_soft", "se"]) and np.isfinite(values.loc["slope_medium", "se"])


def test_laps_with_any_disturbance_are_not_clean(synthetic_laps, truth):
    laps = synthetic_laps(truth)
    laps.loc[laps["lap"] == 5, "track_status"] = "4"
    laps.loc[laps["lap"] == 9, "is_accurate"] = False
    laps.loc[laps["lap"] == 11, "compound"] = "UNKNOWN"
    laps.loc[laps["lap"] == 13, "lap_time_s"] = np.nan
    staged = stage_laps(laps)
    clean = staged.loc[staged["clean"], "lap"]
    assert not clean.isin([1, 5, 6, 9, 11, 13]).any()  # 6: the lap after the safety car
    assert clean.isin([7, 8, 10, 12]).any()
    assert not (staged["clean"] & (staged["pit_in"] | staged["pit_out"])).any()


def test_laps_behind_the_safety_car_use_less_tyre_and_fuel(synthetic_laps, truth):
    laps = synthetic_laps(truth)
    laps.loc[laps["lap"].between(3, 6), "track_status"] = "4"
    car = stage_laps(laps).query("driver == 'driver-00'").set_index("lap")
    assert car.loc[10, "age_laps"] == 9 and car.loc[10, "wear_laps"] == pytest.approx(9 - 4 * 0.75)
    assert car.loc[10, "fuel_laps"] == pytest.approx(10 - 4 * 0.5)
    assert car.loc[20, "wear_laps"] == car.loc[20, "age_laps"] == 4  # a new set starts at 0


def test_missing_tyre_ages_are_counted_from_the_stint(synthetic_laps, truth):
    laps = synthetic_laps(truth)
    with_ages, without = stage_laps(laps), stage_laps(laps.assign(tyre_age_laps=pd.NA))
    assert (with_ages["age_laps"] == without["age_laps"]).all()


def test_no_laps_and_missing_columns_are_refused(synthetic_laps, truth):
    laps = synthetic_laps(truth)
    for broken in (laps.iloc[:0], laps.drop(columns="stint")):
        with pytest.raises(CannotFit, match="wanted rows of race.laps"):
            stage_laps(broken)


def test_a_race_on_rain_tyres_is_not_dry(synthetic_laps, truth):
    laps = synthetic_laps(truth)
    laps.loc[laps["lap"] < 5, "compound"] = "INTERMEDIATE"
    assert not stage_laps(laps)["dry"].any()


def test_huber_ridge_without_data_returns_the_prior():
    empty = np.zeros(0)
    fit = huber_ridge(np.zeros((0, 1)), empty, empty.astype(int), 1, np.array([1.0, 2.0]), np.array([0.1, 0.2]))
    assert fit.coef == pytest.approx([1.0, 2.0]) and fit.se == pytest.approx([0.1, 0.2])


def test_pooling_recovers_circuits_and_shrinks_noisy_ones_to_the_mean():
    rng = np.random.default_rng(3)
    truth = {f"c{n}": 20 + 2 * rng.normal() for n in range(25)}
    rows = [(name, 2024, value + rng.normal(0, 0.5) + rng.normal(0, 0.5), 0.5)
            for name, value in truth.items() for _ in range(6)]
    rows.append(("lonely", 2024, 40.0, 5.0))
    pooled = pool(pd.DataFrame(rows, columns=["circuit", "season", "value", "se"]), 2024)
    error = np.array([(pooled.at(name)[0] - value) / pooled.at(name)[1] for name, value in truth.items()])
    assert np.sqrt(np.mean(error**2)) < 1.5
    assert pooled.circuit_sd == pytest.approx(2.0, rel=0.4)
    assert 20 < pooled.at("lonely")[0] < 32
    assert pooled.at("never raced")[0] == pytest.approx(pooled.mean)
    assert pooled.at("never raced")[1] > pooled.at("c1")[1]


def test_terms_of_real_races_have_the_known_medians(real):
    terms = real.evidence.by_race.set_index("quantity")["value"]
    assert terms["trend"].median() == pytest.approx(-0.057, abs=0.006)  # docs/physics.md#lap-time, 2022-25
    assert (terms["trend"] < 0).mean() > 0.97
    assert terms["slope_medium"].median() == pytest.approx(0.067, abs=0.02)
    assert terms["slope_hard"].median() == pytest.approx(0.045, abs=0.012)
    assert 0.28 < terms["scatter"].median() < 0.36  # in free air; .36 s over all laps
    assert terms["dirty_air"].median() == pytest.approx(0.34, abs=0.08)  # docs/physics.md#overtaking: .26 s at < 1 s


def test_errors_on_held_out_laps_meet_the_targets(real):
    errors = validate(real.evidence, real.results, real.qualifying, real.calendar, orders=False)
    assert not errors.duplicated(["weekend", "method"]).any()
    mae = errors.groupby("method")["lap_mae_s"].median()
    assert mae["laps_random_fifth"] <= 0.42
    assert mae["laps_last_quarter"] <= 0.58
    assert mae["laps_later_race"] <= 0.48
    for test in ("random_fifth", "last_quarter", "later_race"):
        assert mae[f"laps_{test}"] < 0.7 * min(mae[f"laps_{test}_driver_median"], mae[f"laps_{test}_linear"])


def test_a_prior_ignores_its_own_season(real):
    terms = term_values(real.evidence.fits, real.evidence.circuit)
    changed = terms.assign(value=terms["value"].where(terms["season"] < 2024, 9.9))
    prior, other = (TermPriors(rows, 2024).of("monza") for rows in (terms, changed))
    assert (prior.mean == other.mean).all() and (prior.sd == other.sd).all()
    assert TermPriors(terms, 2022).of("monza") is None
