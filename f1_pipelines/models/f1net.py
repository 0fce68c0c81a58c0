"""F1Net, rebuilt from its public description as a reference to compare with.

Notable choices:
- Embeddings of size 16 for driver and constructor beside the numeric inputs, an MLP (64-64, dropout 0.25), one score
  per car. A score depends on the car's own inputs only, so any number of cars can be ranked, in any order.
- Row 0 of both embeddings is the unknown id. Training replaces one id in ten by it (`drop_to_unknown`), so that the row
  is trained.
- Mean and standard deviation of the inputs come from the training races and are buffers, saved and loaded with the
  weights. An unknown input becomes the mean.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, cast

import torch
from torch import Tensor, nn

from f1_pipelines.models.vocabulary import UNKNOWN


@dataclass(frozen=True)
class F1NetConfig:
    """Layer sizes. `drivers` and `constructors` include the row of the unknown id."""

    inputs: int
    drivers: int
    constructors: int
    embedding: int = 16
    hidden: int = 64
    dropout: float = 0.25


class F1Net(nn.Module):
    """One score per car from its numeric inputs, driver and constructor."""

    mean: Tensor  # (F,) of the inputs, to standardise them
    spread: Tensor  # (F,) standard deviation

    READ_OUT: ClassVar[tuple[str, ...]] = ("mlp.3", "mlp.6")  # parameters after the first layer

    def __init__(self, config: F1NetConfig) -> None:
        super().__init__()
        self.config = config
        self.driver = nn.Embedding(config.drivers, config.embedding)
        self.constructor = nn.Embedding(config.constructors, config.embedding)
        self.mlp = nn.Sequential(
            nn.Linear(config.inputs + 2 * config.embedding, config.hidden), nn.ReLU(), nn.Dropout(config.dropout),
            nn.Linear(config.hidden, config.hidden), nn.ReLU(), nn.Dropout(config.dropout),
            nn.Linear(config.hidden, 1))
        self.register_buffer("mean", torch.zeros(config.inputs))
        self.register_buffer("spread", torch.ones(config.inputs))

    def standardise_by(self, numeric: Tensor, entered: Tensor) -> None:
        """Set mean and spread of each input from these races. numeric (B, N, F) with NaN = unknown."""
        cars = numeric[entered].double()  # (cars, F)
        known = ~torch.isnan(cars)
        count = known.sum(dim=0).clamp(min=1)
        mean = torch.where(known, cars, 0.0).sum(dim=0) / count
        spread = (torch.where(known, cars - mean, 0.0).square().sum(dim=0) / count).sqrt()
        self.mean.copy_(mean)
        self.spread.copy_(torch.where(spread > 1e-6, spread, torch.ones_like(spread)))

    def forward(self, numeric: Tensor, driver: Tensor, constructor: Tensor, entered: Tensor) -> Tensor:
        """Score a grid, higher = further ahead. numeric (B, N, F), the others (B, N) -> (B, N), -inf in empty slots."""
        inputs = torch.nan_to_num((numeric - self.mean) / self.spread, nan=0.0)
        cars = torch.cat([inputs, self.driver(driver), self.constructor(constructor)], dim=-1)  # (B, N, F + 32)
        return self.mlp(cars).squeeze(-1).masked_fill(~entered, float("-inf"))

    def penalty(self) -> Tensor:
        """Sum of squares of the MLP's weights, scalar; without embeddings and biases."""
        return cast("Tensor", sum(layer.weight.square().sum() for layer in self.mlp if isinstance(layer, nn.Linear)))


def drop_to_unknown(rows: Tensor, share: float, generator: torch.Generator) -> Tensor:
    """Replace a random share of the ids (B, N) by the unknown id."""
    dropped = torch.rand(rows.shape, generator=generator).to(rows.device) < share
    return rows.masked_fill(dropped, UNKNOWN)
