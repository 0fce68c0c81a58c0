"""All ranges of race seeds for training and evaluating engineers.

`seeds_of` assigns each seed of a family to one split (train, validation, test or unseen_circuit; unseen_family for the
family that is never trained on), so races of different splits never coincide. Within a split, each use takes the
split's seeds from its own start on; tests/engineer/test_seed_ranges.py checks that no uses overlap.
"""
from __future__ import annotations

from collections.abc import Sequence

from f1_pipelines.sim.scenarios import FAMILIES, UNSEEN_FAMILY, seeds_of

RaceKey = tuple[str, int]  # family, seed
TRAINED_FAMILIES = tuple(name for name in FAMILIES if name != UNSEEN_FAMILY)

# Train split.
DEMONSTRATIONS_START = 0  # races that the expert drives (`sft_dataset`)
DAGGER_START, SEEDS_PER_DAGGER_ROUND = 5_000, 1_000  # races that the student drives; round 1 starts at 6,000
HINTS_START = 10_000  # races whose post-mortems become hints (`strategy_evaluation`)
KL_PROBES_START = 19_000  # states at which the drift from the SFT policy is measured
GRPO_START, GRPO_RACES = 20_000, 4_000  # races of the GRPO rollouts, of all trained families together

# Validation split: turns held out from SFT (`sft_dataset`), and races that select the GRPO checkpoint.
VALIDATION_START = 0

# Test, unseen_family and unseen_circuit splits: reported, never used for training or selection.
# `strategy_evaluation` and `f1 policies` (`sim.policies.episodes`) use the first seeds; benchmarks skip those.
HELD_OUT_SKIPPED_BY_BENCHMARKS = 400


def race_keys(split: str, count: int, families: Sequence[str] = TRAINED_FAMILIES, start: int = 0) -> list[RaceKey]:
    """Return each family's first `count` seeds of the split from `start` on, families alternating."""
    by_family = {family: seeds_of(family, split, count, start) for family in families}
    return [(family, by_family[family][k]) for k in range(count) for family in families]


def demonstration_races(split: str, count: int) -> list[RaceKey]:
    """Return the expert's races: `count` of each trained family, of the train or validation split."""
    return race_keys(split, count, start=DEMONSTRATIONS_START if split == "train" else VALIDATION_START)


def dagger_races(number: int, count: int) -> list[RaceKey]:
    """Return the student's races in DAgger round `number` (from 1): `count` of each trained family."""
    return race_keys("train", count, start=DAGGER_START + SEEDS_PER_DAGGER_ROUND * number)


def hint_races(count: int) -> list[RaceKey]:
    """Return the training races whose post-mortems become hints: `count` of each trained family."""
    return race_keys("train", count, start=HINTS_START)


def grpo_races() -> list[RaceKey]:
    """Return the pool of races from which each GRPO step draws."""
    return race_keys("train", GRPO_RACES // len(TRAINED_FAMILIES), start=GRPO_START)


def kl_probe_races(count: int) -> list[RaceKey]:
    """Return `count` races, of all families together, in which the policy is compared with the SFT policy."""
    return race_keys("train", -(-count // len(TRAINED_FAMILIES)), start=KL_PROBES_START)[:count]


def selection_races(count: int) -> list[RaceKey]:
    """Return the validation races that select the GRPO checkpoint: `count` of each trained family."""
    return race_keys("validation", count, start=VALIDATION_START)


def held_out_races(count: int, unseen_circuits: int = 0, skip: int = 0) -> list[RaceKey]:
    """Return the races for evaluating engineers.

    Args:
        count: Races of each family: test seeds of trained families, and seeds of the family that is never trained on.
        unseen_circuits: Races of each trained family on circuits that are never trained on.
        skip: First seeds of each family and split to skip.
    """
    keys = race_keys("test", skip + count)[skip * len(TRAINED_FAMILIES):]
    keys += race_keys("unseen_family", skip + count, (UNSEEN_FAMILY,))[skip:]
    return keys + race_keys("unseen_circuit", skip + unseen_circuits)[skip * len(TRAINED_FAMILIES):]
