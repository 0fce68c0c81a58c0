"""Our ranker: a linear model of each car's inputs relative to its field, plus a small network for the residual.

Notable choices, each measured in docs/lab-notes/ranker.md:
- Inputs are standardised within their race (`in_race`): raw seconds and percentages separate circuits, not cars. No
  scale of an input is learnt, so none can be outdated when serving.
- No driver or team embeddings: they help on random splits and hurt on the following season.
- The linear part does nearly all of the work. The residual starts small and has heavy dropout, so that training on 20
  races stays sensible.
- Unknown inputs count as the middle of the field. The linear part adds up evidence, so practice or form alone still
  give a sensible order.
- Scores are log odds: the difference of two cars' scores is the log odds that the first finishes ahead.
- The ensemble is one model with a leading dimension M, trained together; the score is the mean of its members.
- It is trained on pairs (`pairwise`). Adding ListNet seemed to find more winners, but cost 0.001 of Spearman.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

OUTLIER = 3.0  # clip at this many standard deviations from the mean of the race


@dataclass(frozen=True)
class RankerConfig:
    """Layer sizes. `as_places` are the inputs that are replaced by their rank in the race."""

    inputs: int
    as_places: tuple[int, ...] = ()
    members: int = 5
    hidden: int = 32
    dropout: float = 0.5


class Ranker(nn.Module):
    """Ensemble of M rankers; the score is their mean."""

    READ_OUT: ClassVar[tuple[str, ...]] = ("line", "narrow")  # parameters of the last layer

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
        """Scores of each member. numeric (B, N, F), entered (B, N) -> (M, B, N), -inf in empty slots."""
        races, cars, inputs = numeric.shape
        flat = in_race(numeric, entered, self.config.as_places).reshape(1, races * cars, inputs)
        flat = flat.expand(self.config.members, -1, -1)  # (M, B N, F)
        hidden = self.dropout(torch.tanh(self.bias + flat @ self.widen))  # (M, B N, H)
        scores = (flat @ self.line + hidden @ self.narrow).reshape(self.config.members, races, cars)
        return scores.masked_fill(~entered, float("-inf"))

    def forward(self, numeric: Tensor, driver: Tensor, constructor: Tensor, entered: Tensor) -> Tensor:
        """Score a grid, higher = further ahead. numeric (B, N, F), the others (B, N) -> (B, N), -inf in empty slots.

        `driver` and `constructor` have no effect; they give both models the same signature.
        """
        return self.members(numeric, entered).mean(dim=0)

    def penalty(self) -> Tensor:
        """Sum of squared weights, mean over members, scalar; the residual's count 1/30, since it has dropout."""
        residual = self.widen.square().sum() + self.narrow.square().sum()
        return (self.line.square().sum() + residual / 30) / self.config.members


def in_race(numeric: Tensor, entered: Tensor, as_places: tuple[int, ...] = ()) -> Tensor:
    """Standardise inputs within each race: mean 0, spread 1, clipped at `OUTLIER`; 0 where unknown or empty.

    Args:
        numeric: (B, N, F), NaN = unknown.
        entered: (B, N) bool.
        as_places: Inputs to first replace by their rank (0 = lowest) among the known ones.

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
    centred = torch.where(known, values - mean, 0.0)
    spread = (centred.square().sum(dim=1, keepdim=True) / (count - 1).clamp(min=1)).sqrt()
    varies = spread > 1e-5 * (1 + mean.abs())  # equal values may differ by rounding
    return torch.where(varies, centred / spread.clamp(min=1e-12), 0.0).clamp(-OUTLIER, OUTLIER)


def _places(values: Tensor, known: Tensor) -> Tensor:
    """Number of known values of the race below each, ties count half; (B, N, F) -> (B, N, F), 0 where unknown."""
    own, other = values.unsqueeze(2), values.unsqueeze(1)  # (B, N, 1, F), (B, 1, N, F)
    below = (other < own).to(values.dtype) + 0.5 * (other == own)
    return torch.where(known, (below * known.unsqueeze(1)).sum(dim=2), 0.0)
