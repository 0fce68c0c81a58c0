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
    """The same calls at the first moments of a race in which nobody stops, and how they end."""
    [moments] = decision_states([scenario], stays)
    tried = [SampledGroup(moment, [[k] for k in range(len(calls))], calls, np.ones(len(calls)))
             for moment in moments[:count]]
    return tried, counterfactual_returns(moments[:count], [calls] * count, stays)


def practice(told, rendering=None, seed=0):
    return RolloutSampler(rendering, ScenarioSampler(), told, seed, 12, 8)


def test_without_an_option_the_score_is_all(toy_profile):
    tried, ends = tried_in(RULED, ["STAY_OUT", "PIT_NOW hard"], 2)
    assert not any(practice(toy_profile.grpo).shaping(*pair).any() for pair in zip(tried, ends, strict=True))


@pytest.mark.parametrize(("scenario", "added"), [(RULED, [0.0, 0.1]), (FREE, [0.0, 0.0])])
def test_two_compounds_is_added_where_the_rule_asks_for_them_and_is_kept(toy_profile, scenario, added):
    assert scenario.rule == (scenario is RULED)
    tried, ends = tried_in(scenario, ["STAY_OUT", "PIT_NOW hard"], 3)
    told = replace(toy_profile.grpo, two_compounds=0.1)
    for pair in zip(tried, ends, strict=True):
        assert practice(told).shaping(*pair).tolist() == added


def test_agreement_is_added_to_the_experts_call(toy_profile):
    [moments] = decision_states([RULED], stays)
    for moment in moments[:3]:
        one = SampledGroup(moment, [[0], [1]], [str(moment.expert_call()), "DONE"], np.ones(2))
        assert practice(replace(toy_profile.grpo, agreement=0.2)).shaping(one, [moment.end] * 2).tolist() == [0.2, 0.0]


def test_a_gain_is_over_the_mean_of_the_draws_however_often_each_was_drawn(toy_profile):
    [one], [ends] = tried_in(RULED, ["STAY_OUT", "PIT_NOW hard"], 1)
    often = replace(one, draws=np.array([3, 1]))
    scores = [end["score"] for end in ends]
    gains = practice(toy_profile.grpo).gains(often, ends)
    assert gains[1] - gains[0] == pytest.approx(scores[1] - scores[0]) != 0.0
    assert often.draws @ gains == pytest.approx(0.0)


def test_what_was_called_in_the_race_is_not_raced_again():
    asked = []

    def watched(texts):
        asked.extend(texts)
        return stays(texts)

    [moments] = decision_states([RULED], stays)
    [[same, other]] = counterfactual_returns(moments[-3:-2], [["STAY_OUT", "PIT_NOW hard"]], watched)
    assert same == moments[-1].end and other != same
    assert len(asked) == 2, "the two laps left of the race that differs"


def test_the_easiest_family_comes_first_for_as_long_as_asked(toy_profile, pupil_folder):
    engineer = load_engineer(pupil_folder)
    told = replace(toy_profile.grpo, easy_steps=2, races=6)

    def families(step):
        tried, _ = practice(told, engineer.rendering).tried(engineer, step, 40)
        return {one.moment.seen.family for one in tried}

    assert families(1) == {EASIEST}
    assert families(2) <= set(TRAINED_FAMILIES) and families(2) != {EASIEST}


def test_draws_are_what_one_prompt_at_a_time_would_say(toy):
    texts = [moment.seen.text for moment in decision_states([RULED], stays)[0][:5]]
    assert len({len(toy.rendering.prompt_ids(text)) for text in texts}) > 1, "padding is at work"
    cold = toy.draws(texts, 3, 1e-5)
    assert cold == [ids * 3 for ids in toy.draws(texts, 1, 0.0)]
    warm = toy.draws(texts, 3, 1.0)
    assert any(len({tuple(ids) for ids in few}) > 1 for few in warm)


def test_trl_is_given_each_call_once_with_the_weight_of_its_draws(toy_profile, pupil_folder):
    engineer, told = load_engineer(pupil_folder), toy_profile.grpo
    trainer = SimpleNamespace(model=engineer.model, state=SimpleNamespace(global_step=0),
                              accelerator=SimpleNamespace(unwrap_model=lambda model: model))
    given = practice(told, engineer.rendering)([], trainer)
    assert len(given["completion_ids"]) == len(given["prompt_ids"]) == len(given["gain"]) == told.states * told.samples
    assert sum(given["gain"]) == pytest.approx(0.0)
    gains = {}
    for prompt, ids, gain in zip(given["prompt_ids"], given["completion_ids"], given["gain"], strict=True):
        gains.setdefault(tuple(prompt), {}).setdefault(tuple(ids), []).append(gain)
    for few in gains.values():
        assert sum(sum(one) for one in few.values()) == pytest.approx(0.0), "each moment is its own baseline"
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


def test_a_rejection_round_teaches_the_best_of_the_calls_drawn(toy_profile, pupil_folder, tmp_path, monkeypatch):
    monkeypatch.setattr("f1_pipelines.engineer.training.rejection.RACES", 4)
    engineer, lines = load_engineer(pupil_folder), []
    before = [weights.clone() for weights in engineer.model.parameters()]
    rejection_round(engineer.model, engineer.rendering, ScenarioSampler(), toy_profile, 0, 1, tmp_path, "cpu",
                    Reporter(lines.append))
    assert any("bettered" in line for line in lines)
    assert any(not torch.equal(a, b) for a, b in zip(before, engineer.model.parameters(), strict=True))
