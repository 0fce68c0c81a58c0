"""Stops, safety cars, passes, starts, rain: each effect separately, on synthetic and real laps."""
import numpy as np
import pandas as pd
import pytest

from f1_pipelines.calibration import incidents, overtaking, safety_cars, stops, undercut
from f1_pipelines.calibration.evidence import known_stops, track_of
from f1_pipelines.calibration.stage import stage_laps
from f1_pipelines.calibration.wet import wet_ratios
from f1_pipelines.sim.engine.parameters import GREEN, SC, VSC

pytestmark = pytest.mark.xdist_group("fits")  # the real seasons are measured once


def value(real, quantity: str) -> pd.Series:
    rows = real.evidence.by_race
    return rows[rows["quantity"] == quantity].set_index("weekend")["value"]


def test_the_loss_of_synthetic_green_stops_is_recovered(synthetic_laps, truth):
    losses = stops.stop_losses(stage_laps(synthetic_laps(truth)))
    assert set(losses["kind"]) == {"green"} and len(losses) == 12
    assert losses["loss_s"].median() == pytest.approx(truth.stop_s, abs=0.7)


def test_a_stop_under_the_safety_car_is_compared_with_cars_that_stay_out(synthetic_laps, truth):
    laps = synthetic_laps(truth)
    laps["session_time_s"] -= 12.0 * laps["driver"].str[-2:].astype(int) * 0.9  # a field close enough to compare
    laps.loc[laps["lap"].between(15, 18), "track_status"] = "4"
    losses = stops.stop_losses(stage_laps(laps)).set_index("driver")
    assert losses.loc["driver-00", "kind"] == "sc" and losses.loc["driver-01", "kind"] == "sc_later"
    assert losses.loc["driver-00", "loss_s"] == pytest.approx(truth.stop_s, abs=3.0)


def test_a_stop_missing_from_the_stop_list_is_left_out(synthetic_laps, truth):
    losses = stops.stop_losses(stage_laps(synthetic_laps(truth)))
    listed = losses[["weekend", "driver", "lap"]].iloc[1:].assign(lap=lambda rows: rows["lap"] + 1)
    assert len(known_stops(losses, listed)) == len(losses) - 1
    assert len(known_stops(losses, listed.assign(weekend="2024-elsewhere"))) == len(losses)


@pytest.mark.parametrize(("circuit", "seconds"), [
    ("bahrain", 24.2), ("monza", 25.5), ("spa-francorchamps", 18.6), ("catalunya", 23.3), ("jeddah", 20.7)])
def test_real_green_stops_cost_the_known_time(real, circuit, seconds):
    losses = real.evidence.losses
    selected = losses["weekend"].map(real.evidence.circuit).eq(circuit) & losses["kind"].eq("green")
    assert losses.loc[selected, "loss_s"].median() == pytest.approx(seconds, abs=0.6)


def test_stops_under_a_neutralisation_are_cheap(real):
    green, vsc, sc = (value(real, f"stop_{kind}").median() for kind in ("green", "vsc", "sc"))
    assert green == pytest.approx(22.7, abs=0.8)
    assert vsc / green == pytest.approx(0.66, abs=0.15) and sc / green == pytest.approx(0.61, abs=0.15)


def test_an_undercut_needs_the_follower_to_stop_first_and_excludes_slow_stops(synthetic_laps, truth):
    """Of two cars the first stops on lap 15, two laps before the other."""
    laps = synthetic_laps(truth, cars=2)
    losses, other = stops.stop_losses(stage_laps(laps)), laps["driver"] == "driver-01"
    assert undercut.undercuts(stage_laps(laps), losses).empty  # the car ahead stops first: no undercut
    behind = stage_laps(laps.assign(session_time_s=laps["session_time_s"] - 18.0 * other))
    undercuts = undercut.undercuts(behind, losses)
    assert undercuts["laps"].tolist() == [2]
    slow = losses.assign(loss_s=losses["loss_s"] + 5.0 * (losses["driver"] == "driver-01"))
    assert undercut.undercuts(behind, slow)["net_s"].iloc[0] == pytest.approx(
        undercuts["net_s"].iloc[0] - 5.0)


def test_real_undercuts_gain_more_the_later_the_other_car_stops(real):
    gain_s = undercut.undercuts(real.evidence.staged, real.evidence.losses).groupby("laps")["net_s"]
    assert gain_s.size().sum() > 100
    assert 0.5 < gain_s.median()[1] < gain_s.median()[2] < gain_s.median()[3] < 5.0


def test_real_laps_behind_the_safety_car_are_slow(real):
    ratios = safety_cars.lap_ratios(real.evidence.staged).groupby("kind")["ratio"].median()
    assert ratios["sc"] == pytest.approx(1.45, abs=0.05)
    assert ratios["vsc"] == pytest.approx(1.33, abs=0.02)
    assert ratios["vsc_ending"] == pytest.approx(1.17, abs=0.05)
    assert ratios["sc_leader"] > ratios["sc_catch"] > ratios["vsc_ending"]


def test_the_field_closes_up_behind_the_safety_car(real):
    laps = safety_cars.spread_under_sc(real.evidence.staged, real.evidence.events)
    spread = laps.groupby("lap_of_sc")["spread_s"].median()
    assert spread[0] > 60 > spread[3] > spread[-1]
    assert spread[-1] < 20


def test_periods_are_split_by_kind_and_a_vsc_that_becomes_a_safety_car_is_one():
    status = np.array([GREEN, VSC, VSC, SC, SC, GREEN, VSC, GREEN, SC])
    periods = safety_cars.periods({"w": status})
    assert periods[["kind", "first_lap", "laps"]].to_numpy().tolist() == [["sc", 4, 2], ["vsc", 7, 1], ["sc", 9, 1]]
    assert safety_cars.periods({"w": np.zeros(5, dtype=int)}).empty


def test_rates_are_shrunk_to_the_pooled_rate():
    circuits = {f"w{n}": "a" if n < 2 else "b" for n in range(10)}
    periods = pd.DataFrame({"weekend": ["w0", "w0", "w1"], "kind": "sc"})
    rates = safety_cars.event_rates(periods, circuits, "sc")
    assert rates.loc["", "value"] == pytest.approx(0.3)
    assert rates.loc["a", "value"] == pytest.approx((3 + 4 * 0.3) / 6)
    assert 0 < rates.loc["b", "value"] < 0.3


def test_the_pass_rule_is_recovered_from_synthetic_pairs():
    rng = np.random.default_rng(5)
    n = 40_000
    pairs = pd.DataFrame({"weekend": rng.choice(["2023-a", "2023-b"], n), "season": 2023,
                          "gap_s": rng.uniform(0.1, 1.5, n), "advantage_s": rng.normal(0.1, 0.7, n)})
    shift = pairs["weekend"].map({"2023-a": 0.8, "2023-b": -0.8})
    logit = -0.4 + 2.4 * pairs["advantage_s"] - 4.4 * pairs["gap_s"] + shift
    pairs["passed"] = rng.random(n) < 1 / (1 + np.exp(-logit))
    rule = overtaking.fit_pass_rule(pairs, {"2023-a": "a", "2023-b": "b"})
    coef, se = rule.of_season(2024)
    assert coef[1:] == pytest.approx([2.4, -4.4], abs=0.3) and (se < 0.6).all()
    assert rule.circuit["a"][0] - rule.circuit["b"][0] == pytest.approx(1.6, abs=0.2)
    assert rule.of_season(2019) is None and rule.auc > 0.85


def test_the_pass_rule_of_real_races_has_the_known_coefficients(real):
    rule = real.evidence.pass_rule
    coef, _ = rule.of_season(2024)
    assert coef[1] == pytest.approx(2.7, abs=0.5) and coef[2] < -3 and rule.auc > 0.9
    assert min(rule.circuit, key=lambda name: rule.circuit[name][0]) == "monaco"
    per_race = real.evidence.pairs.query("gap_s < 2").groupby("weekend")["passed"].sum()
    assert 22 < per_race.mean() < 42  # docs/physics.md#overtaking: 27-35 a race


def test_real_starts_and_retirements_have_the_known_means(real):
    starts = incidents.first_laps(real.evidence.staged, real.results)
    # docs/physics.md#first-lap: 1.78
    assert incidents.places_by_race(starts)["value"].mean() == pytest.approx(1.7, abs=0.2)
    assert incidents.first_lap_loss_by_race(real.evidence.staged, starts)["value"].median() == pytest.approx(2.2, abs=1)
    by_season = real.evidence.retirements.assign(season=lambda rows: rows["weekend"].str[:4]).groupby("season")[
        ["accident", "mechanical"]].mean()
    assert by_season.loc["2022"].sum() == pytest.approx(0.141, abs=0.01)
    assert by_season.loc["2024", "accident"] == pytest.approx(0.055, abs=0.01)


def test_real_lap_noise_is_autocorrelated_with_a_heavy_upper_tail(real):
    evidence = real.evidence
    clean = evidence.staged[evidence.staged["clean"] & evidence.staged["weekend"].isin(list(evidence.fits))]
    shape = incidents.noise_shape(incidents.residuals(clean, evidence.fits))
    assert shape["carry"] == pytest.approx(0.42, abs=0.07)
    assert shape["lose_1s"] > 3 * shape["gain_1s"]


def test_laps_on_rain_tyres_are_slower_by_the_known_ratios(real):
    ratio = wet_ratios(real.evidence.staged, real.evidence.circuit).groupby("compound")["ratio"].median()
    assert ratio["INTERMEDIATE"] == pytest.approx(1.13, abs=0.03)
    assert ratio["WET"] > ratio["INTERMEDIATE"]


def test_bahrains_outer_layout_is_a_separate_track():
    calendar = pd.DataFrame({"weekend": ["2020-bahrain", "2020-sakhir", "2021-bahrain", "2026-x"],
                             "circuit": ["bahrain", "bahrain", "bahrain", "new"],
                             "layout": ["bahrain-1", "bahrain-3", "bahrain-1", "new-1"]})
    assert list(track_of(calendar).values()) == ["bahrain", "bahrain/bahrain-3", "bahrain", "new"]
