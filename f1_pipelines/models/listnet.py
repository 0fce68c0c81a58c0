"""ListNet: the softmax of the scores should be the softmax of what each car's place is worth.

Notable choices:
- Relevance is n - place, so the winner's list entry is the largest whatever the field. At temperature 3.4 the podium
  holds 59 % of the target; a softmax of the place itself would put 86 % of it on the last two cars, the retirements.
- Empty slots are cut out before anything is computed, so a list costs the same at any padding width, and neither the
  -inf of an empty slot nor a list without two cars can turn into NaN.
"""
from __future__ import annotations

import torch
from torch import Tensor


def relevance(order: Tensor, entered: Tensor) -> Tensor:
    """What a place is worth: entered cars minus the place, 0 in empty slots. order (B, N), 1 = winner -> (B, N)."""
    field = entered.sum(dim=-1, keepdim=True)
    return torch.where(entered, field - order, torch.zeros_like(order))


def listnet_loss(scores: Tensor, targets: Tensor, entered: Tensor, temperature: float) -> Tensor:
    """KL(softmax(targets / T) || softmax(scores / T)) over the entered cars, mean over races, scalar.

    Args:
        scores: (B, N) or (M, B, N), higher = further ahead; empty slots may hold anything.
        targets: (B, N), higher = further ahead; empty slots may hold anything.
        entered: (B, N) bool. A list with fewer than two entered cars adds a zero that gradients still flow through.
        temperature: T > 0; low looks at the head of the field only, high at all of it alike.
    """
    counts = entered & (entered.sum(dim=-1, keepdim=True) >= 2)
    predicted = _log_softmax(scores / temperature, counts)
    wanted = _log_softmax(targets / temperature, counts)
    divergence = torch.where(counts, wanted.exp() * (wanted - predicted), torch.zeros_like(predicted)).sum(dim=-1)
    return divergence.mean() if divergence.numel() else scores.sum() * 0.0


def _log_softmax(values: Tensor, counts: Tensor) -> Tensor:
    """Log of the share of each counted slot, finite everywhere; (..., N) -> (..., N)."""
    lowest = torch.finfo(values.dtype).min / 4  # finite: -inf minus -inf would be NaN in a list without cars
    return torch.log_softmax(torch.where(counts, values, torch.full_like(values, lowest)), dim=-1)
