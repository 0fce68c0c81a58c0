"""Our ranker: a line through what is known of a car against its field, and a small net for what the line misses.

Notable choices, each measured in docs/lab-notes/ranker.md:
- Every input is taken within its race (`in_race`): seconds and per cents tell circuits apart, not cars. Nothing is
  learnt about the scale of an input, so nothing can go stale at serving.
- No driver or team embeddings: they help on random splits and hurt on the season to come.
- The line does nearly all of the work; the residual starts small and sees heavy dropout. Training on 20 races must not
  end in nonsense.
- Unknown inputs are the middle of the field. The line adds up evidence, so with practice or form alone the order is
  still a sane one.
- A score is a log odds: the difference of two cars is the log odds that the one finishes ahead.
- The ensemble is one model with a leading dimension M, trained in one go; the score is the mean of its members.
- It learns by pairs (`pairwise`). ListNet on top seemed to name more winners and cost 0.001 of Spearman.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

OUTLIER = 3.0  # spreads from the mean of the race; further out says no more


@dataclass(frozen=True)
class RankerConfig:
    """Sizes of the ranker. `as_places` are the inputs that count by their order in the race, not by their amount."""

    inputs: int
    as_places: tuple[int, ...] = ()
    members: int = 5
    hidden: int = 32
    dropout: float = 0.5


class Ranker(nn.Module):
    """M rankers side by side; what they say of a car is averaged."""

    READ_OUT: ClassVar[tuple[str, ...]] = ("line", "narrow")  # parameters that the score is a sum over

    def __init__(self, config: RankerConfig) -> None:
        super().__init__()
        self.config = config
        members, inputs, hidden = config.members, config.inputs, config.hidden
        self.line = nn.Parameter(torch.zeros(members, inputs, 1))
        self.widen = nn.Parameter(torch.randn(members, inputs, hidden) / inputs**0.5)
        self.bias = nn.Parameter(torch.randn(members, 1, hidden) * 0.1)
        self.narrow = nn.Parameter(torch.randn(members, hidden, 1) * 0.1 / hidden**0.5)
        self.dropout = nn.Dropout(config.dropout)

    def members(self, numeric: Tensor, entered: Tensor) -> Tensor:
        """What each member says. numeric (B, N, F), entered (B, N) -> (M, B, N), -inf in empty slots."""
        races, cars, inputs = numeric.shape
        flat = in_race(numeric, entered, self.config.as_places).reshape(1, races * cars, inputs)
        flat = flat.expand(self.config.members, -1, -1)  # (M, B N, F)
        hidden = self.dropout(torch.tanh(self.bias + flat @ self.widen))  # (M, B N, H)
        scores = (flat @ self.line + hidden @ self.narrow).reshape(self.config.members, races, cars)
        return scores.masked_fill(~entered, float("-inf"))

    def forward(self, numeric: Tensor, driver: Tensor, constructor: Tensor, entered: Tensor) -> Tensor:
        """Score a grid, higher = further ahead. numeric (B, N, F), the others (B, N) -> (B, N), -inf in empty slots.

        Who drives and for whom makes no difference; they are taken so that both models are called alike.
        """
        return self.members(numeric, entered).mean(dim=0)

    def penalty(self) -> Tensor:
        """Squares of the weights, mean over members, scalar; the residual's count a thirtieth (dropout holds it)."""
        residual = self.widen.square().sum() + self.narrow.square().sum()
        return (self.line.square().sum() + residual / 30) / self.config.members


def in_race(numeric: Tensor, entered: Tensor, as_places: tuple[int, ...] = ()) -> Tensor:
    """Inputs against those of the same race: mean 0, spread 1, at most `OUTLIER`; 0 where unknown or empty.

    Args:
        numeric: (B, N, F), NaN = unknown.
        entered: (B, N) bool.
        as_places: Inputs to replace by their place (0 = lowest) among the known ones first.

    Returns:
        (B, N, F), finite.
    """
    known = ~torch.isnan(numeric) & entered.unsqueeze(-1)
    values = torch.where(known, numeric, 0.0)
    if as_places:
        index = list(as_places)
        values = values.index_copy(-1, torch.tensor(index, device=values.device),
                                   _places(values[..., index], known[..., index]))
    count = known.sum(dim=1, keepdim=True)
    mean = values.sum(dim=1, keepdim=True) / count.clamp(min=1)
    apart = torch.where(known, values - mean, 0.0)
    spread = (apart.square().sum(dim=1, keepdim=True) / (count - 1).clamp(min=1)).sqrt()
    told_apart = spread > 1e-5 * (1 + mean.abs())  # a field that is all alike differs by rounding only
    return torch.where(told_apart, apart / spread.clamp(min=1e-12), 0.0).clamp(-OUTLIER, OUTLIER)


def _places(values: Tensor, known: Tensor) -> Tensor:
    """How many known values of the race lie below each, ties sharing; (B, N, F) -> (B, N, F), 0 where unknown."""
    own, other = values.unsqueeze(2), values.unsqueeze(1)  # (B, N, 1, F), (B, 1, N, F)
    below = (other < own).to(values.dtype) + 0.5 * (other == own)
    return torch.where(known, (below * known.unsqueeze(1)).sum(dim=2), 0.0)
