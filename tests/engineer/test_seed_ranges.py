"""No race is used twice: not for two kinds of training, and never for training and evaluation."""
from itertools import combinations

import pytest

from f1_pipelines.assets.engineer import DatasetConfig
from f1_pipelines.assets.strategy_evaluation import EngineerEvalConfig, ScriptedEvalConfig
from f1_pipelines.engineer import seed_ranges as ranges
from f1_pipelines.engineer.profiles import PROFILES
from f1_pipelines.engineer.training.kl_probes import KlProbes
from f1_pipelines.engineer.training.stages import SELECTION_RACES
from f1_pipelines.sim.scenarios import FAMILIES, UNSEEN_FAMILY, split_of

DATASET, EVALUATION, SCRIPTED = DatasetConfig(), EngineerEvalConfig(), ScriptedEvalConfig()
MAX_DAGGER_ROUNDS = (ranges.HINTS_START - ranges.DAGGER_START) // ranges.SEEDS_PER_DAGGER_ROUND - 1
TRAINING = {
    "demonstrations": ranges.demonstration_races("train", DATASET.races),
    **{f"dagger {k}": ranges.dagger_races(k, max(profile.sft.dagger_races for profile in PROFILES.values()))
       for k in range(1, MAX_DAGGER_ROUNDS + 1)},
    "hints": ranges.hint_races(EVALUATION.hint_races),
    "kl probes": ranges.kl_probe_races(KlProbes.COUNT),
    "grpo": ranges.grpo_races(),
}
VALIDATION = {
    "held-out turns": ranges.demonstration_races("validation", DATASET.validation_races),
    "selection": ranges.selection_races(SELECTION_RACES),
}
HELD_OUT = {
    "evaluation": ranges.held_out_races(SCRIPTED.seeds, SCRIPTED.unseen_circuits),
    "benchmarks": ranges.held_out_races(120, skip=ranges.HELD_OUT_SKIPPED_BY_BENCHMARKS),
}


@pytest.mark.parametrize(("one", "other"), [*combinations(TRAINING, 2)])
def test_kinds_of_training_share_no_race(one, other):
    assert not set(TRAINING[one]) & set(TRAINING[other])


def test_training_validation_and_evaluation_share_no_race():
    parts = [{key for races in kind.values() for key in races} for kind in (TRAINING, VALIDATION, HELD_OUT)]
    for one, other in combinations(parts, 2):
        assert not one & other


def test_benchmarks_skip_what_the_evaluation_reports():
    assert not set(HELD_OUT["benchmarks"]) & set(HELD_OUT["evaluation"])


@pytest.mark.parametrize(("kind", "splits"), [
    (TRAINING, {"train"}), (VALIDATION, {"validation"}), (HELD_OUT, {"test", "unseen_family", "unseen_circuit"})])
def test_each_kind_is_of_its_splits(kind, splits):
    assert {split_of(*key) for races in kind.values() for key in races} == splits


def test_families_alternate_and_the_unseen_one_is_not_trained_on():
    keys = ranges.race_keys("train", 3)
    assert [family for family, _ in keys[:len(ranges.TRAINED_FAMILIES)]] == list(ranges.TRAINED_FAMILIES)
    assert set(FAMILIES) - set(ranges.TRAINED_FAMILIES) == {UNSEEN_FAMILY}
    assert {split_of(*key) for key in keys} == {"train"}


def test_every_profile_stays_within_its_dagger_rounds():
    assert max(profile.sft.dagger_rounds for profile in PROFILES.values()) <= MAX_DAGGER_ROUNDS
