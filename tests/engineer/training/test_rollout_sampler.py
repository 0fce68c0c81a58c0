"""Groups, rewards and advantages of a GRPO step."""
from collections import defaultdict
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from transformers import TrainerCallback, TrainerControl, TrainerState

from f1_pipelines.engineer.inference.checkpoints import load_engineer
from f1_pipelines.engineer.progress import Reporter
from f1_pipelines.engineer.scenario_sampler import ScenarioSampler
from f1_pipelines.engineer.training.counterfactual_returns import counterfactual_returns, decision_states
from f1_pipelines.engineer.training.grpo import StepMetrics
from f1_pipelines.engineer.training.rollout_sampler import RolloutSampler, SampledGroup
from f1_pipelines.sim.scenarios import make_scenario

SCENARIO = make_scenario("dry_strategy_sprint", 2)  # starts on mediums, and the rule requires two compounds


def stays(texts):
    return ["STAY_OUT"] * len(texts)


def group_in(scenario, completions):
    """Completions at the first state of a race without stops, and the results of the race."""
    [states] = decision_states([scenario], stays)
    group = SampledGroup(states[0], [[k] for k in range(len(completions))], completions, np.ones(len(completions)))
    return group, counterfactual_returns(states[:1], [completions], stays)[0]


def sampler_with(settings, rendering=None):
    return RolloutSampler(rendering, ScenarioSampler(), settings, 0, 12, 8)


def test_the_reward_is_the_score(toy_profile):
    group, outcomes = group_in(SCENARIO, ["STAY_OUT", "PIT_NOW hard"])
    assert sampler_with(toy_profile.grpo).rewards(group, outcomes).tolist() == [info["score"] for info in outcomes]


def test_an_advantage_is_relative_to_the_mean_weighted_by_counts(toy_profile):
    group, outcomes = group_in(SCENARIO, ["STAY_OUT", "PIT_NOW hard"])
    group, rollouts = replace(group, counts=np.array([3, 1])), sampler_with(toy_profile.grpo)
    rewards = rollouts.rewards(group, outcomes)
    advantages = rollouts.advantages(group, rewards)
    assert advantages[1] - advantages[0] == pytest.approx(rewards[1] - rewards[0]) != 0.0
    assert group.counts @ advantages == pytest.approx(0.0)


def test_the_policys_own_call_is_not_simulated_again():
    observed = []

    def recording_stays(texts):
        observed.extend(texts)
        return stays(texts)

    [states] = decision_states([SCENARIO], stays)
    [[own, other]] = counterfactual_returns(states[-3:-2], [["STAY_OUT", "PIT_NOW hard"]], recording_stays)
    assert own == states[-1].outcome and other != own
    assert len(observed) == 2, "the last two laps of the other call's race"


def test_samples_in_a_batch_equal_those_of_single_prompts(toy):
    texts = [state.observation.text for state in decision_states([SCENARIO], stays)[0][:5]]
    assert len({len(toy.rendering.prompt_ids(text)) for text in texts}) > 1, "the batch needs padding"
    greedy = toy.sample_ids(texts, 3, 1e-5)
    assert greedy == [ids * 3 for ids in toy.sample_ids(texts, 1, 0.0)]
    random = toy.sample_ids(texts, 3, 1.0)
    assert any(len({tuple(ids) for ids in samples}) > 1 for samples in random)


def test_trl_gets_each_completion_once_weighted_by_its_count(toy_profile, student_folder):
    engineer, settings = load_engineer(student_folder), toy_profile.grpo
    trainer = SimpleNamespace(model=engineer.model, state=SimpleNamespace(global_step=0),
                              accelerator=SimpleNamespace(unwrap_model=lambda model: model))
    batch = sampler_with(settings, engineer.rendering)([], trainer)
    size = settings.states * settings.num_generations
    assert len(batch["completion_ids"]) == len(batch["prompt_ids"]) == len(batch["advantage"]) == size
    assert sum(batch["advantage"]) == pytest.approx(0.0)
    groups = defaultdict(lambda: defaultdict(list))
    for prompt, ids, advantage in zip(batch["prompt_ids"], batch["completion_ids"], batch["advantage"], strict=True):
        groups[tuple(prompt)][tuple(ids)].append(advantage)
    for group in groups.values():
        assert sum(map(sum, group.values())) == pytest.approx(0.0), "each state is its own baseline"
        assert all(not any(advantages[1:]) for advantages in group.values()), "repeated completions are padding"


def test_our_metrics_join_the_trainers_log_and_replace_its_own(tmp_path):
    """Callbacks get the trainer's own log, so their metrics are stored in its checkpoints."""
    warnings, state = [], TrainerState(global_step=10, log_history=[{"step": 10, "frac_reward_zero_std": 1.0}])
    metrics = StepMetrics(SimpleNamespace(metrics={"frac_reward_zero_std": 0.25, "clipped": 0.5}),
                          lambda step: {"kl_to_sft": float("nan")}, Reporter(warn=warnings.append))
    assert isinstance(metrics, TrainerCallback)
    metrics.on_step_end(SimpleNamespace(device="cpu"), state, TrainerControl())
    logs = {"frac_reward_zero_std": 1.0}
    metrics.on_log(None, state, TrainerControl(), logs=logs)
    assert logs == {"frac_reward_zero_std": 0.25, "clipped": 0.5, "kl_to_sft": None}
    assert state.log_history == [{"step": 10, **logs}]
    assert warnings == ["step 10: clipped 0.5, above 0.01"]
