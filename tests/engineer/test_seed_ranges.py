"""No race of training, hints or selection is a race of another part, and none of them is held out."""
from itertools import combinations

from f1_pipelines.assets.engineer import DatasetConfig
from f1_pipelines.assets.strategy_evaluation import EngineerEvalConfig
from f1_pipelines.engineer.profiles import PROFILES
from f1_pipelines.engineer.seed_ranges import (
    DEMONSTRATIONS_START,
    GRPO_RACES,
    GRPO_START,
    HINTS_START,
    KL_PROBES_START,
    TRAINED_FAMILIES,
    dagger_keys,
    held_out_races,
    race_keys,
)


def test_no_two_parts_share_a_race():
    most = max(PROFILES.values(), key=lambda profile: profile.sft.rounds).sft
    parts = {
        "demonstrations": race_keys("train", DatasetConfig().races, start=DEMONSTRATIONS_START),
        **{f"dagger {number}": dagger_keys(most.round_races, number) for number in range(1, most.rounds + 1)},
        "hints": race_keys("train", EngineerEvalConfig().hint_races, start=HINTS_START),
        "kl probes": race_keys("train", 10, start=KL_PROBES_START),
        "grpo": race_keys("train", GRPO_RACES // len(TRAINED_FAMILIES), start=GRPO_START),
        "validation": race_keys("validation", DatasetConfig().validation_races),
        "held out": held_out_races(100, 20),
    }
    for (one, keys), (other, others) in combinations(parts.items(), 2):
        assert not set(keys) & set(others), f"{one} and {other} share races"
    assert all(len(keys) == len(set(keys)) for keys in parts.values())
