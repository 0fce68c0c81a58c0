"""Traffic, the start, stops, safety cars: what happens between cars."""
from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from f1_pipelines.sim.engine.drive import NO_CALLS, Calls, drive_code
from f1_pipelines.sim.engine.parameters import HARD, RED, SC, SOFT, VSC, CircuitParameters, EngineParameters
from f1_pipelines.sim.engine.priors import circuit_prior
from f1_pipelines.sim.engine.race import prepare
from f1_pipelines.sim.engine.results import classify, explain
from f1_pipelines.sim.engine.setup import RaceSetup
from f1_pipelines.sim.engine.state import new_state
from f1_pipelines.sim.engine.step import run, step


def trace(laps: int, **statuses: tuple[int, ...]) -> np.ndarray:
    """Statuses (1, L): green except in the given laps, counted from 1: `trace(10, sc=(3, 4))`."""
    status = np.zeros((1, laps), dtype=int)
    for name, at in statuses.items():
        status[0, np.array(at) - 1] = {"vsc": VSC, "sc": SC, "red": RED}[name]
    return status


def pit(*compounds: int) -> Calls:
    return Calls(pit=np.array([compounds]))


def lap_times(setup, calls=None) -> np.ndarray:
    """Lap times of one race, (L, N); `calls` by lap from 1."""
    calls = calls or {}
    history = run(setup, lambda race, state: calls.get(state.lap + 1, Calls()), record=True)
    return np.diff(np.stack([s.elapsed_s[0] for s in history]), axis=0)


def test_a_lap_time_is_the_sum_of_its_effects(eventful, busy):
    race = prepare(eventful(40))
    history = run(race, busy, record=True)
    seen = set()
    for before, after in zip(history, history[1:], strict=False):
        effects = explain(race, before, busy(race, before))
        drives = after.running & (before.lap < race.race_laps)[:, None]
        error = np.where(drives, sum(effects.values()) - (after.elapsed_s - before.elapsed_s), 0.0)
        assert np.abs(error).max() < 1e-9
        seen |= {name for name, effect in effects.items() if np.abs(effect).max() > 0}
    assert seen == {"circuit", "car", "noise", "compound", "wear", "fuel", "mode", "temperature", "fresh", "cliff",
                    "weather", "hold_gap", "dirty_air", "held_up", "track_status", "incident", "stop"}


def test_the_grid_slot_matters():
    """The same car finishes further back when it starts last."""
    pace = np.zeros((400, 10))
    front = RaceSetup((circuit_prior("monza"),), np.arange(400), pace, race_laps=12)
    back = replace(front, grid=np.r_[10, np.arange(1, 10)])
    first, last = (run(s).position[:, 0].mean() for s in (front, back))
    assert first < 3.5
    assert last > 7.0


def test_lap_1_shuffles_places_as_real_ones_do():
    setup = RaceSetup((circuit_prior("suzuka"),), np.arange(400), np.zeros(20), race_laps=5)
    state = step(prepare(setup), new_state(prepare(setup)))
    moved = np.abs(state.position - np.arange(1, 21))[state.running]
    gaps = np.median(np.sort(state.elapsed_s, axis=1) - state.leader_s[:, None], axis=0)
    assert 1.5 < moved.mean() < 2.1  # measured 1.78
    assert gaps[1] == pytest.approx(1.1, abs=0.3)
    assert gaps[4] == pytest.approx(3.7, abs=0.7)
    assert gaps[9] == pytest.approx(7.0, abs=0.8)


def passed_share(circuit: str, gap_s: float, advantage_s: float, calls: Calls = NO_CALLS, **more) -> float:
    """Share of 4,000 laps in which the second car passes, without failures."""
    setup = RaceSetup((circuit_prior(circuit),), np.arange(4000), np.array([0.0, -advantage_s]), race_laps=2,
                      start_gap_s=np.array([0.0, gap_s]), accident_scale=0.0, mechanical_scale=0.0,
                      status=np.zeros((1, 2), int), **more)
    race = prepare(setup)
    return float((step(race, new_state(race), calls).position[:, 1] == 1).mean())


def test_passing_needs_pace_and_depends_on_the_circuit():
    assert passed_share("bahrain", 0.5, 1.0) == pytest.approx(0.58, abs=0.12)  # measured
    assert passed_share("monaco", 0.5, 1.0) < 0.08  # measured .02
    shares = [passed_share("bahrain", 0.5, advantage) for advantage in (-0.5, 0.0, 0.5, 1.0, 2.0)]
    assert shares == sorted(shares)
    assert passed_share("bahrain", 0.5, 0.7) > passed_share("bahrain", 1.5, 0.7)


def both(**front_or_back) -> Calls:
    """Drives of (front car, car behind)."""
    return Calls(drive=np.array([[drive_code(**front_or_back.get("front", {})),
                                  drive_code(**front_or_back.get("behind", {}))]]) + np.zeros((4000, 1), dtype=int))


def test_attacking_defending_and_drs_change_the_chance_to_pass():
    usual = passed_share("bahrain", 0.6, 0.6)
    assert passed_share("bahrain", 0.6, 0.6, both(behind={"attack": True})) > usual + 0.08
    assert passed_share("bahrain", 0.6, 0.6, both(front={"defend": True})) < usual - 0.05
    assert passed_share("bahrain", 0.6, 0.6, both(front={"mode": 5})) < usual - 0.03
    assert passed_share("bahrain", 0.6, 0.6, both(behind={"drs": False})) < usual - 0.08


def test_a_car_that_cannot_pass_waits_behind(quiet):
    slow_ahead = replace(CircuitParameters(), lap_scatter_s=0.0, pass_circuit=-50.0, accident_per_race=0.0,
                         mechanical_per_race=0.0)
    setup = quiet((0.0, 3.0), circuit=slow_ahead, car_pace_s=np.array([0.0, -1.0]), laps=12,
                  status=np.zeros((1, 12), int))
    history = run(setup, record=True)
    assert all(s.position[0, 0] == 1 for s in history)
    assert 0.2 < history[-1].gap_ahead_s[0, 1] < 1.6
    assert explain(prepare(setup), history[-2])["held_up"][0, 1] > 0.3


def test_holding_a_gap_keeps_it_and_saves_the_tyres(quiet):
    setup = quiet((0.0, 4.0), car_pace_s=np.array([0.0, -0.8]), status=np.zeros((1, 10), int))
    hold = Calls(hold_gap=np.array([[-1, 0]]))
    free, held = run(setup, record=True), run(setup, lambda race, state: hold, record=True)
    assert held[5].gap_ahead_s[0, 1] == pytest.approx(4.0, abs=0.1)
    assert free[4].gap_ahead_s[0, 1] < 3.0
    assert held[5].wear_laps[0, 1] < free[5].wear_laps[0, 1]
    assert held[5].fuel_kg[0, 1] > free[5].fuel_kg[0, 1]


def test_letting_a_car_by_costs_little_and_only_concerns_that_car(quiet):
    setup = quiet((0.0, 0.8, 9.0), status=np.zeros((1, 10), int))
    race = prepare(setup)
    let = step(race, new_state(race), Calls(let_by=np.array([[1, -1, -1]])))
    assert let.position[0].tolist() == [2, 1, 3]
    assert let.elapsed_s[0, 0] - step(race, new_state(race)).elapsed_s[0, 0] < 3.0
    other = step(race, new_state(race), Calls(let_by=np.array([[2, -1, -1]])))  # not the car right behind
    assert other.position[0].tolist() == [1, 2, 3]


@pytest.mark.parametrize("closed", [{"sc": (5, 6, 7, 8)}, {"vsc": (5, 6, 7, 8)}])
def test_nobody_passes_on_a_closed_track(closed):
    setup = RaceSetup((circuit_prior("spielberg"),), np.arange(200), np.linspace(1, -1, 20), race_laps=12,
                      status=trace(12, **closed), mechanical_scale=0.0, accident_scale=0.0,
                      engine=EngineParameters(puncture_per_lap=0.0))
    history = run(setup, record=True)
    for lap in range(4, 8):
        assert np.array_equal(history[lap].position, history[lap + 1].position)
    assert not np.array_equal(history[3].position, history[4].position)


def test_a_safety_car_slows_and_bunches(quiet):
    gaps = (0.0, 6.0, 20.0, 45.0)
    setup = quiet(gaps, status=trace(10, sc=(3, 4, 5, 6)))
    laps = lap_times(setup)
    history = run(setup, record=True)
    base = laps[1, 0]
    assert laps[3, 0] / base == pytest.approx(1.6, abs=0.05)
    behind = np.array([s.elapsed_s[0] - s.elapsed_s[0, 0] for s in history])
    assert behind[2, 3] > 44
    assert (np.diff(behind[2:7, 3]) < 0).all()
    assert behind[6].tolist() == pytest.approx([0, 0.5, 1.0, 1.5])


def test_a_neutralised_lap_is_a_multiple_of_a_green_lap_of_the_same_car(quiet, quiet_circuit):
    """The ratio multiplies a green lap with its fuel and used tyres, from a full tank to a nearly empty one."""
    closed = {"vsc": (12, 13, 14, 50, 51, 52), "sc": (20, 21, 22, 23, 40, 41, 42, 43)}
    setup = quiet((0.0, 3.0), laps=57, status=trace(57, **closed))
    laps = lap_times(setup, {31: pit(HARD, HARD)})[:, 0]
    for lap, green, ratio in ((13, 10, quiet_circuit.vsc_lap_ratio), (51, 48, quiet_circuit.vsc_lap_ratio),
                              (22, 18, quiet_circuit.sc_leader_ratio), (42, 38, quiet_circuit.sc_leader_ratio)):
        assert laps[lap - 1] / laps[green - 1] == pytest.approx(ratio, abs=0.012)


def test_cars_far_back_catch_up_more_in_every_lap_of_a_safety_car(quiet):
    """Measured on cars more than 45 s back: x1.38, 1.22, 1.15, 1.08 of a green lap in laps 2 to 5."""
    setup = quiet((0.0, 105.0), laps=12, status=trace(12, sc=(4, 5, 6, 7, 8, 9)))
    laps = lap_times(setup)[:, 1]
    ratios = laps[4:7] / laps[2]  # after that the car has caught the queue
    assert ratios == pytest.approx([1.38, 1.22, 1.15], abs=0.02)


def test_a_car_that_is_held_up_keeps_its_distance_for_some_laps(quiet):
    stuck = replace(CircuitParameters(), lap_scatter_s=0.0, pass_circuit=-50.0, dirty_air_s=0.0)
    setup = quiet((0.0, 1.0), circuit=stuck, car_pace_s=np.array([0.0, -0.5]), laps=24, status=trace(24),
                  mechanical_scale=0.0)
    gaps = np.array([s.gap_ahead_s[0, 1] for s in run(setup, record=True)[4:]])
    assert gaps.min() >= 0.25 and gaps.max() <= 1.3
    changed = np.abs(np.diff(gaps)) > 1e-9
    assert 2 <= changed.sum() <= 4  # every six laps


def passes_per_race(circuit: str) -> float:
    """Passes per race, from 60 green races of similar cars that never stop."""
    setup = RaceSetup((circuit_prior(circuit),), np.arange(60), np.linspace(-0.3, 0.3, 20), race_laps=40,
                      accident_scale=0.0, mechanical_scale=0.0, status=np.zeros((1, 40), int),
                      engine=EngineParameters(puncture_per_lap=0.0, puncture_per_lap_past=0.0))
    places = np.stack([s.position for s in run(setup, record=True)[2:]])
    return float((np.diff(places, axis=0) < 0).sum() / 60)


def test_lap_noise_opens_no_passes_where_nobody_can_pass():
    assert passes_per_race("monaco") < 1.5
    assert passes_per_race("monza") > 15.0


def test_a_virtual_safety_car_slows_and_keeps_gaps(quiet):
    setup = quiet((0.0, 6.0, 20.0), status=trace(10, vsc=(3, 4)), car_pace_s=np.array([0.3, -0.3, 0.0]))
    laps, history = lap_times(setup), run(setup, record=True)
    assert laps[2, 0] / laps[1, 0] == pytest.approx(1.33, abs=0.02)
    before, after = (history[k].elapsed_s[0] - history[k].elapsed_s[0, 0] for k in (2, 4))
    assert after == pytest.approx(before, abs=1e-9)


def test_a_red_flag_stops_the_race_keeps_the_order_and_lets_tyres_be_changed(quiet):
    setup = quiet((0.0, 9.0, 30.0), status=trace(10, red=(4,)))
    history = run(setup, lambda race, state: pit(-1, HARD, -1) if state.lap == 3 else Calls(), record=True)
    assert history[4].elapsed_s[0, 0] - history[3].elapsed_s[0, 0] > 1000
    assert history[4].position[0].tolist() == [1, 2, 3]
    assert history[4].elapsed_s[0, 2] - history[4].elapsed_s[0, 0] < 5
    assert history[4].compound[0, 1] == HARD
    assert history[4].age_laps[0, 1] == 0


@pytest.mark.parametrize("lap", [1, 4, 10])
@pytest.mark.parametrize("status", ["green", "vsc", "sc"])
def test_every_stop_costs_time(quiet, quiet_circuit, lap, status):
    """A stop on any lap, the last one included, costs what its status asks."""
    around = tuple(k for k in (lap - 1, lap, lap + 1) if 1 <= k <= 10)
    laps = trace(10) if status == "green" else trace(10, **{status: around})
    setup = quiet((0.0, 60.0), status=laps)
    cost = (lap_times(setup, {lap: pit(-1, SOFT)}) - lap_times(setup))[lap - 1, 1]
    ending = status == "vsc" and lap == 10
    price = {"green": quiet_circuit.stop_loss_green_s, "sc": quiet_circuit.stop_loss_sc_s,
             "vsc": quiet_circuit.stop_loss_vsc_ending_s if ending else quiet_circuit.stop_loss_vsc_s}[status]
    assert cost == pytest.approx(price, abs=0.01)


def test_behind_a_safety_car_a_stop_costs_places_rather_than_seconds(quiet):
    gaps = tuple(np.arange(8) * 3.0)
    closed, green = quiet(gaps, status=trace(10, sc=(4, 5, 6, 7))), quiet(gaps, status=trace(10))
    stop = [SOFT] + [-1] * 7
    for setup, lost, still in ((closed, range(3, 8), 9.0), (green, range(5, 8), 9.0)):
        calls = {4: pit(*stop)}
        history = run(setup, lambda race, state, calls=calls: calls.get(state.lap + 1, Calls()), record=True)
        assert history[4].position[0, 0] - 1 in lost
        assert (history[7].elapsed_s[0, 0] - history[7].leader_s[0] < still) == (setup is closed)


def test_team_mates_wait_for_each_other_at_the_box(quiet):
    alone = quiet((0.0, 2.0, 30.0), team=np.array([1, 2, 3]), status=trace(10))
    stacked = replace(alone, team=np.array([1, 1, 3]))
    calls = {4: pit(SOFT, SOFT, -1)}
    more = (lap_times(stacked, calls) - lap_times(alone, calls))[3]
    assert more.tolist() == pytest.approx([0, 2.6 + 2.5 - 2.0, 0], abs=0.5)


def test_lapped_cars_finish_on_the_leaders_last_lap(quiet):
    setup = quiet((0.0, 1.0, 2.0), laps=30, car_pace_s=np.array([0.0, 4.0, 7.0]), status=np.zeros((1, 30), int))
    history = run(setup, record=True)
    result = classify(prepare(setup), history[-1])
    assert result.laps[0].tolist() == [30, 29, 28]
    assert result.position[0].tolist() == [1, 2, 3]
    lap = prepare(setup).of_lap("circuit_s", 30)[0]
    assert (result.time_s[0] - result.time_s[0, 0] <= lap + 8).all()
