"""No race has two uses: two kinds of training, or training and evaluation."""
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


@pytest.mark.parametrize(("first", "second"), [*combinations(TRAINING, 2)])
def test_kinds_of_training_share_no_race(first, second):
    assert not set(TRAINING[first]) & set(TRAINING[second])


def test_training_validation_and_evaluation_share_no_race():
    parts = [{key for races in kind.values() for key in races} for kind in (TRAINING, VALIDATION, HELD_OUT)]
    for first, second in combinations(parts, 2):
        assert not first & second


def test_benchmarks_skip_the_races_of_the_evaluation():
    assert not set(HELD_OUT["benchmarks"]) & set(HELD_OUT["evaluation"])


@pytest.mark.parametrize(("kind", "splits"), [
    (TRAINING, {"train"}), (VALIDATION, {"validation"}), (HELD_OUT, {"test", "unseen_family", "unseen_circuit"})])
def test_each_use_has_its_splits(kind, splits):
    assert {split_of(*key) for races in kind.values() for key in races} == splits


def test_families_alternate_and_exclude_the_unseen_one():
    keys = ranges.race_keys("train", 3)
    assert [family for family, _ in keys[:len(ranges.TRAINED_FAMILIES)]] == list(ranges.TRAINED_FAMILIES)
    assert set(FAMILIES) - set(ranges.TRAINED_FAMILIES) == {UNSEEN_FAMILY}
    assert {split_of(*key) for key in keys} == {"train"}


def test_no_profile_exceeds_the_dagger_rounds():
    assert max(profile.sft.dagger_rounds for profile in PROFILES.values()) <= MAX_DAGGER_ROUNDS
