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

RULED = make_scenario("dry_strategy_sprint", 2)  # starts on mediums, the rule asks for two compounds


def stays(texts):
    return ["STAY_OUT"] * len(texts)


def group_in(scenario, completions):
    """These completions at the first state of a race in which nobody stops, and how the race ends."""
    [states] = decision_states([scenario], stays)
    group = SampledGroup(states[0], [[k] for k in range(len(completions))], completions, np.ones(len(completions)))
    return group, counterfactual_returns(states[:1], [completions], stays)[0]


def sampler_with(settings, rendering=None):
    return RolloutSampler(rendering, ScenarioSampler(), settings, 0, 12, 8)


def test_the_reward_is_the_score(toy_profile):
    group, outcomes = group_in(RULED, ["STAY_OUT", "PIT_NOW hard"])
    assert sampler_with(toy_profile.grpo).rewards(group, outcomes).tolist() == [end["score"] for end in outcomes]


def test_an_advantage_is_over_the_mean_of_the_samples_however_often_each_was_sampled(toy_profile):
    group, outcomes = group_in(RULED, ["STAY_OUT", "PIT_NOW hard"])
    group, rollouts = replace(group, counts=np.array([3, 1])), sampler_with(toy_profile.grpo)
    rewards = rollouts.rewards(group, outcomes)
    advantages = rollouts.advantages(group, rewards)
    assert advantages[1] - advantages[0] == pytest.approx(rewards[1] - rewards[0]) != 0.0
    assert group.counts @ advantages == pytest.approx(0.0)


def test_the_call_of_the_race_itself_is_not_raced_again():
    texts_seen = []

    def watched(texts):
        texts_seen.extend(texts)
        return stays(texts)

    [states] = decision_states([RULED], stays)
    [[same, other]] = counterfactual_returns(states[-3:-2], [["STAY_OUT", "PIT_NOW hard"]], watched)
    assert same == states[-1].outcome and other != same
    assert len(texts_seen) == 2, "the two laps left of the race that differs"


def test_samples_are_what_one_prompt_at_a_time_would_give(toy):
    texts = [state.observation.text for state in decision_states([RULED], stays)[0][:5]]
    assert len({len(toy.rendering.prompt_ids(text)) for text in texts}) > 1, "padding is at work"
    cold = toy.sample_ids(texts, 3, 1e-5)
    assert cold == [ids * 3 for ids in toy.sample_ids(texts, 1, 0.0)]
    warm = toy.sample_ids(texts, 3, 1.0)
    assert any(len({tuple(ids) for ids in samples}) > 1 for samples in warm)


def test_trl_receives_each_completion_once_with_the_weight_of_its_count(toy_profile, student_folder):
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
        assert all(not any(advantages[1:]) for advantages in group.values()), "what comes twice is padding"


def test_our_metrics_join_the_trainers_log_and_replace_its_own(tmp_path):
    """Callbacks get the trainer's log itself, so what they add is stored in its checkpoints."""
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
