"""ListNet: KL divergence between the softmax of the scores and the softmax of each car's relevance.

Notable choices:
- Relevance is n - place, so the winner has the largest. At temperature 3.4 the podium holds 59 % of the target; a
  softmax of the place itself would put 86 % of it on the last two cars, the retirements.
- Empty slots are masked before anything is computed, so padding changes no loss, and neither the -inf of an empty slot
  nor a list with fewer than two cars becomes NaN.
"""
from __future__ import annotations

import torch
from torch import Tensor


def relevance(order: Tensor, entered: Tensor) -> Tensor:
    """Relevance: entered cars minus the place, 0 in empty slots. order (B, N), 1 = winner -> (B, N)."""
    field = entered.sum(dim=-1, keepdim=True)
    return torch.where(entered, field - order, torch.zeros_like(order))


def listnet_loss(scores: Tensor, targets: Tensor, entered: Tensor, temperature: float) -> Tensor:
    """KL(softmax(targets / T) || softmax(scores / T)) over the entered cars, mean over races, scalar.

    Args:
        scores: (B, N) or (M, B, N), higher = further ahead; empty slots may hold anything.
        targets: (B, N), higher = further ahead; empty slots may hold anything.
        entered: (B, N) bool. A list with fewer than two entered cars adds a zero with gradients.
        temperature: T > 0; a low one weighs the top places only, a high one all places alike.
    """
    valid = entered & (entered.sum(dim=-1, keepdim=True) >= 2)
    predicted = _log_softmax(scores / temperature, valid)
    target = _log_softmax(targets / temperature, valid)
    divergence = torch.where(valid, target.exp() * (target - predicted), torch.zeros_like(predicted)).sum(dim=-1)
    return divergence.mean() if divergence.numel() else scores.sum() * 0.0


def _log_softmax(values: Tensor, valid: Tensor) -> Tensor:
    """Log softmax over the counted slots, finite everywhere; (..., N) -> (..., N)."""
    lowest = torch.finfo(values.dtype).min / 4  # finite: -inf minus -inf would be NaN in a list without cars
    return torch.log_softmax(torch.where(valid, values, torch.full_like(values, lowest)), dim=-1)
