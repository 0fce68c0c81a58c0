"""Muon for the matrices of a fresh model, AdamW for the other weights: reaches the same loss in a third of the time.

Measured in docs/lab-notes/race-engineer.md.

Muon orthogonalizes the update of each weight matrix (Jordan et al. 2024, https://kellerjordan.github.io/posts/muon/);
torch implements it for matrices only. Embeddings and norms use AdamW, as its authors advise.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

if TYPE_CHECKING:
    from transformers import PreTrainedModel

ADAM_BETAS = (0.9, 0.98)


class MuonAndAdamW(torch.optim.Optimizer):
    """One optimizer with the parameter groups of both. A scheduler scales the learning rate of each group."""

    def __init__(self, model: PreTrainedModel, muon_lr: float, adam_lr: float, weight_decay: float) -> None:
        """
        Args:
            model: Muon trains its trainable matrices except embeddings, AdamW the rest.
            muon_lr: Learning rate of Muon.
            adam_lr: Learning rate of AdamW.
            weight_decay: Weight decay of the matrices; embeddings and norms have none.
        """
        matrices, rest = split_weights(model)
        self._parts: tuple[torch.optim.Optimizer, ...] = (
            torch.optim.Muon(matrices, lr=muon_lr, weight_decay=weight_decay),
            torch.optim.AdamW(rest, lr=adam_lr, betas=ADAM_BETAS, weight_decay=0.0))
        super().__init__([*matrices, *rest], {})
        self._share_groups()

    def step(self, closure: Callable[[], Any] | None = None) -> None:  # type: ignore[override]  # trainers pass none
        """Step both optimizers."""
        for part in self._parts:
            part.step()

    def state_dict(self) -> dict[str, Any]:
        """Return the states of both optimizers."""
        return {"parts": [part.state_dict() for part in self._parts]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load the states of both optimizers."""
        for part, state in zip(self._parts, state_dict["parts"], strict=True):
            part.load_state_dict(state)
        self._share_groups()

    def _share_groups(self) -> None:
        """Share the parameter groups of both, so that a learning rate set here applies there."""
        self.param_groups = [group for part in self._parts for group in part.param_groups]


def split_weights(model: PreTrainedModel) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """Split the trainable weights into matrices for Muon and the rest."""
    layers = model.get_input_embeddings(), model.get_output_embeddings()
    embeddings = {id(layer.weight) for layer in layers}
    trained = [weights for weights in model.parameters() if weights.requires_grad]
    matrices = [weights for weights in trained if weights.ndim == 2 and id(weights) not in embeddings]
    for_muon = set(map(id, matrices))
    return matrices, [weights for weights in trained if id(weights) not in for_muon]
