"""Policies on a full distance and a full grid."""
from __future__ import annotations

import numpy as np
import pytest

from f1_pipelines.sim.environment.environment import RaceEnvironment
from f1_pipelines.sim.environment.prompt import MAX_TOKENS, token_bound
from f1_pipelines.sim.environment.vector import VectorEnvironment
from f1_pipelines.sim.policies import DEGENERATE, POLICIES, as_text, played, policy_for
from f1_pipelines.sim.scenarios import BadScenario, make_grand_prix, seeds_of


@pytest.fixture(scope="module")
def scenario(grand_prix):
    return make_grand_prix(grand_prix, "driver-h", 5)


@pytest.fixture(scope="module")
def played_by(scenario):
    return {name: played(scenario, policy_for(name, scenario), name) for name in POLICIES}


def test_every_policy_drives_it_and_racing_is_what_pays(played_by):
    score = {name: race.score["score"] for name, race in played_by.items()}
    assert score["oracle"] == max(score.values()) > 0.95
    assert max(score[name] for name in DEGENERATE) < 0.45
    assert score["expert"] > max(score["blind_list"], score["fixed_stop"], 0.6)
    expert = played_by["expert"]
    assert expert.info["illegal"] == 0 and len(expert.info["stops"]) >= 1 and len(expert.drivers) == 22
    assert as_text(expert).startswith("grand_prix 2026-belgium driver-h seed 5, spa-francorchamps, expert")


def test_prompts_of_a_full_grid_fit_and_show_the_cars_around_us(played_by):
    for race in played_by.values():
        for decision in race.decisions:
            assert token_bound(decision["observation"]) <= MAX_TOKENS, decision["observation"]
    shown = played_by["expert"].decisions[20]["observation"].splitlines()
    assert sum(" us " in line for line in shown) == 1 and any("others" in line for line in shown)


def test_it_is_reset_by_weekend_and_car(grand_prix, scenario):
    env = RaceEnvironment(weekends={"2026-belgium": grand_prix}.__getitem__)
    observation = env.reset(5, "grand_prix", weekend="2026-belgium", car="driver-h")
    assert env.scenario == scenario and observation.number == 9 and len(observation.cars) == 22
    step = env.step(f"CHECK_OPPONENT_STRATEGY {scenario.numbers[17]}")
    assert step.observation.facts["plan"] and "laps" not in step.info
    assert "no opponent has that number" in env.step("HOLD_GAP 99").info["error"]
    for arguments in ({}, {"weekend": "2026-belgium"}, {"car": 9}):
        with pytest.raises(BadScenario, match="weekend='2026-monaco'"):
            env.reset(5, "grand_prix", **arguments)
    for key in ("2026" * 500_000, 7, ""):
        with pytest.raises((BadScenario, KeyError)) as problem:
            env.reset(5, "grand_prix", weekend=key, car=9)
        assert len(str(problem.value)) < 200
    with pytest.raises(BadScenario, match="no split"):
        env.reset(5, "grand_prix", split="test", weekend="2026-belgium", car=9)
    with pytest.raises(BadScenario, match="belong to grand_prix"):
        env.reset(5, "dry_strategy_sprint", weekend="2026-belgium")
    with pytest.raises(BadScenario, match="stored_weekend"):
        RaceEnvironment().reset(5, "grand_prix", weekend="2026-belgium", car=9)


def test_it_is_never_part_of_training(scenario):
    with pytest.raises(ValueError, match="grand_prix"):
        seeds_of("grand_prix", "train", 1)
    with pytest.raises(ValueError, match="RaceEnvironment"):
        VectorEnvironment([scenario])


def test_rewards_add_up_over_a_full_distance(scenario):
    env, total, over = RaceEnvironment(), 0.0, False
    env.begin(scenario)
    calls = {10: "PIT_NOW hard", 25: "PIT_NOW medium", 26: "nonsense"}
    while not over:
        reward, over = env.advance(calls.get(env.history[-1].lap + 1, "STAY_OUT"))
        total += reward
    assert total == pytest.approx(env.score.total)
    assert np.isfinite(list(env.score.as_dict().values())).all()
