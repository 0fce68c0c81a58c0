"""Races of scripted policies in the environment, and toy-size engineers."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from f1_pipelines.engineer.data.demonstrations import Demonstration, expert_demonstrations
from f1_pipelines.engineer.evaluation.memory_hints import random_hint
from f1_pipelines.engineer.inference.checkpoints import save_engineer
from f1_pipelines.engineer.inference.engineer import Engineer
from f1_pipelines.engineer.profiles import Architecture, GrpoSettings, Profile, SftSettings, profile_of
from f1_pipelines.engineer.prompting.rendering import Rendering
from f1_pipelines.engineer.scenario_sampler import ScenarioSampler
from f1_pipelines.engineer.seed_ranges import race_keys
from f1_pipelines.engineer.training.sft import Example, train_sft
from f1_pipelines.engineer.training.tiny_model import fresh_model, train_tokenizer
from f1_pipelines.sim.environment.environment import RaceEnvironment
from f1_pipelines.sim.policies.play import policy_for
from f1_pipelines.sim.scenarios import Scenario, make_scenario


@pytest.fixture(scope="session")
def calls_of() -> Callable[[Scenario, str], list[str]]:
    """Function that returns the calls of a scripted policy in a race, lap by lap."""
    def play(scenario: Scenario, policy: str) -> list[str]:
        environment, player, outputs, done = RaceEnvironment(), policy_for(policy, scenario), [], False
        observation = environment.begin(scenario)
        player.begin(observation)
        while not done:
            outputs.append(str(player.decide(observation).command))
            step = environment.step(outputs[-1])
            observation, done = step.observation, step.done
        return outputs

    return play


torch.set_num_threads(1)  # two spinning threads on a busy machine take five times as long

TIMES = {"tokens_per_s", "rollout_s", "simulator_s", "step_time", "train_runtime", "train_samples_per_second",
         "train_steps_per_second", "train_tokens_per_second"}  # metrics that differ between runs


def steps_and_metrics(points) -> list[tuple[int, str]]:
    """The steps and names of metrics."""
    return sorted((step, name) for step, name, _ in points)


def repeatable(points) -> list[tuple[int, str, float]]:
    """The metrics that are equal in every run of a training."""
    return sorted((step, name, value) for step, name, value in points if name not in TIMES)


TOY = Architecture(hidden=32, layers=1, heads=2, kv_heads=1, head_dim=16, feed_forward=64, vocabulary=512)


@pytest.fixture(scope="session")
def turns() -> list[Demonstration]:
    """The expert's turns in six training races without invented names, from which toys learn little."""
    keys = race_keys("train", 12, ("dry_strategy_sprint", "tyre_cliff_management"))
    usual = [key for key in keys if ScenarioSampler().scenario(*key) == make_scenario(*key) and not random_hint(*key)]
    return [turn for race in expert_demonstrations(ScenarioSampler(), usual[:6]) for turn in race]


@pytest.fixture(scope="session")
def examples(turns) -> list[Example]:
    return [Example(turn.prompt, turn.completion) for turn in turns]


@pytest.fixture(scope="session")
def toy_profile() -> Profile:
    """A model of a few thousand weights, trained for a few steps."""
    return replace(
        profile_of("tiny"), architecture=TOY, max_new_tokens=12,
        sft=SftSettings(epochs=12.0, batch_size=8, learning_rate=1e-2, warmup_steps=2, dagger_rounds=1, dagger_races=1,
                        dagger_epochs=1.0),
        grpo=GrpoSettings(steps=2, races=2, states=4, oversampling=2, num_generations=4, learning_rate=1e-3,
                          batch_size=8, temperature=1.0))


@pytest.fixture(scope="session")
def toy_tokenizer(examples):
    return train_tokenizer((f"{e.prompt}\n{e.completion}" for e in examples), TOY)


@pytest.fixture
def toy(toy_tokenizer) -> Engineer:
    """A new untrained engineer for each test."""
    return Engineer(fresh_model(toy_tokenizer, TOY, 0), Rendering(toy_tokenizer, False), max_new_tokens=12)


@pytest.fixture(scope="session")
def student_folder(toy_tokenizer, examples, toy_profile, tmp_path_factory) -> Path:
    """A stored engineer after a few steps of SFT."""
    folder = tmp_path_factory.mktemp("engineers")
    model, rendering = fresh_model(toy_tokenizer, TOY, 0), Rendering(toy_tokenizer, False)
    train_sft(model, rendering, examples, toy_profile, 0, folder / "steps")
    return save_engineer(model, rendering, folder, {
        "stage": "sft", "profile": "tiny", "parent": None, "training_seed": 0, "settings": {}, "n_turns": len(examples),
        "scenes_version": ScenarioSampler().version, "n_parameters": 1}).path
