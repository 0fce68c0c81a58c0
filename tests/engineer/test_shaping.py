"""Each option of practice changes what its name says, and nothing changes without one."""
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from f1_pipelines.engineer.checkpoints import load_engineer
from f1_pipelines.engineer.grpo import EASIEST, Practice
from f1_pipelines.engineer.scenes import Scenes
from f1_pipelines.engineer.turns import TRAINED
from f1_pipelines.engineer.values import moments_of, values_of

KEY = ("dry_strategy_sprint", 2)  # starts on mediums
CALLS = ["STAY_OUT", "PIT_NOW hard"]


@pytest.fixture(scope="module")
def tried():
    """Two calls in each lap of a race whose rule asks for two compounds and in which nobody else stops."""
    def stays(texts):
        return ["STAY_OUT"] * len(texts)

    [moments] = moments_of([Scenes().scenario(*KEY)], stays)
    calls = [CALLS] * len(moments)
    return moments, calls, values_of(moments, calls, stays)


def shaped(told, tried, samples=2):
    return Practice(None, Scenes(), replace(told, samples=samples), 0, 12, 8)._shaping(*tried)


def test_without_an_option_the_score_is_all(toy_profile, tried):
    assert not shaped(toy_profile.grpo, tried).any()


def test_two_compounds_is_added_where_the_rule_is_kept(toy_profile, tried):
    moments, _, ends = tried
    assert moments[0].environment.scenario.rule
    added = shaped(replace(toy_profile.grpo, two_compounds=0.1), tried)
    assert added.tolist() == [[0.0, 0.1]] * len(moments), "who never stops breaks the rule"
    assert all(stays["disqualified"] and not stops["disqualified"] for stays, stops in ends)


def test_two_compounds_is_not_added_where_nobody_asks_for_them(toy_profile):
    def stays(texts):
        return ["STAY_OUT"] * len(texts)

    [moments] = moments_of([Scenes().scenario("dry_strategy_sprint", 47)], stays)
    assert not moments[0].environment.scenario.rule
    few = moments[:2], [CALLS] * 2, values_of(moments[:2], [CALLS] * 2, stays)
    assert not shaped(replace(toy_profile.grpo, two_compounds=0.1), few).any()


def test_agreement_is_added_to_the_experts_call(toy_profile, tried):
    moments = tried[0][:4]
    few = (moments, [[str(moment.expert_call()), "DONE"] for moment in moments], tried[2][:4])
    added = shaped(replace(toy_profile.grpo, agreement=0.2), few)
    assert added.tolist() == [[0.2, 0.0]] * 4


class Played(Practice):
    """Notes which families it plays."""

    families: set[str] = set()

    def _tried(self, engineer, step):
        found = super()._tried(engineer, step)
        self.families = {moment.seen.family for moment in found[0]}
        return found


def test_the_easiest_family_comes_first_for_as_long_as_asked(toy_profile, pupil_folder):
    engineer = load_engineer(pupil_folder)
    told = replace(toy_profile.grpo, easy_steps=2, races=6, states=6)
    practice = Played(engineer.rendering, Scenes(), told, 0, 12, 8)
    practice._tried(engineer, 1)
    assert practice.families == {EASIEST}
    practice._tried(engineer, 2)
    assert practice.families <= set(TRAINED) and practice.families != {EASIEST}


def test_what_trl_is_given_is_the_gain_over_the_moments_own_calls(toy_profile, pupil_folder):
    engineer, told = load_engineer(pupil_folder), toy_profile.grpo
    trainer = SimpleNamespace(model=engineer.model, state=SimpleNamespace(global_step=0),
                              accelerator=SimpleNamespace(unwrap_model=lambda model: model))
    practice = Practice(engineer.rendering, Scenes(), told, 0, 12, 8)
    given = practice([], trainer)
    gains = np.array(given["gain"]).reshape(told.states, told.samples)
    assert gains.sum(axis=1) == pytest.approx(0.0)
    assert np.abs(gains).max() <= 1.0
    assert len(given["completion_ids"]) == told.states * told.samples
    for k in range(told.states):
        same = given["prompt_ids"][k * told.samples:(k + 1) * told.samples]
        assert same == [same[0]] * told.samples
