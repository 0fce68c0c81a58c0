"""What a step of practice learns from; each option changes what its name says, and nothing changes without one."""
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from f1_pipelines.engineer.inference.checkpoints import load_engineer
from f1_pipelines.engineer.progress import Reporter
from f1_pipelines.engineer.scenario_sampler import ScenarioSampler
from f1_pipelines.engineer.seed_ranges import TRAINED_FAMILIES
from f1_pipelines.engineer.training.counterfactual_returns import counterfactual_returns, decision_states
from f1_pipelines.engineer.training.rejection import rejection_round
from f1_pipelines.engineer.training.rollout_sampler import EASIEST, RolloutSampler, SampledGroup
from f1_pipelines.engineer.training.self_play import with_self_play
from f1_pipelines.sim.scenarios import make_scenario

RULED = make_scenario("dry_strategy_sprint", 2)  # starts on mediums, the rule asks for two compounds
FREE = make_scenario("dry_strategy_sprint", 47)


def stays(texts):
    return ["STAY_OUT"] * len(texts)


def tried_in(scenario, calls, count):
    """The same calls at the first states of a race in which nobody stops, and how they end."""
    [states] = decision_states([scenario], stays)
    tried = [SampledGroup(state, [[k] for k in range(len(calls))], calls, np.ones(len(calls)))
             for state in states[:count]]
    return tried, counterfactual_returns(states[:count], [calls] * count, stays)


def rollout_sampler(settings, rendering=None, seed=0):
    return RolloutSampler(rendering, ScenarioSampler(), settings, seed, 12, 8)


def test_without_an_option_the_score_is_all(toy_profile):
    tried, ends = tried_in(RULED, ["STAY_OUT", "PIT_NOW hard"], 2)
    assert not any(rollout_sampler(toy_profile.grpo).shaping_rewards(*pair).any()
                   for pair in zip(tried, ends, strict=True))


@pytest.mark.parametrize(("scenario", "added"), [(RULED, [0.0, 0.1]), (FREE, [0.0, 0.0])])
def test_two_compounds_is_added_where_the_rule_asks_for_them_and_is_kept(toy_profile, scenario, added):
    assert scenario.rule == (scenario is RULED)
    tried, ends = tried_in(scenario, ["STAY_OUT", "PIT_NOW hard"], 3)
    settings = replace(toy_profile.grpo, two_compounds=0.1)
    for pair in zip(tried, ends, strict=True):
        assert rollout_sampler(settings).shaping_rewards(*pair).tolist() == added


def test_agreement_is_added_to_the_experts_call(toy_profile):
    [states] = decision_states([RULED], stays)
    for state in states[:3]:
        one = SampledGroup(state, [[0], [1]], [str(state.expert_call()), "DONE"], np.ones(2))
        shaped = rollout_sampler(replace(toy_profile.grpo, agreement=0.2)).shaping_rewards(one, [state.end] * 2)
        assert shaped.tolist() == [0.2, 0.0]


def test_an_advantage_is_over_the_mean_of_the_samples_however_often_each_was_sampled(toy_profile):
    [one], [ends] = tried_in(RULED, ["STAY_OUT", "PIT_NOW hard"], 1)
    often = replace(one, counts=np.array([3, 1]))
    scores = [end["score"] for end in ends]
    advantages = rollout_sampler(toy_profile.grpo).advantages(often, ends)
    assert advantages[1] - advantages[0] == pytest.approx(scores[1] - scores[0]) != 0.0
    assert often.counts @ advantages == pytest.approx(0.0)


def test_what_was_called_in_the_race_is_not_raced_again():
    asked = []

    def watched(texts):
        asked.extend(texts)
        return stays(texts)

    [states] = decision_states([RULED], stays)
    [[same, other]] = counterfactual_returns(states[-3:-2], [["STAY_OUT", "PIT_NOW hard"]], watched)
    assert same == states[-1].end and other != same
    assert len(asked) == 2, "the two laps left of the race that differs"


def test_the_easiest_family_comes_first_for_as_long_as_asked(toy_profile, student_folder):
    engineer = load_engineer(student_folder)
    settings = replace(toy_profile.grpo, easy_steps=2, races=6)

    def families(step):
        tried, _ = rollout_sampler(settings, engineer.rendering).sample_groups(engineer, step, 40)
        return {one.state.seen.family for one in tried}

    assert families(1) == {EASIEST}
    assert families(2) <= set(TRAINED_FAMILIES) and families(2) != {EASIEST}


def test_draws_are_what_one_prompt_at_a_time_would_say(toy):
    texts = [state.seen.text for state in decision_states([RULED], stays)[0][:5]]
    assert len({len(toy.rendering.prompt_ids(text)) for text in texts}) > 1, "padding is at work"
    cold = toy.draws(texts, 3, 1e-5)
    assert cold == [ids * 3 for ids in toy.draws(texts, 1, 0.0)]
    warm = toy.draws(texts, 3, 1.0)
    assert any(len({tuple(ids) for ids in few}) > 1 for few in warm)


def test_trl_is_given_each_call_once_with_the_weight_of_its_draws(toy_profile, student_folder):
    engineer, settings = load_engineer(student_folder), toy_profile.grpo
    trainer = SimpleNamespace(model=engineer.model, state=SimpleNamespace(global_step=0),
                              accelerator=SimpleNamespace(unwrap_model=lambda model: model))
    given = rollout_sampler(settings, engineer.rendering)([], trainer)
    assert len(given["completion_ids"]) == len(given["prompt_ids"]) == settings.states * settings.samples
    assert len(given["advantage"]) == len(given["prompt_ids"])
    assert sum(given["advantage"]) == pytest.approx(0.0)
    advantages = {}
    for prompt, ids, advantage in zip(given["prompt_ids"], given["completion_ids"], given["advantage"], strict=True):
        advantages.setdefault(tuple(prompt), {}).setdefault(tuple(ids), []).append(advantage)
    for few in advantages.values():
        assert sum(sum(one) for one in few.values()) == pytest.approx(0.0), "each state is its own baseline"
        assert all(not any(one[1:]) for one in few.values()), "what comes twice is padding"


def test_neighbours_stop_when_the_copy_would_have_them_stop():
    def stops_once(texts):
        return ["PIT_NOW hard" if "\nlap 3/" in text else "STAY_OUT" for text in texts]

    [changed] = with_self_play([FREE], stops_once)
    near = [k for k in range(1, FREE.cars) if abs(FREE.grid[k] - FREE.grid[0]) == 1]
    assert near
    for column in range(1, FREE.cars):
        if column in near:
            assert [lap for lap in changed.plan_lap[:, column] if lap] == [3]
        else:
            assert changed.plan_lap[0, column] == FREE.plan_lap[0, column]
    assert changed.numbers == FREE.numbers and np.array_equal(changed.grid, FREE.grid)


def test_a_copy_that_never_stops_leaves_no_plan():
    [changed] = with_self_play([FREE], stays)
    near = [k for k in range(1, FREE.cars) if abs(FREE.grid[k] - FREE.grid[0]) == 1]
    assert not changed.plan_lap[:, near].any()


def test_a_rejection_round_teaches_the_best_of_the_calls_drawn(toy_profile, student_folder, tmp_path, monkeypatch):
    monkeypatch.setattr("f1_pipelines.engineer.training.rejection.RACES", 4)
    engineer, lines = load_engineer(student_folder), []
    before = [weights.clone() for weights in engineer.model.parameters()]
    rejection_round(engineer.model, engineer.rendering, ScenarioSampler(), toy_profile, 0, 1, tmp_path, "cpu",
                    Reporter(lines.append))
    assert any("improved" in line for line in lines)
    assert any(not torch.equal(a, b) for a, b in zip(before, engineer.model.parameters(), strict=True))
