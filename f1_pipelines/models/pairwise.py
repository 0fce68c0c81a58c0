"""Pairwise loss: the Bradley-Terry likelihood of all pairs of cars in a race.

Notable choices:
- One logistic term per pair, averaged over the pairs of the race: a swap costs the same anywhere in the field, as in a
  rank correlation. ListNet weighs the top places.
- The place of an unclassified car says little about pace, so each one in a pair scales its term by `retired_weight`.
"""
from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import softplus


def pairwise_loss(
    scores: Tensor, order: Tensor, entered: Tensor, classified: Tensor, retired_weight: float = 1.0,
) -> Tensor:
    """-log sigmoid(score of the car ahead - score of the car behind), mean over pairs, then over races, scalar.

    Args:
        scores: (B, N) or (M, B, N), higher = further ahead; empty slots may hold anything.
        order: (B, N), 1 = winner; empty slots may hold anything.
        entered: (B, N) bool. A race with fewer than two entered cars adds a zero with gradients.
        classified: (B, N) bool.
        retired_weight: Weight of an unclassified car, from 0 (ignored) to 1 (as any other car).
    """
    finite = torch.where(entered, scores, torch.zeros_like(scores))
    margin = finite.unsqueeze(-1) - finite.unsqueeze(-2)  # (..., B, N, N): row car minus column car
    weight = torch.where(classified, 1.0, retired_weight).to(scores.dtype) * entered  # (B, N)
    ahead = order.unsqueeze(-1) < order.unsqueeze(-2)
    pairs = torch.where(ahead, weight.unsqueeze(-1) * weight.unsqueeze(-2), 0.0)  # (B, N, N)
    field = entered.sum(dim=-1).clamp(min=2)
    per_race = (softplus(-margin) * pairs).sum(dim=(-2, -1)) / (field * (field - 1) / 2)
    return per_race.mean() if per_race.numel() else scores.sum() * 0.0
