"""Successive halving drops plans that cannot be best, and changes nothing else."""
from __future__ import annotations

import numpy as np
import pytest

from f1_pipelines.sim.environment.environment import RaceEnvironment
from f1_pipelines.sim.policies.belief import Belief
from f1_pipelines.sim.policies.candidates import stop_plans
from f1_pipelines.sim.policies.sampled_futures import Outcomes
from f1_pipelines.sim.policies.sampling import sample
from f1_pipelines.sim.policies.successive_halving import MIN_PLANS, SURVIVORS, evaluate_plans

STOP_LAP = 1


def mean_s(outcomes: Outcomes) -> np.ndarray:
    return outcomes.cost_s.mean(axis=1)


def stops_now(outcomes: Outcomes) -> np.ndarray:
    return (outcomes.stop_lap[:, 0] == STOP_LAP).astype(int)


@pytest.mark.parametrize("family", ["championship_decider", "late_safety_car"])
def test_survivors_have_the_same_outcomes_as_without_halving(family):
    observation = RaceEnvironment().reset(7, family)
    belief = Belief.of(observation)
    belief.see(observation, None)
    futures, plans = sample(observation, belief, 96, np.random.default_rng(0)), stop_plans(observation, belief)
    assert len(plans) > 2 * MIN_PLANS
    survivors, outcomes = evaluate_plans(futures, plans, stops_now, mean_s)
    whole = futures.outcomes(plans)
    assert SURVIVORS <= len(survivors) < len(plans) / 2
    assert outcomes.cost_s.tobytes() == whole.cost_s[survivors].tobytes()
    assert outcomes.stop_lap.tobytes() == whole.stop_lap[survivors].tobytes()
    cost, now = mean_s(whole), stops_now(whole)
    for kind in (0, 1):
        mine = now == kind
        assert cost[survivors][now[survivors] == kind].min() <= cost[mine].min() + 0.2  # s


def test_a_small_set_of_plans_is_not_halved():
    observation = RaceEnvironment().reset(7, "championship_decider")
    belief = Belief.of(observation)
    belief.see(observation, None)
    futures, plans = sample(observation, belief, 96, np.random.default_rng(0)), stop_plans(observation, belief)
    survivors, outcomes = evaluate_plans(futures, plans[:MIN_PLANS - 1], stops_now, mean_s)
    assert survivors.tolist() == list(range(MIN_PLANS - 1)) and outcomes.cost_s.shape == (MIN_PLANS - 1, 96)
