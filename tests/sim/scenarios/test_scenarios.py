"""Sprints from (family, seed): deterministic, varied, split by hash."""
from __future__ import annotations

import subprocess
import sys
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from f1_pipelines.sim.engine.parameters import GREEN, HARD, INTER, SC
from f1_pipelines.sim.engine.results import DISQUALIFIED, check_race, classify
from f1_pipelines.sim.scenarios import (
    FAMILIES,
    MAX_SEED,
    UNSEEN_FAMILY,
    BadScenario,
    UnknownFamily,
    make_scenario,
    seeds_of,
    split_of,
)
from f1_pipelines.sim.scenarios.plans import DEFENDER, GAMBLER, OPPORTUNIST, UNDERCUTTER
from tests.sim.scenarios.fields import stay_out_all

COUNT = 120


def field(family: str, count: int = COUNT):
    return [make_scenario(family, seed) for seed in range(count)]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_varies_and_its_races_are_sound(family):
    scenarios = field(family)
    for kind in (lambda s: s.circuit.circuit, lambda s: s.laps, lambda s: int(s.grid[0]), lambda s: int(s.compound[0]),
                 lambda s: s.rule, lambda s: tuple(s.plan_lap[0])):
        share = Counter(kind(s) for s in scenarios).most_common(1)[0][1] / COUNT
        assert share < 0.85
    assert all(10 <= s.laps <= 15 and 2 <= s.grid[0] <= 5 for s in scenarios)
    assert all(sorted(s.grid) == list(range(1, 7)) and len(set(s.numbers)) == 6 for s in scenarios)
    race, history = stay_out_all(scenarios)
    assert not check_race(race, history)
    assert not (classify(race, history[-1]).status[:, 1:] == DISQUALIFIED).any()


def test_the_same_seed_is_the_same_sprint_in_another_process():
    code = ("from f1_pipelines.sim.scenarios import *; s = make_scenario('weather_roulette', 12); "
            "print(s.race_seed, s.numbers, s.pace_s.tobytes().hex(), s.rain.tobytes().hex(), s.plan_lap.tolist())")
    s = make_scenario("weather_roulette", 12)
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60).stdout
    assert output.split() == str(" ".join(map(str, (s.race_seed, s.numbers, s.pace_s.tobytes().hex(),
                                                   s.rain.tobytes().hex(), s.plan_lap.tolist())))).split()


def test_splits_are_by_hash_and_checked():
    shares = Counter(split_of("dry_strategy_sprint", seed) for seed in range(4000))
    assert 0.66 < shares["train"] / 4000 < 0.74
    assert all(0.08 < shares[name] / 4000 < 0.12 for name in ("validation", "test", "unseen_circuit"))
    assert split_of(UNSEEN_FAMILY, 3) == "unseen_family"
    seed = seeds_of("dry_strategy_sprint", "test", 1)[0]
    assert make_scenario("dry_strategy_sprint", seed, "test").split == "test"
    with pytest.raises(BadScenario, match="belongs to split test, not train; seeds of train"):
        make_scenario("dry_strategy_sprint", seed, "train")
    with pytest.raises(BadScenario, match="no split"):
        seeds_of(UNSEEN_FAMILY, "train", 1)


@pytest.mark.parametrize("family", [f for f in FAMILIES if f != UNSEEN_FAMILY])
def test_unseen_circuits_are_not_trained_on(family):
    unseen = {make_scenario(family, s).circuit.circuit for s in seeds_of(family, "unseen_circuit", 25)}
    trained = {s.circuit.circuit for s in field(family) if s.split != "unseen_circuit"}
    assert unseen and not unseen & trained
    assert unseen <= set(FAMILIES[family].unseen_circuits)


@pytest.mark.parametrize(("arguments", "wanted"), [
    (("nascar", 1), "dry_strategy_sprint"), ((None, 1), "Valid"), (("grand_prix", 1), "weekend"),
    (("dry_strategy_sprint", -1), "0 to"), (("dry_strategy_sprint", MAX_SEED + 1), "0 to"),
    (("dry_strategy_sprint", 1.5), "whole number"), (("dry_strategy_sprint", "1"), "whole number"),
    (("dry_strategy_sprint", True), "whole number"), (("dry_strategy_sprint", None), "whole number"),
    (("dry_strategy_sprint", 1, "holdout"), "Valid"), (("dry_strategy_sprint", 1, None, "nurburgring"), "monza"),
    (("dry_strategy_sprint", 1, None, ["monza"]), "monza"),
    (("dry_strategy_sprint", MAX_SEED, "test" if split_of("dry_strategy_sprint", MAX_SEED) != "test" else "train"),
     "belongs to split"),
])
def test_bad_input_is_refused_with_the_reason(arguments, wanted):
    with pytest.raises((BadScenario, UnknownFamily), match=wanted):
        make_scenario(*arguments)


def test_another_circuit_belongs_to_no_split():
    scenario = make_scenario("dry_strategy_sprint", 1, circuit="monaco")
    assert (scenario.circuit.circuit, scenario.split) == ("monaco", "chosen_circuit")


def test_forecasts_have_the_chances_that_they_state():
    wet = field("weather_roulette", 400)
    for chance in {s.forecast.chance for s in wet}:
        rained = [s.shower is not None for s in wet if s.forecast.chance == chance]
        assert abs(np.mean(rained) - chance) < 4 * (chance * (1 - chance) / len(rained)) ** 0.5
    off = [s.shower.onset_lap - s.forecast.onset_lap for s in wet if s.shower]
    assert set(off) == {-1, 0, 1} and abs(np.mean(np.array(off) == 0) - 0.6) < 0.1
    closed = np.mean([(s.status == SC).any() for s in field("late_safety_car", 400)])
    assert abs(closed - 0.8) < 0.08


def stop_laps(scenarios, column):
    """Lap of the first stop of a car, 0 for none, (E,)."""
    race, history = stay_out_all(scenarios)
    stops = np.stack([h.stops[:, column] for h in history])
    return np.where(stops[-1] > 0, (stops > 0).argmax(axis=0), 0)


def test_opponents_react_by_character():
    closed = [s for s in field("late_safety_car", 200) if (s.status == SC).any()]
    begin = np.array([(s.status != GREEN).argmax() + 1 for s in closed])
    plan = np.stack([s.plan_lap[0] for s in closed])
    open_then = (plan > begin[:, None] + 3)
    lap = stop_laps(closed, OPPORTUNIST)
    took = (np.abs(lap - begin) <= 1)[open_then[:, OPPORTUNIST]]
    assert took.mean() > 0.9  # far from its planned lap, it still uses the safety car
    follower = stop_laps(closed, 1)
    assert (np.abs(follower - begin) <= 1)[open_then[:, 1]].mean() < 0.2  # the plan follower does not
    dry = field("dry_strategy_sprint", 200)
    early = stop_laps(dry, UNDERCUTTER) - np.array([s.plan_lap[0, UNDERCUTTER] for s in dry])
    assert (early < 0).mean() > 0.3 and np.quantile(early, 0.03) >= -3  # a puncture may come before
    rain = [s for s in field("weather_roulette", 200) if s.shower and s.shower.peak > 0.6 and s.shower.onset_lap > 3]
    race, history = stay_out_all(rain)
    onto = [np.stack([h.compound[:, c] >= INTER for h in history]) for c in (1, GAMBLER)]
    first = [np.where(on.any(axis=0), on.argmax(axis=0), 99) for on in onto]
    assert (first[1] < first[0]).mean() > 0.5  # the gambler is on rain tyres before the plan follower
    assert (history[-1].compound[:, 1:] <= HARD).any()


def test_the_defender_covers_a_stop_from_right_behind():
    dry = field("dry_strategy_sprint", 200)
    covered = stop_laps(dry, DEFENDER) - np.array([s.plan_lap[0, DEFENDER] for s in dry])
    assert (covered < 0).any() and np.quantile(covered, 0.03) >= -5  # a puncture may come before


def test_scenarios_are_equal_only_if_all_fields_are():
    a, b = make_scenario("late_safety_car", 5), make_scenario("late_safety_car", 5)
    assert a == b and len({a, b}) == 1
    assert replace(a, status=np.zeros_like(a.status) + 1) != a
    assert replace(a, gamble_lap=a.gamble_lap + 1) != a
    assert make_scenario("late_safety_car", 6) != a
