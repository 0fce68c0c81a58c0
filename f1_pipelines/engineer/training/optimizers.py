"""Muon for the matrices of a fresh model, AdamW for the rest: learns the same in a third of the time.

Measured in docs/lab-notes/race-engineer.md.

Muon orthogonalizes the update of each weight matrix (Jordan et al. 2024, https://kellerjordan.github.io/posts/muon/);
torch has it, for matrices only. Embeddings and norms keep AdamW, as its authors advise.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import torch
from torch import nn

ADAM_BETAS = (0.9, 0.98)


class MuonAndAdamW(torch.optim.Optimizer):
    """Both as one optimizer. Groups are those of the two; a scheduler scales each group's own rate."""

    def __init__(self, model: nn.Module, muon_lr: float, adam_lr: float, weight_decay: float) -> None:
        """
        Args:
            model: Its trainable matrices but for embeddings go to Muon.
            muon_lr: Of Muon.
            adam_lr: Of AdamW.
            weight_decay: Of the matrices; embeddings and norms have none.
        """
        matrices, rest = split_weights(model)
        self._parts: tuple[Any, ...] = (torch.optim.Muon(matrices, lr=muon_lr, weight_decay=weight_decay),
                       torch.optim.AdamW(rest, lr=adam_lr, betas=ADAM_BETAS, weight_decay=0.0))
        super().__init__([*matrices, *rest], {})
        self._share_groups()

    def step(self, closure: Callable[[], Any] | None = None) -> None:  # type: ignore[override]  # no closure is used
        """One step of both."""
        for part in self._parts:
            part.step()

    def state_dict(self) -> dict[str, Any]:
        """Of both."""
        return {"parts": [part.state_dict() for part in self._parts]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Of both."""
        for part, state in zip(self._parts, state_dict["parts"], strict=True):
            part.load_state_dict(state)
        self._share_groups()

    def _share_groups(self) -> None:
        """The very groups of the two, so that a rate set here is set there."""
        self.param_groups = [group for part in self._parts for group in part.param_groups]


def split_weights(model: nn.Module) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """Matrices that Muon may have, and all other trainable weights."""
    embeddings = {id(layer.weight) for layer in (cast("Any", model).get_input_embeddings(),
                                                 cast("Any", model).get_output_embeddings())}
    trained = [weights for weights in model.parameters() if weights.requires_grad]
    matrices = [weights for weights in trained if weights.ndim == 2 and id(weights) not in embeddings]
    chosen = set(map(id, matrices))
    return matrices, [weights for weights in trained if id(weights) not in chosen]
