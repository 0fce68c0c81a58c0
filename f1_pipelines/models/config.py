"""Hyperparameters of a training, and the two configurations in use."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from f1_pipelines.features.ranking import CORE_FEATURES, REFERENCE_FEATURES

PRETRAINING_SEASONS = (2022, 2023, 2024, 2025)


@dataclass(frozen=True)
class TrainConfig:
    """Hyperparameters of one training.

    Attributes:
        model: Which model, by the name it has in `ranking.evaluation`.
        features: Columns it reads, in this order.
        seasons: Seasons to learn from, None for all of the frame.
        epochs: Times that each race is seen.
        races_per_step: Races in one optimizer step, None for all of them.
        lr: Learning rate of Adam at the start.
        lr_end: Share of it left at the end of a cosine, 1 for a constant one.
        weight_decay: Strength of the prior on the weights [races].
        temperature: Of ListNet, F1Net only.
        rookie_share: Share of ids replaced by the unknown id, F1Net only.
        retired_weight: What a car that was not classified counts in a pair, our ranker only.
        seed: The same seed and frame give the same weights.
        device: Where to train; the trained model comes back to the CPU.
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
