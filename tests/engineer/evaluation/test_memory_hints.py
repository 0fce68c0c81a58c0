"""Hints come from training races of the same family alone, and looking one up costs the same however many there are."""
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
    told = pd.concat([rows("unread_fuel"), rows("slept_through_rain", SEEDS[:40]), rows("none"), rows("bad_luck"),
                      rows("silent_pit_wall", SEEDS[:5])])
    assert hints_from(told, make_scenario).hint(race) == \
        f"Learnt: {LESSONS['unread_fuel']} {LESSONS['slept_through_rain']}"


@pytest.mark.parametrize("split", OTHERS)
def test_nothing_of_another_split_gets_in(split, race):
    mine = rows("unread_fuel")
    foreign = pd.concat([rows("false_message", OTHERS[split], split=split)] * 20)
    assert hints_from(pd.concat([mine, foreign]), make_scenario) == hints_from(mine, make_scenario)
    assert hints_from(foreign, make_scenario).hint(race) == ""


def test_nothing_of_another_family_gets_in(race):
    mine = rows("unread_fuel")
    foreign = [rows("false_message", seeds_of(family, "train", 50), family)
               for family in FAMILIES if family not in (FAMILY, UNSEEN_FAMILY)]
    assert hints_from(pd.concat([mine, *foreign]), make_scenario).hint(race) == \
        hints_from(mine, make_scenario).hint(race) == f"Learnt: {LESSONS['unread_fuel']}"
    assert hints_from(pd.concat(foreign), make_scenario).hint(race) == ""


def test_the_family_that_is_never_trained_on_has_no_hints():
    told = pd.concat([rows("unread_fuel"), rows("false_message", list(range(50)), UNSEEN_FAMILY, "unseen_family")])
    assert hints_from(told, make_scenario).hint(make_scenario(UNSEEN_FAMILY, 60)) == ""


def test_a_common_situation_speaks_for_itself_and_a_rare_one_for_its_family(race):
    situation = situation_of(race)
    same = [seed for seed in seeds_of(FAMILY, "train", 400) if situation_of(make_scenario(FAMILY, seed)) == situation]
    other = [seed for seed in SEEDS if situation_of(make_scenario(FAMILY, seed)) != situation]
    assert len(same) >= MIN_POSTMORTEMS
    told = [rows("unread_fuel", other * 5), rows("false_message", same[:MIN_POSTMORTEMS])]
    assert hints_from(pd.concat(told), make_scenario).hint(race) == f"Learnt: {LESSONS['false_message']}"
    told[1] = rows("false_message", same[:MIN_POSTMORTEMS - 1])
    assert hints_from(pd.concat(told), make_scenario).hint(race).startswith(f"Learnt: {LESSONS['unread_fuel']}")


def test_another_future_has_the_same_hint():
    learnt = hints_from(pd.concat([rows("unread_fuel"), rows("slept_through_rain", SEEDS[:30])]), make_scenario)
    for seed in OTHERS["validation"][:10]:
        scenario = make_scenario(FAMILY, seed)
        other = replace(scenario, shower=None, forecast=None, rain=0 * scenario.rain, status=0 * scenario.status + 2,
                        fuel_laps=-scenario.fuel_laps, plan_lap=0 * scenario.plan_lap, pace_s=-scenario.pace_s)
        assert learnt.hint(other) == learnt.hint(scenario)


def test_all_pairs_of_lessons_fit(race):
    for one in KINDS:
        for two in KINDS:
            line = hints_from(pd.concat([rows(one), rows(two, SEEDS[:50])]), lambda *_: race).hint(race)
            assert len(line.split()) <= 25 and (LESSONS[one] in line) == (one not in ("none", "bad_luck"))


def test_a_lookup_reads_two_keys_whatever_was_learnt(race):
    class Counted(dict):
        reads = 0

        def get(self, *key):
            self.reads += 1
            return super().get(*key)

    sizes = []
    for copies in (1, 200):
        learnt = hints_from(pd.concat([rows("unread_fuel"), rows("ran_dry")] * copies), make_scenario)
        counted = Counted(learnt.lines)
        MemoryHints(counted).hint(race)
        assert counted.reads <= 2
        sizes.append(learnt.lines.keys())
    assert sizes[1] >= sizes[0] and len(sizes[1]) <= 2 * 2 * 3 * 3 + 1  # situations, not races
