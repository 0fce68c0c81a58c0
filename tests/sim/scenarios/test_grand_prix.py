"""A Grand Prix from a weekend: the same field, and another race with every seed."""
from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from f1_pipelines.sim.engine.parameters import GREEN, HARD, SC
from f1_pipelines.sim.engine.priors import circuit_prior
from f1_pipelines.sim.engine.race import prepare
from f1_pipelines.sim.engine.results import DISQUALIFIED, check_race, classify
from f1_pipelines.sim.engine.step import run
from f1_pipelines.sim.scenarios import (
    BadScenario,
    make_grand_prix,
    make_scenario,
    setup_of,
)
from f1_pipelines.sim.scenarios.grand_prix import dry_plans
from tests.sim.scenarios.fields import stay_out_all

SEEDS = range(60)


@pytest.fixture(scope="module")
def races(grand_prix):
    return [make_grand_prix(grand_prix, "driver-f", seed) for seed in SEEDS]


def test_the_weekend_gives_the_field_and_the_seed_the_race(grand_prix, races):
    entries = {e.driver: e for e in grand_prix.entries}
    for s in races:
        assert (s.family, s.split, s.weekend, s.cars, s.laps) == ("grand_prix", "grand_prix", "2026-belgium", 22, 44)
        assert s.drivers[0] == "driver-f" and set(s.drivers) == set(entries) and s.wear_scale == 1.0
        assert all(entries[d].number == n and entries[d].grid == slot
                   for d, n, slot in zip(s.drivers, s.numbers, s.grid, strict=True))
    assert len({s.key for s in races}) == len(SEEDS)
    for kind in (lambda s: s.status.tobytes(), lambda s: s.rain.tobytes(), lambda s: int(s.compound[0]),
                 lambda s: s.plan_lap.tobytes(), lambda s: s.drivers, lambda s: s.pace_s.tobytes(), lambda s: s.heat_c):
        assert Counter(kind(s) for s in races).most_common(1)[0][1] < 0.9 * len(SEEDS)
    assert make_grand_prix(grand_prix, "driver-f", 3) == races[3]
    assert make_grand_prix(replace(grand_prix, rain_chance=0.1), "driver-f", 3) != races[3]


def test_stated_chances_are_true(grand_prix, races):
    more = [*races, *(make_grand_prix(grand_prix, 7, seed) for seed in range(100, 240))]
    sc = next(c for c in more[0].closures if c.kind == "sc")
    begins = np.mean([((s.status == SC) & (np.roll(s.status, 1) != SC)).sum() for s in more])
    assert 0.7 * sc.chance < begins <= 1.1 * sc.chance  # overlapping periods are left out
    wet = np.mean([s.shower is not None for s in more])
    assert abs(wet - grand_prix.rain_chance) < 4 * (0.24 / len(more)) ** 0.5


def test_its_races_are_sound(races):
    race, history = stay_out_all(races)
    assert not check_race(race, history)
    result = classify(race, history[-1])
    assert not (result.status[:, 1:] == DISQUALIFIED).any()
    dry = [s.shower is None for s in races]
    stops = history[-1].stops[dry][:, 1:][history[-1].out[dry][:, 1:] == 0]
    assert 1.0 < stops.mean() < 3.5 and stops.min() >= 1
    assert 0.02 < (history[-1].out[:, 1:] > 0).mean() < 0.25
    # No car drives far beyond the end of its tyres: on worn tyres it stops.
    past = np.stack([np.where(s.out == 0, s.wear_laps - s.cliff_laps, -1.0) for s in history])[:-3, dry, 1:]
    assert np.quantile(past, 0.999) < 3.0


def test_plans_stay_within_tyre_life():
    for name in ("monaco", "bahrain", "monza"):
        circuit = circuit_prior(name)
        for start in range(3):
            plans = dry_plans(circuit, circuit.race_laps, start)
            assert len(plans) > 1
            for plan in plans:
                tyres, ends = [start, *(c for _, c in plan)], [*(lap for lap, _ in plan), circuit.race_laps]
                assert len(set(tyres)) > 1 and max(tyres) <= HARD
                assert (np.diff(ends, prepend=0) <= [circuit.cliff_laps[c] for c in tyres]).all()


@pytest.mark.parametrize(("car", "message"), [
    ("schumacher", "no car of the grid"), ("driver", "several cars"), (1, "no car of the grid"), ("", "no car"),
    ("x" * 5000, "no car of the grid")])
def test_an_unknown_car_is_refused_with_the_list_of_cars(grand_prix, car, message):
    with pytest.raises(BadScenario, match=message) as problem:
        make_grand_prix(grand_prix, car, 1)
    assert "driver-a (2)" in str(problem.value) and len(str(problem.value)) < 900


@pytest.mark.parametrize("seed", [-1, 2**31, 1.5, "3", None])
def test_a_seed_out_of_range_is_refused(grand_prix, seed):
    with pytest.raises(BadScenario, match="whole number from 0"):
        make_grand_prix(grand_prix, 7, seed)


def test_a_weekend_with_too_few_cars_or_laps_is_refused(grand_prix):
    with pytest.raises(BadScenario, match="4 cars"):
        make_grand_prix(replace(grand_prix, entries=grand_prix.entries[:4]), 2, 1)
    with pytest.raises(BadScenario, match="1 laps"):  # Belgium 2021
        make_grand_prix(replace(grand_prix, laps=1), 2, 1)


def test_taking_races_is_preparing_them_again(grand_prix):
    """Holds for every race of the batch, in every lap."""
    sprints = [make_scenario("weather_roulette", k) for k in range(3)] + [make_scenario("late_safety_car", 2)]
    full = [make_grand_prix(grand_prix, 7, seed) for seed in range(2)]
    for scenarios, first, episodes in ((sprints, 2, [2, 0, 0, 3, 1]), (sprints[:1], 0, [0] * 4), (full, 0, [1, 0, 1])):
        setup, episodes = setup_of(scenarios), np.array(episodes)
        quick, slow = prepare(setup, first=first).take(episodes), prepare(setup.take(episodes), first=first)
        assert quick.setup.seeds.tolist() == slow.setup.seeds.tolist()
        for name, expected in slow.tables._asdict().items():
            table, rows = getattr(quick.tables, name), quick.tables.row_of
            if name in ("lap_of_race", "lap_of_car"):
                assert np.array_equal(table[:, rows], expected), name
            elif name not in ("row_of", "status_effects", "drives", "engine", "first"):
                assert np.array_equal(table[rows], expected), name
        for one, other in zip(run(quick, record=True), run(slow, record=True), strict=True):
            assert np.array_equal(one.cars, other.cars) and np.array_equal(one.races, other.races)


def test_circuits_may_be_given_and_are_part_of_the_sprint():
    usual = make_scenario("dry_strategy_sprint", 4)
    name = usual.circuit.circuit
    slow = replace(circuit_prior(name), stop_loss_green_s=31.0, provenance="fitted")
    given = make_scenario("dry_strategy_sprint", 4, circuits={name: slow})
    assert given.circuit.stop_loss_green_s == 31.0 and given.circuit.provenance == "fitted"
    assert given != usual and given.numbers == usual.numbers
    assert make_scenario("dry_strategy_sprint", 4, circuits={}) == usual
    assert make_scenario("dry_strategy_sprint", 4, circuit="nurburgring", circuits={
        "nurburgring": replace(slow, circuit="nurburgring")}).circuit.circuit == "nurburgring"
    assert (given.status == GREEN).all()
