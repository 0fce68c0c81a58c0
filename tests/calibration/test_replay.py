"""Replays use their real inputs, beat the baselines, and forecasts use nothing of the race itself."""
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from f1_pipelines.calibration.distributions import compare_events, free_events, measures
from f1_pipelines.calibration.pace_forecast import FEATURES, forecast_pace, qualifying_gaps, race_pace, with_form
from f1_pipelines.calibration.replay import NOISE_FREE, REPLAY_ENGINE, replay
from f1_pipelines.calibration.scores import order_scores
from f1_pipelines.calibration.simulated_laps import simulated_laps
from f1_pipelines.calibration.stage import stage_laps
from f1_pipelines.calibration.validation import own_circuit, pace_of, race_rows, replayable, summarise
from f1_pipelines.sim import CircuitParameters
from f1_pipelines.sim.engine.parameters import SC
from f1_pipelines.sim.engine.state import OUT_S
from f1_pipelines.tables.sim import VALIDATION

pytestmark = pytest.mark.xdist_group("fits")  # the real seasons are measured once
EPISODES = 12


@pytest.fixture(scope="module")
def races(real):
    """Replayable races of 2023 and 2024 with their inputs."""
    return list(replayable(real.evidence, real.results, real.qualifying, real.calendar))


@pytest.fixture(scope="module")
def rows(races):
    frame = pd.DataFrame([row for case in races for row in race_rows(case, EPISODES)])
    return VALIDATION.conform(frame.reindex(columns=VALIDATION.column_names))


@pytest.fixture(scope="module")
def bahrain(races):
    return next(case for case in races if case.real.weekend == "2024-bahrain")


def test_the_dry_races_without_a_red_flag_are_replayed(races, real):
    keys = [case.real.weekend for case in races]
    assert len(keys) == len(set(keys)) == 36
    red_flagged = set(real.evidence.staged.loc[real.evidence.staged["red"], "weekend"])
    assert not set(keys) & red_flagged and "2024-monaco" in red_flagged and "2024-sao-paulo" not in keys


def test_orders_meet_their_targets_and_beat_the_baselines(rows):
    summary = summarise(rows)
    means = summary[summary["races"] == "all"].set_index("method")
    for method, spearman, places_off, baseline in (("replay_fitted", 0.94, 1.0, "pace_rank"),
                                                   ("replay_half", 0.92, 1.2, "half_order"),
                                                   ("replay_ex_ante", 0.87, 1.8, "ex_ante_rank")):
        assert means.loc[method, "spearman"] >= spearman and means.loc[method, "places_off"] <= places_off
        assert means.loc[method, "spearman"] > means.loc[baseline, "spearman"]
        assert means.loc[method, "spearman"] > means.loc["grid", "spearman"]
    assert means.loc["replay_fitted_lap_1", "places_off"] < means.loc["replay_fitted", "places_off"]
    assert means.loc["replay_fitted", "target_places_off"] == 1.0
    assert rows["real_inputs"].str.len().min() >= 4


def test_a_replay_uses_the_real_stops_and_compounds(bahrain):
    real, circuit = bahrain.real, own_circuit(bahrain.circuit, bahrain.real, bahrain.fit)
    result = replay(real, circuit, pace_of(real, bahrain.fit), EPISODES)
    laps = simulated_laps(result, real, 0)
    real_stops = bahrain.laps[bahrain.laps["pit_in"] & bahrain.laps["driver"].isin(real.drivers)]
    stops = laps[laps["is_pit_in"]]
    assert set(zip(stops["driver"], stops["lap"], strict=True)) <= set(
        zip(real_stops["driver"], real_stops["lap"], strict=True))
    assert len(stops) >= len(real_stops) - real.stopped.sum() - 1
    merged = laps.merge(bahrain.laps, on=["driver", "lap"], suffixes=("", "_real"))
    assert (merged["compound"] == merged["compound_real"]).mean() > 0.99
    assert (np.sort(result.place, axis=1) == np.arange(1, len(real.drivers) + 1)).all()


def test_a_retired_car_stays_out(bahrain):
    real = bahrain.real
    for done, driven in ((10, 9), (0, 0)):  # the engine retires a car at the line of its last lap
        third = np.arange(len(real.drivers)) == 2
        retired = replace(real, stopped=third, laps_done=np.where(third, done, real.laps))
        line = replay(retired, bahrain.circuit, np.zeros(len(real.drivers)), 3).line_s
        assert (line[driven + 1:, :, 2] > 0.5 * OUT_S).all() and (line[:driven + 1, :, 2] < 0.5 * OUT_S).all()
        assert (line[-1, :, 3] < 0.5 * OUT_S).all()


def test_a_noise_free_replay_is_deterministic(bahrain):
    pace = pace_of(bahrain.real, bahrain.fit)
    lines = [replay(bahrain.real, bahrain.circuit, pace, 1, first=5, engine=engine).line_s
             for engine in (NOISE_FREE, NOISE_FREE, REPLAY_ENGINE)]
    assert (lines[0] == lines[1]).all() and (lines[0] != lines[2]).any()


def test_a_replay_from_mid_race_starts_with_the_real_gaps(bahrain):
    real = bahrain.real
    line = replay(real, bahrain.circuit, pace_of(real, bahrain.fit), 2, first=20).line_s
    running = np.isfinite(real.line_s[19])
    gaps = real.line_s[19, running] - np.nanmin(real.line_s[19])
    assert line[0, 0, running] == pytest.approx(gaps, abs=1e-3)


def test_the_real_finish_does_not_change_a_replay(bahrain):
    """Replays are scored against the finish, so it must not be an input."""
    pace, real = pace_of(bahrain.real, bahrain.fit), bahrain.real
    other = replace(real, finish=np.where(real.finishers, real.finish[::-1], np.nan))
    assert (replay(real, bahrain.circuit, pace, 3).place == replay(other, bahrain.circuit, pace, 3).place).all()


def test_only_finishers_are_scored():
    finish = np.array([2.0, 1.0, np.nan, 3.0])
    assert order_scores(np.array([2.0, 1.0, 0.0, 3.0]), finish) == {
        "spearman": pytest.approx(1.0), "places_off": 0.0, "winner_right": 1.0}
    assert order_scores(np.array([1.0, 2.0, 0.0, 3.0]), finish)["places_off"] == pytest.approx(2 / 3)


def forecasts(real, paces: pd.DataFrame, season: int, **form) -> pd.Series:
    starters = real.results[real.results["grid_position"].notna()][["weekend", "driver", "constructor"]].astype(object)
    qualifying = real.qualifying.astype({"weekend": object, "driver": object})
    order = sorted(real.evidence.race_order, key=real.evidence.race_order.get)
    frame = with_form(qualifying_gaps(qualifying, starters, order), paces, **form)
    rows = frame.assign(forecast=forecast_pace(frame, season)).dropna(subset=["forecast"])
    return rows.set_index(["weekend", "driver"])["forecast"]


def test_a_forecast_ignores_its_race_and_later_ones(real):
    paces = race_pace(real.evidence.fits)
    order = real.evidence.race_order
    late = paces["weekend"].map(order) >= order["2024-italy"]
    changed_paces = paces.assign(pace_pct=paces["pace_pct"].mask(late, -paces["pace_pct"]))
    original, changed = (forecasts(real, rows, 2024) for rows in (paces, changed_paces))
    pd.testing.assert_series_equal(original.loc["2024-italy"], changed.loc["2024-italy"])
    assert (original.loc["2024-azerbaijan"] != changed.loc["2024-azerbaijan"]).any()  # the next race uses Monza
    season = paces["weekend"].str.startswith("2024")
    original, changed = (forecasts(real, rows, 2024, earlier_seasons_only=True)
                         for rows in (paces, paces.assign(pace_pct=paces["pace_pct"].mask(season, 1.0))))
    pd.testing.assert_series_equal(original, changed)


def test_forecasts_correlate_with_real_pace(real):
    paces = race_pace(real.evidence.fits).set_index(["weekend", "driver"])["pace_pct"]
    forecast = forecasts(real, paces.reset_index(), 2024)
    both = pd.DataFrame({"forecast": forecast, "pace": paces}).dropna()
    spearman = both.groupby("weekend").apply(lambda race: race["forecast"].corr(race["pace"], "spearman"))
    assert spearman.mean() > 0.82  # docs/physics.md#replay: .87 over all seasons
    assert len(FEATURES) == 4
    with pytest.raises(ValueError, match="2022: fewer than"):
        forecasts(real, paces.reset_index(), 2022)


def test_measures_of_simulated_laps_are_close_to_those_of_real_laps(races, real):
    cases, laps = races[:8], []
    for case in cases:
        circuit = own_circuit(case.circuit, case.real, case.fit)
        laps.append(simulated_laps(replay(case.real, circuit, pace_of(case.real, case.fit), 1), case.real, 0))
    real_rows = measures(pd.concat([case.laps for case in cases]), real.results)
    simulated_rows = measures(stage_laps(pd.concat(laps, ignore_index=True)), real.results)
    expected, simulated = (rows.groupby("quantity")["value"].mean() for rows in (real_rows, simulated_rows))
    for quantity, tolerance in (("passes per race, gap < 1.5 s", {"rel": 0.5}),
                                ("stop loss green, median, s", {"abs": 1.5}), ("lap under SC, x green", {"abs": 0.12})):
        assert simulated[quantity] == pytest.approx(expected[quantity], **tolerance), quantity


def test_simulated_and_real_events_are_counted():
    quiet = CircuitParameters(race_laps=20, sc_per_race=0.0, vsc_per_race=0.0, red_per_race=0.0)
    busy = replace(quiet, sc_per_race=2.0)
    assert free_events(quiet, 50)["sc per race"] == 0.0
    assert 0.5 < free_events(busy, 50)["sc per race"] < 4.0
    retired = pd.DataFrame({"weekend": ["2024-a"] * 20, "accident": [True] + [False] * 19, "mechanical": False})
    events = pd.DataFrame({"weekend": ["2024-a"], "kind": ["sc"], "laps": [4]})
    real = {row[1]: row[2] for row in compare_events(events, retired, {"2024-a": "here"}, {"here": quiet})
            if row[0] == "all"}
    assert real["sc per race"] == 1.0 and real["laps of a sc"] == 4.0 and real["retirements per car"] == 0.05


def test_a_real_safety_car_has_its_length(races):
    miami = next(case for case in races if case.real.weekend == "2024-miami")
    assert 4 <= (miami.real.status == SC).sum() <= 7
