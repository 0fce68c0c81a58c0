"""Replays: what is given is really taken, better than the baselines, and nothing of a race leaks into its forecast."""
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from f1_pipelines.calibration.distributions import compare_events, free_events, measures
from f1_pipelines.calibration.pace_forecast import FEATURES, forecast_pace, qualifying_gaps, race_pace, with_form
from f1_pipelines.calibration.replay import REPLAY_ENGINE, NOISE_FREE, replay
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
    """Replayable races of 2023 and 2024, with what was known of each."""
    return list(replayable(real.evidence, real.results, real.qualifying, real.calendar))


@pytest.fixture(scope="module")
def rows(races):
    frame = pd.DataFrame([row for known in races for row in race_rows(known, EPISODES)])
    return VALIDATION.conform(frame.reindex(columns=VALIDATION.column_names))


@pytest.fixture(scope="module")
def bahrain(races):
    return next(known for known in races if known.real.weekend == "2024-bahrain")


def test_the_dry_races_without_a_red_flag_are_replayed(races, real):
    keys = [known.real.weekend for known in races]
    assert len(keys) == len(set(keys)) == 36
    stopped = set(real.evidence.staged.loc[real.evidence.staged["red"], "weekend"])
    assert not set(keys) & stopped and "2024-monaco" in stopped and "2024-sao-paulo" not in keys


def test_orders_are_as_good_as_asked_and_better_than_the_baselines(rows):
    summary = summarise(rows)
    means = summary[summary["races"] == "all"].set_index("method")
    for method, spearman, off, baseline in (("replay_fitted", 0.94, 1.0, "pace_rank"),
                                            ("replay_half", 0.92, 1.2, "half_order"),
                                            ("replay_ex_ante", 0.87, 1.8, "ex_ante_rank")):
        assert means.loc[method, "spearman"] >= spearman and means.loc[method, "places_off"] <= off
        assert means.loc[method, "spearman"] > means.loc[baseline, "spearman"]
        assert means.loc[method, "spearman"] > means.loc["grid", "spearman"]
    assert means.loc["replay_fitted_lap_1", "places_off"] < means.loc["replay_fitted", "places_off"]
    assert means.loc["replay_fitted", "target_places_off"] == 1.0
    assert rows["real_inputs"].str.len().min() >= 4


def test_a_replay_takes_what_it_is_given(bahrain):
    real, circuit = bahrain.real, own_circuit(bahrain.circuit, bahrain.real, bahrain.fit)
    result = replay(real, circuit, pace_of(real, bahrain.fit), EPISODES)
    laps = simulated_laps(result, real, 0)
    given = bahrain.laps[bahrain.laps["pit_in"] & bahrain.laps["driver"].isin(real.drivers)]
    ours = laps[laps["is_pit_in"]]
    assert set(zip(ours["driver"], ours["lap"], strict=True)) <= set(zip(given["driver"], given["lap"], strict=True))
    assert len(ours) >= len(given) - real.stopped.sum() - 1
    merged = laps.merge(bahrain.laps, on=["driver", "lap"], suffixes=("", "_real"))
    assert (merged["compound"] == merged["compound_real"]).mean() > 0.99
    assert (np.sort(result.place, axis=1) == np.arange(1, len(real.drivers) + 1)).all()


def test_a_car_that_stopped_stays_out(bahrain):
    real = bahrain.real
    for done, driven in ((10, 9), (0, 0)):  # the line of the last lap is where the engine takes a car out
        third = np.arange(len(real.drivers)) == 2
        gone = replace(real, stopped=third, laps_done=np.where(third, done, real.laps))
        line = replay(gone, bahrain.circuit, np.zeros(len(real.drivers)), 3).line_s
        assert (line[driven + 1:, :, 2] > 0.5 * OUT_S).all() and (line[:driven + 1, :, 2] < 0.5 * OUT_S).all()
        assert (line[-1, :, 3] < 0.5 * OUT_S).all()


def test_without_noise_and_given_its_own_order_a_replay_is_the_same_every_time(bahrain):
    pace = pace_of(bahrain.real, bahrain.fit)
    lines = [replay(bahrain.real, bahrain.circuit, pace, 1, first=5, engine=engine).line_s
             for engine in (NOISE_FREE, NOISE_FREE, REPLAY_ENGINE)]
    assert (lines[0] == lines[1]).all() and (lines[0] != lines[2]).any()


def test_a_race_joined_under_way_starts_from_its_real_gaps(bahrain):
    real = bahrain.real
    line = replay(real, bahrain.circuit, pace_of(real, bahrain.fit), 2, first=20).line_s
    seen = np.isfinite(real.line_s[19])
    gaps = real.line_s[19, seen] - np.nanmin(real.line_s[19])
    assert line[0, 0, seen] == pytest.approx(gaps, abs=1e-3)


def test_the_real_finish_does_not_move_a_replay(bahrain):
    """The finish is what a replay is judged by: it must not be an input."""
    pace, real = pace_of(bahrain.real, bahrain.fit), bahrain.real
    blind = replace(real, finish=np.where(real.finishers, real.finish[::-1], np.nan))
    assert (replay(real, bahrain.circuit, pace, 3).place == replay(blind, bahrain.circuit, pace, 3).place).all()


def test_scores_are_those_of_the_finishers():
    finish = np.array([2.0, 1.0, np.nan, 3.0])
    assert order_scores(np.array([2.0, 1.0, 0.0, 3.0]), finish) == {
        "spearman": pytest.approx(1.0), "places_off": 0.0, "winner_right": 1.0}
    assert order_scores(np.array([1.0, 2.0, 0.0, 3.0]), finish)["places_off"] == pytest.approx(2 / 3)


def forecasts(real, paces: pd.DataFrame, season: int, **form) -> pd.Series:
    starters = real.results[real.results["grid_position"].notna()][["weekend", "driver", "constructor"]].astype(object)
    qualifying = real.qualifying.astype({"weekend": object, "driver": object})
    order = sorted(real.evidence.race_order, key=real.evidence.race_order.get)
    frame = with_form(qualifying_gaps(qualifying, starters, order), paces, **form)
    guessed = frame.assign(guess=forecast_pace(frame, season)).dropna(subset=["guess"])
    return guessed.set_index(["weekend", "driver"])["guess"]


def test_a_forecast_knows_nothing_of_the_race_or_of_later_ones(real):
    paces = race_pace(real.evidence.fits)
    order = real.evidence.race_order
    late = paces["weekend"].map(order) >= order["2024-italy"]
    other = paces.assign(pace_pct=paces["pace_pct"].mask(late, -paces["pace_pct"]))
    told, again = (forecasts(real, rows, 2024) for rows in (paces, other))
    at_monza = told.loc["2024-italy"]
    pd.testing.assert_series_equal(at_monza, again.loc["2024-italy"])
    assert (told.loc["2024-azerbaijan"] != again.loc["2024-azerbaijan"]).any()  # the next race does know Monza
    season = paces["weekend"].str.startswith("2024")
    frozen, still = (forecasts(real, rows, 2024, earlier_seasons_only=True)
                     for rows in (paces, paces.assign(pace_pct=paces["pace_pct"].mask(season, 1.0))))
    pd.testing.assert_series_equal(frozen, still)


def test_a_forecast_is_about_as_good_as_measured(real):
    paces = race_pace(real.evidence.fits).set_index(["weekend", "driver"])["pace_pct"]
    guess = forecasts(real, paces.reset_index(), 2024)
    both = pd.DataFrame({"guess": guess, "pace": paces}).dropna()
    spearman = both.groupby("weekend").apply(lambda race: race["guess"].corr(race["pace"], "spearman"))
    assert spearman.mean() > 0.82  # docs/physics.md#replay: .87 over all seasons
    assert len(FEATURES) == 4
    with pytest.raises(ValueError, match="2022: fewer than"):
        forecasts(real, paces.reset_index(), 2022)


def test_simulated_laps_are_measured_like_real_ones(races, real):
    some = races[:8]
    real_ones = measures(pd.concat([known.laps for known in some]), real.results)
    simulated = []
    for known in some:
        circuit = own_circuit(known.circuit, known.real, known.fit)
        simulated.append(simulated_laps(replay(known.real, circuit, pace_of(known.real, known.fit), 1), known.real, 0))
    ours = measures(stage_laps(pd.concat(simulated, ignore_index=True)), real.results)
    theirs, ours = (rows.groupby("quantity")["value"].mean() for rows in (real_ones, ours))
    assert ours["passes per race, gap < 1.5 s"] == pytest.approx(theirs["passes per race, gap < 1.5 s"], rel=0.5)
    assert ours["stop loss green, median, s"] == pytest.approx(theirs["stop loss green, median, s"], abs=1.5)
    assert ours["lap under SC, x green"] == pytest.approx(theirs["lap under SC, x green"], abs=0.12)


def test_events_are_counted_as_real_ones_are():
    quiet = CircuitParameters(race_laps=20, sc_per_race=0.0, vsc_per_race=0.0, red_per_race=0.0)
    busy = replace(quiet, sc_per_race=2.0)
    assert free_events(quiet, 50)["sc per race"] == 0.0
    assert 0.5 < free_events(busy, 50)["sc per race"] < 4.0
    retired = pd.DataFrame({"weekend": ["2024-a"] * 20, "accident": [True] + [False] * 19, "mechanical": False})
    events = pd.DataFrame({"weekend": ["2024-a"], "kind": ["sc"], "laps": [4]})
    told = {row[1]: row[2] for row in compare_events(events, retired, {"2024-a": "here"}, {"here": quiet})
            if row[0] == "all"}
    assert told["sc per race"] == 1.0 and told["laps of a sc"] == 4.0 and told["retirements per car"] == 0.05


def test_a_safety_car_is_where_it_was(races):
    known = next(k for k in races if k.real.weekend == "2024-miami")
    assert 4 <= (known.real.status == SC).sum() <= 7
