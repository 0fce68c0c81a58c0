"""Tyres, fuel, water, failures and the rules: what happens to one car."""
from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from f1_pipelines.sim.engine import weather
from f1_pipelines.sim.engine.drive import (
    CONSERVE,
    FUEL_SAVE,
    MODES,
    PUSH,
    RACE,
    TEMP_COOL,
    TEMP_WARM,
    TYRE_SAVE,
    Calls,
    drive_code,
)
from f1_pipelines.sim.engine.parameters import HARD, INTER, MEDIUM, SC, SOFT, WET, CircuitParameters, describe
from f1_pipelines.sim.engine.priors import circuit_prior, prior_rows
from f1_pipelines.sim.engine.race import prepare
from f1_pipelines.sim.engine.results import DISQUALIFIED, FINISHED, RETIRED, check_race, classify, explain
from f1_pipelines.sim.engine.setup import BadSetup, RaceSetup
from f1_pipelines.sim.engine.state import ACCIDENT, OUT_OF_FUEL, new_state
from f1_pipelines.sim.engine.step import BadCall, RaceOver, run, step

GREEN_10 = np.zeros((1, 10), int)


def driven(setup, **code) -> list:
    """States of a race in which every car has the same drive."""
    drive = drive_code(**code) + np.zeros((len(setup.seeds), np.shape(setup.car_pace_s)[-1]), dtype=int)
    return run(setup, lambda race, state: Calls(drive=drive), record=True)


def test_every_parameter_has_a_unit_and_a_source():
    rows = describe()
    assert len(rows) > 70
    assert all(row["unit"] and row["source"] for row in rows)
    assert len({row["name"] for row in rows}) == len(rows)


def test_circuits_without_laps_get_a_marked_prior():
    assert len(prior_rows()) == 27
    assert circuit_prior("monaco").provenance == "circuit_prior"
    for nowhere in ("madring", "sepang", "not-a-circuit"):
        prior = circuit_prior(nowhere, 2026)
        assert prior.provenance == "prior"
        assert prior.circuit == nowhere
        assert prior.base_lap_s == pytest.approx(89.4)
    assert circuit_prior("silverstone", 2026).base_lap_s > circuit_prior("silverstone", 2025).base_lap_s
    assert circuit_prior("monaco").pass_circuit < -3 < circuit_prior("monza").pass_circuit


def test_wear_slows_and_then_the_cliff_comes(quiet, quiet_circuit):
    circuit = replace(quiet_circuit, cliff_laps=(8.0, 30.0, 40.0, 30.0, 30.0))
    setup = quiet((0.0, 40.0), laps=14, circuit=circuit, start_compound=np.array([[SOFT, MEDIUM]]),
                  status=np.zeros((1, 14), int))
    race = prepare(setup)
    history = run(race, record=True)
    effects = [explain(race, s) for s in history[:-1]]
    wear = np.array([e["wear"][0] for e in effects])
    cliff = np.array([e.get("cliff", np.zeros((1, 2)))[0] for e in effects])
    assert (np.diff(wear[:7, 0]) > 0).all()
    assert wear[6, 0] == pytest.approx(6 * 0.076, rel=0.05)
    assert (cliff[:6] == 0).all()
    assert cliff[12, 0] > 2.5
    assert cliff[12, 1] == 0


def test_tyres_fail_past_their_cliff(quiet, quiet_circuit):
    circuit = replace(quiet_circuit, cliff_laps=(8.0, 8.0, 40.0, 30.0, 30.0))
    setup = quiet(tuple(np.arange(4) * 30.0), laps=20, circuit=circuit, seeds=np.arange(200),
                  status=np.zeros((1, 20), int), car_pace_s=np.zeros((200, 4)))
    history = run(setup, record=True)
    first = np.stack([s.stops for s in history])
    assert (first[8] == 0).all()  # fresh tyres don't fail
    assert 0.65 < (first[18] > 0).mean() < 0.9
    hit = np.argwhere((first[13] > 0) & (first[12] == 0))[0]
    lap = [s.elapsed_s[tuple(hit)] for s in history]
    assert lap[13] - lap[12] > 120  # a slow lap to the pits, and the stop
    assert history[13].compound[tuple(hit)] == HARD


def test_modes_trade_pace_for_tyres_and_fuel(quiet):
    setup = quiet((0.0, 40.0), status=GREEN_10)
    end = {mode: driven(setup, mode=mode)[6] for mode in range(len(MODES))}
    pace, wear, fuel = ({mode: float(getattr(s, name)[0, 0]) for mode, s in end.items()}
                        for name in ("elapsed_s", "wear_laps", "fuel_kg"))
    assert pace[PUSH] < pace[RACE] < min(pace[CONSERVE], pace[FUEL_SAVE], pace[TYRE_SAVE])
    assert wear[TYRE_SAVE] < wear[CONSERVE] < wear[RACE] < wear[PUSH]
    assert fuel[PUSH] < fuel[RACE] < fuel[CONSERVE] < fuel[FUEL_SAVE]


def test_fuel_is_mass_and_can_run_out(quiet):
    light, heavy = (run(quiet((0.0, 60.0), status=GREEN_10, start_fuel_kg=kg)) for kg in (20.0, 60.0))
    assert heavy.elapsed_s[0, 0] - light.elapsed_s[0, 0] == pytest.approx(10 * 40 * 0.03, rel=1e-6)
    burn = CircuitParameters().fuel_burn_kg_per_lap
    setup = quiet((0.0, 60.0), status=GREEN_10, start_fuel_kg=9.7 * burn, two_compound_rule=False)
    race = prepare(setup)
    short = classify(race, run(race))
    assert short.status[0, 0] == FINISHED  # coasts to the flag
    saved = driven(setup, mode=FUEL_SAVE)[-1]
    assert saved.fuel_kg[0, 0] > 0.5 * burn
    assert run(race).elapsed_s[0, 0] > saved.elapsed_s[0, 0] + 5
    dry = driven(replace(setup, start_fuel_kg=6.2 * burn), mode=RACE)[-1]
    assert dry.out[0].tolist() == [OUT_OF_FUEL] * 2
    assert dry.out_lap[0].tolist() == [7] * 2


def test_tyre_temperature_can_be_managed(quiet):
    hot = quiet((0.0, 60.0), status=GREEN_10, track_heat_c=18.0)
    usual, cooled = driven(hot), driven(hot, temp=TEMP_COOL)
    assert cooled[8].temp_c[0, 0] < usual[8].temp_c[0, 0] - 8
    assert cooled[8].wear_laps[0, 0] < usual[8].wear_laps[0, 0]
    assert cooled[8].elapsed_s[0, 0] < usual[8].elapsed_s[0, 0]
    mild = quiet((0.0, 60.0), status=GREEN_10)
    assert driven(mild, temp=TEMP_COOL)[8].elapsed_s[0, 0] > driven(mild)[8].elapsed_s[0, 0]
    restart = np.zeros((1, 10), int)
    restart[0, 2:5] = SC
    behind = quiet((0.0, 60.0), status=restart)
    cold, warm = driven(behind), driven(behind, temp=TEMP_WARM)
    assert cold[5].temp_c[0, 0] < warm[5].temp_c[0, 0] < 0
    assert np.subtract(*[s[6].elapsed_s[0, 0] - s[5].elapsed_s[0, 0] for s in (cold, warm)]) > 0


def test_each_tyre_is_best_at_its_wetness():
    def best(wetness: float) -> int:
        return min((SOFT, INTER, WET), key=lambda compound: weather.lap_ratio(compound, wetness))

    assert [best(wetness) for wetness in (0.0, 0.1, 0.24, 0.26, 0.5, 0.78, 0.82, 1.0)] == [
        SOFT, SOFT, SOFT, INTER, INTER, INTER, WET, WET]
    crossover = weather.SLICK_INTER_CROSSOVER
    assert weather.lap_ratio(SOFT, crossover) == pytest.approx(1.115, abs=0.01)  # measured: the field switches at 1.12
    assert weather.lap_ratio(INTER, crossover) == pytest.approx(1.112, abs=0.01)
    assert weather.lap_ratio(INTER, weather.INTER_WET_CROSSOVER) == pytest.approx(1.27, abs=0.01)


def test_rain_soaks_quickly_and_dries_slowly():
    rain = np.r_[np.zeros(2), np.full(4, 0.6), np.zeros(10)][:, None]
    wet = weather.wetness_by_lap(rain, np.zeros(1))[:, 0]
    assert wet[1] == 0
    assert wet[5] > 0.5
    assert 0.1 < wet[10] < 0.3
    assert (np.diff(wet[5:]) < 0).all()
    shower = weather.showers(np.arange(300), 50, 0.4)
    assert 0.25 < (shower.max(axis=0) > 0).mean() < 0.45
    assert shower.min() >= 0
    assert shower.max() <= 1


def test_the_right_tyre_wins_in_the_wet_and_loses_in_the_dry(quiet):
    both = np.array([[SOFT, INTER]])
    for rain, winner in ((0.5, 1), (0.0, 0)):
        setup = quiet((0.0, 1.0), start_compound=both, rain=np.full((1, 10), rain), start_wetness=rain,
                      status=GREEN_10)
        assert run(setup).position[0, winner] == 1
    dry = run(quiet((0.0, 1.0), start_compound=both, status=GREEN_10))  # also in a setup without rain
    assert dry.elapsed_s[0, 1] - dry.elapsed_s[0, 0] > 50


def test_the_two_compound_rule_is_for_dry_races(quiet):
    stay, stop = -1, MEDIUM
    calls = Calls(pit=np.array([[stay, HARD, stop]]))
    dry = quiet((0.0, 40.0, 80.0), status=GREEN_10)
    wet = replace(dry, rain=np.eye(1, 10, 4))
    waived = replace(dry, two_compound_rule=False)
    broke = [DISQUALIFIED, FINISHED, DISQUALIFIED]
    for setup, statuses in ((dry, broke), (wet, [FINISHED] * 3), (waived, [FINISHED] * 3)):
        race = prepare(setup)
        state = run(race, lambda race, state: calls if state.lap == 4 else Calls())
        result = classify(race, state)
        assert result.status[0].tolist() == statuses
        if setup is dry:
            assert result.position[0].tolist() == [2, 1, 3]
            assert result.classified[0].tolist() == [False, True, False]


def test_retired_cars_do_not_change():
    setup = RaceSetup((circuit_prior("baku"),), np.arange(300), np.linspace(-1, 1, 20), race_laps=20,
                      accident_scale=4.0)
    race = prepare(setup)
    history = run(race, lambda race, state: Calls(pit=np.where(state.age_laps > 7, HARD, -1)), record=True)
    assert check_race(race, history) == []
    end = history[-1]
    assert (end.out == ACCIDENT).any()
    for before, after in zip(history, history[1:], strict=False):
        retired = ~before.running
        for name in ("elapsed_s", "compound", "stops", "out", "out_lap", "used"):
            assert np.array_equal(getattr(before, name)[retired], getattr(after, name)[retired])
    result = classify(race, end)
    out = result.status == RETIRED
    assert (result.laps[out] == end.out_lap[out] - 1).all()
    worst_finisher = np.where(out, 0, result.position).max(axis=1)
    assert (np.where(out, result.position, 99).min(axis=1) > worst_finisher).all()
    assert 0.1 < (end.out > 0).mean() < 0.35


def test_retirements_and_closed_tracks_come_as_often_as_measured():
    setup = RaceSetup((CircuitParameters(),), np.arange(600), np.linspace(-1, 1, 20))
    race = prepare(setup)
    history = run(race, lambda race, state: Calls(pit=np.where(state.age_laps == 28, HARD, -1)), record=True)
    assert (history[-1].out > 0).mean() == pytest.approx(0.11, abs=0.02)
    status = np.stack([s.status for s in history[:-1]])
    begun = np.diff(status == SC, axis=0, prepend=False) & (status == SC)
    assert begun.sum() / 600 == pytest.approx(0.75, abs=0.12)
    assert (status == SC).any(axis=0).mean() == pytest.approx(0.57, abs=0.09)


def test_lap_and_stop_scatter_are_those_of_real_races():
    circuit = CircuitParameters(lap_scatter_s=0.36)
    race = prepare(RaceSetup((circuit,), np.arange(500), np.zeros(20), race_laps=30))
    lap, stop_s = race.tables.lap_of_car["noise_s"], race.tables.lap_of_car["stop_s"]
    assert abs(np.median(lap)) < 0.08
    assert np.median(np.abs(lap - np.median(lap))) * 1.4826 == pytest.approx(0.36, abs=0.06)
    assert (lap > 1).mean() == pytest.approx(0.064, abs=0.02)  # measured: 6.4 % lose more than a second
    assert (lap < -1).mean() == pytest.approx(0.013, abs=0.008)  # and 1.3 % gain one
    assert np.corrcoef(np.clip(lap[1:], -1, 1).ravel(), np.clip(lap[:-1], -1, 1).ravel())[0, 1] > 0.3
    assert (stop_s > 3).mean() == pytest.approx(0.10, abs=0.03)
    assert (stop_s > 6).mean() == pytest.approx(0.046, abs=0.02)
    assert stop_s.min() >= -2.5  # no stop is free: the shortest real loss is 18.6 s


def test_bad_setups_say_what_is_wrong():
    good = RaceSetup((CircuitParameters(),), np.arange(2), np.zeros(3), race_laps=5)
    for change, word in (({"grid": np.array([1, 1, 2])}, "grid"), ({"race_laps": 0}, "race_laps"),
                         ({"car_numbers": np.array([4, 4, 5])}, "car_numbers"), ({"rain": np.zeros((2, 4))}, "rain"),
                         ({"status": np.full((2, 5), 9)}, "status"), ({"start_compound": 7}, "compound"),
                         ({"start_gap_s": np.zeros(3)}, "start_gap_s"), ({"seeds": np.array([-1, 2])}, "seeds"),
                         ({"car_pace_s": np.array([0.0, np.nan, 1.0])}, "car_pace_s")):
        with pytest.raises(BadSetup, match=word):
            prepare(replace(good, **change))
    race = prepare(good)
    start, no_call = step(race, new_state(race)), np.full((2, 3), -1)
    for name, value in (("pit", 5), ("hold_gap", 3), ("let_by", 3)):
        call = no_call.copy()
        call[1, 2] = value
        with pytest.raises(BadCall, match=name):
            step(race, start, Calls(**{name: call}))
    with pytest.raises(RaceOver, match="after 5 laps"):
        step(race, run(race))
