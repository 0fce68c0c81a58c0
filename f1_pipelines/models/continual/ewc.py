"""Elastic weight consolidation: a penalty for moving weights that earlier races depend on."""
from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from torch import Tensor, nn


def ewc_penalty(model: nn.Module, anchor: Mapping[str, Tensor], fisher: Mapping[str, Tensor]) -> Tensor:
    """Compute 0.5 * sum of F (w - w_anchor)^2, scalar. Anchor and Fisher have the model's names and shapes."""
    total = sum(((parameter - anchor[name]).square() * fisher[name]).sum() for name, parameter
                in model.named_parameters())
    return cast("Tensor", 0.5 * total)
