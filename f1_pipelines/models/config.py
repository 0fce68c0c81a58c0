"""Hyperparameters of training, and the two configurations in use."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from f1_pipelines.features.ranking import CORE_FEATURES, REFERENCE_FEATURES

PRETRAINING_SEASONS = (2022, 2023, 2024, 2025)


@dataclass(frozen=True)
class TrainConfig:
    """Hyperparameters of one training.

    Attributes:
        model: Model architecture, as named in `ranking.evaluation`.
        features: Input columns, in this order.
        seasons: Seasons to train on, None for all of the frame.
        epochs: Passes over the races.
        races_per_step: Races per optimizer step, None for all.
        lr: Initial learning rate of Adam.
        lr_end: Final learning rate of the cosine schedule, as a share of `lr`; 1 for a constant rate.
        weight_decay: Strength of the prior on the weights [races].
        temperature: Temperature of ListNet, F1Net only.
        rookie_share: Share of ids replaced by the unknown id, F1Net only.
        retired_weight: Weight of an unclassified car in a pair, our ranker only.
        seed: Random seed; the same seed and frame give the same weights.
        device: Training device; the trained model is returned on the CPU.
    """

    model: Literal["champion", "f1net_reference"] = "champion"
    features: tuple[str, ...] = CORE_FEATURES
    seasons: tuple[int, ...] | None = PRETRAINING_SEASONS
    epochs: int = 250
    races_per_step: int | None = None
    lr: float = 0.01
    lr_end: float = 0.02
    weight_decay: float = 0.6
    temperature: float = 3.4
    rookie_share: float = 0.0
    retired_weight: float = 0.5
    seed: int = 0
    device: str = "cpu"


RANKER = TrainConfig()
F1NET = TrainConfig(
    model="f1net_reference", features=REFERENCE_FEATURES, epochs=100, races_per_step=4, lr=1e-3, lr_end=1.0,
    weight_decay=0.0, rookie_share=0.1)
