"""Elastic weight consolidation: what mattered stays where it was."""
from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from torch import Tensor, nn


def ewc_penalty(model: nn.Module, anchor: Mapping[str, Tensor], fisher: Mapping[str, Tensor]) -> Tensor:
    """0.5 * sum of F (w - w_anchor)^2, scalar, 0 at the anchor. All three by parameter name and of equal shapes."""
    total = sum(((parameter - anchor[name]).square() * fisher[name]).sum() for name, parameter
                in model.named_parameters())
    return cast("Tensor", 0.5 * total)
