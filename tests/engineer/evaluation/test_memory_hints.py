"""Hints come only from training races of the same family, and a lookup takes constant time."""
from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

from f1_pipelines.engineer.evaluation.failures import KINDS, LESSONS
from f1_pipelines.engineer.evaluation.memory_hints import MIN_POSTMORTEMS, MemoryHints, situation_of
from f1_pipelines.sim.scenarios import FAMILIES, UNSEEN_FAMILY, make_scenario, seeds_of

FAMILY = "weather_roulette"
SEEDS = seeds_of(FAMILY, "train", 60)
OTHERS = {"validation": seeds_of(FAMILY, "validation", 40), "test": seeds_of(FAMILY, "test", 40),
          "unseen_circuit": seeds_of(FAMILY, "unseen_circuit", 40)}
hints_from = MemoryHints.from_postmortems


def rows(kind: str, seeds: list[int] = SEEDS, family: str = FAMILY, split: str = "train") -> pd.DataFrame:
    return pd.DataFrame([{"family": family, "seed": seed, "split": split, "kind": kind} for seed in seeds])


@pytest.fixture(scope="module")
def race():
    return make_scenario(FAMILY, OTHERS["test"][0])


def test_the_commonest_failures_of_the_family_come_first(race):
    failures = pd.concat([rows("unread_fuel"), rows("slept_through_rain", SEEDS[:40]), rows("none"), rows("bad_luck"),
                          rows("silent_pit_wall", SEEDS[:5])])
    assert hints_from(failures, make_scenario).hint(race) == \
        f"Learnt: {LESSONS['unread_fuel']} {LESSONS['slept_through_rain']}"


@pytest.mark.parametrize("split", OTHERS)
def test_races_of_other_splits_are_ignored(split, race):
    own = rows("unread_fuel")
    foreign = pd.concat([rows("false_message", OTHERS[split], split=split)] * 20)
    assert hints_from(pd.concat([own, foreign]), make_scenario) == hints_from(own, make_scenario)
    assert hints_from(foreign, make_scenario).hint(race) == ""


def test_races_of_other_families_are_ignored(race):
    own = rows("unread_fuel")
    foreign = [rows("false_message", seeds_of(family, "train", 50), family)
               for family in FAMILIES if family not in (FAMILY, UNSEEN_FAMILY)]
    assert hints_from(pd.concat([own, *foreign]), make_scenario).hint(race) == \
        hints_from(own, make_scenario).hint(race) == f"Learnt: {LESSONS['unread_fuel']}"
    assert hints_from(pd.concat(foreign), make_scenario).hint(race) == ""


def test_the_family_that_is_never_trained_on_has_no_hints():
    foreign = rows("false_message", list(range(50)), UNSEEN_FAMILY, "unseen_family")
    hints = hints_from(pd.concat([rows("unread_fuel"), foreign]), make_scenario)
    assert hints.hint(make_scenario(UNSEEN_FAMILY, 60)) == ""


def test_a_common_situation_has_its_own_hint_and_a_rare_one_its_familys(race):
    situation = situation_of(race)
    same = [seed for seed in seeds_of(FAMILY, "train", 400) if situation_of(make_scenario(FAMILY, seed)) == situation]
    other = [seed for seed in SEEDS if situation_of(make_scenario(FAMILY, seed)) != situation]
    assert len(same) >= MIN_POSTMORTEMS
    failures = [rows("unread_fuel", other * 5), rows("false_message", same[:MIN_POSTMORTEMS])]
    assert hints_from(pd.concat(failures), make_scenario).hint(race) == f"Learnt: {LESSONS['false_message']}"
    failures[1] = rows("false_message", same[:MIN_POSTMORTEMS - 1])
    assert hints_from(pd.concat(failures), make_scenario).hint(race).startswith(f"Learnt: {LESSONS['unread_fuel']}")


def test_the_hint_does_not_depend_on_the_races_events():
    hints = hints_from(pd.concat([rows("unread_fuel"), rows("slept_through_rain", SEEDS[:30])]), make_scenario)
    for seed in OTHERS["validation"][:10]:
        scenario = make_scenario(FAMILY, seed)
        other = replace(scenario, shower=None, forecast=None, rain=0 * scenario.rain, status=0 * scenario.status + 2,
                        fuel_laps=-scenario.fuel_laps, plan_lap=0 * scenario.plan_lap, pace_s=-scenario.pace_s)
        assert hints.hint(other) == hints.hint(scenario)


def test_all_pairs_of_lessons_fit_into_a_hint(race):
    for first in KINDS:
        for second in KINDS:
            line = hints_from(pd.concat([rows(first), rows(second, SEEDS[:50])]), lambda *_: race).hint(race)
            assert len(line.split()) <= 25 and (LESSONS[first] in line) == (first not in ("none", "bad_luck"))


def test_a_lookup_reads_at_most_two_keys(race):
    class CountingDict(dict):
        reads = 0

        def get(self, *key):
            self.reads += 1
            return super().get(*key)

    situations = []
    for copies in (1, 200):
        hints = hints_from(pd.concat([rows("unread_fuel"), rows("ran_dry")] * copies), make_scenario)
        lines = CountingDict(hints.lines)
        MemoryHints(lines).hint(race)
        assert lines.reads <= 2
        situations.append(hints.lines.keys())
    assert situations[1] >= situations[0] and len(situations[1]) <= 2 * 2 * 3 * 3 + 1  # not one per race
