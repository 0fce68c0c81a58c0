"""Which seeds each part of training and evaluation draws its races from.

A range counts the seeds of one split of one family: `race_keys("train", 24, start=HINTS_START)` are the training seeds
number 10,000 to 10,023 of each family. Ranges of the same split must not overlap (tests/engineer/test_seed_ranges.py).
"""
from __future__ import annotations

from collections.abc import Sequence

from f1_pipelines.sim.scenarios import FAMILIES, UNSEEN_FAMILY, seeds_of

RaceKey = tuple[str, int]  # family, seed
TRAINED_FAMILIES = tuple(name for name in FAMILIES if name != UNSEEN_FAMILY)

# Split "train".
DEMONSTRATIONS_START = 0  # races of the expert, and validation turns in the split of that name
DAGGER_START, DAGGER_ROUND = 5_000, 1_000  # first seed of round 1 less one round; seeds reserved for each round
HINTS_START = 10_000  # races whose post-mortems become memory hints
KL_PROBES_START = 19_000  # prompts on which GRPO measures its distance from the SFT policy
GRPO_START, GRPO_RACES = 20_000, 4_000  # races that GRPO samples from, of all families together

# A rejection round draws from GRPO's races with a step number that no training reaches.
REJECTION_FIRST_STEP = 1_000_000


def race_keys(split: str, count: int, families: Sequence[str] = TRAINED_FAMILIES, start: int = 0) -> list[RaceKey]:
    """Family and seed of races of a split, families in turn.

    Args:
        split: Split of the scenarios, such as `train`.
        count: Seeds of each family.
        families: Scenario families.
        start: Seeds of the split to leave out first.
    """
    by_family = {family: seeds_of(family, split, count, start) for family in families}
    return [(family, by_family[family][k]) for k in range(count) for family in families]


def dagger_keys(races: int, number: int) -> list[RaceKey]:
    """The races of a DAgger round.

    Args:
        races: Races of each trained family.
        number: Number of the round, from 1.
    """
    return race_keys("train", races, start=DAGGER_START + DAGGER_ROUND * number)


def held_out_races(count: int, unseen_circuits: int = 0, skip: int = 0) -> list[RaceKey]:
    """The races of an evaluation, none of which anything is trained or selected on.

    Args:
        count: Races of each family: seeds of the test split, and of the family that is never trained on.
        unseen_circuits: Races of each trained family on circuits that are never trained on.
        skip: Seeds of each to leave out first.
    """
    keys = race_keys("test", skip + count)[skip * len(TRAINED_FAMILIES):]
    keys += race_keys("unseen_family", skip + count, (UNSEEN_FAMILY,))[skip:]
    return keys + race_keys("unseen_circuit", skip + unseen_circuits)[skip * len(TRAINED_FAMILIES):]
