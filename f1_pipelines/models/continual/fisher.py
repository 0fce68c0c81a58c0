"""Fisher information: how much the loss of the training races depends on each weight.

Notable choices:
- The diagonal only, from the squared gradient of each race. Squares of a mean over races would shrink with their
  number.
- Gradients are of the training objective without its prior, in evaluation mode: no dropout, no ids replaced.
- The objective is a mean over the pairs of a race (for F1Net a KL divergence over its list), so values are small, 1e-7
  to 1e-3, and lambda of the penalty has to be large: see docs/lab-notes/continual-learning.md.
"""
from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace

import pandas as pd
import torch
from safetensors import SafetensorError
from safetensors.torch import load
from torch import Tensor, nn

from f1_pipelines.checkpoints.store import CheckpointError
from f1_pipelines.models.checkpoints import FISHER, Checkpoint
from f1_pipelines.models.trained import TrainedRanker
from f1_pipelines.models.training import objective, one_thread, training_races


def fisher_information(trained: TrainedRanker, rows: pd.DataFrame) -> dict[str, Tensor]:
    """Mean over races of the squared gradient of each race's loss, by parameter name, shaped as the parameter.

    Args:
        trained: The ranker; unchanged.
        rows: Starters of the ranker's training races with features and outcome.
    """
    batch = trained.batch(training_races(rows))
    config = replace(trained.config, rookie_share=0.0)
    parameters = dict(trained.model.named_parameters())
    fisher = {name: torch.zeros_like(parameter) for name, parameter in parameters.items()}
    trained.model.eval()
    with one_thread():
        for race in range(len(batch)):
            loss = objective(trained.model, batch.races(torch.tensor([race])), config, torch.Generator())
            gradients = torch.autograd.grad(loss, list(parameters.values()))
            for name, gradient in zip(parameters, gradients, strict=True):
                fisher[name] += gradient.square() / len(batch)
    return fisher


def check_fisher(fisher: Mapping[str, Tensor], model: nn.Module) -> None:
    """Check a Fisher against a model.

    Raises:
        ValueError: Names or shapes differ, or values are negative or not finite.
    """
    shapes = {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}
    fisher_shapes = {name: tuple(values.shape) for name, values in fisher.items()}
    if fisher_shapes != shapes:
        name = min(name for name in {*shapes, *fisher_shapes} if shapes.get(name) != fisher_shapes.get(name))
        raise ValueError(f"the Fisher is of another model: {name} has shape {fisher_shapes.get(name)}, the model's "
                         f"{shapes.get(name)}; compute it again from the pretraining races")
    for name, values in fisher.items():
        if not bool(torch.isfinite(values).all() and (values >= 0).all()):
            raise ValueError(f"the Fisher of {name} has values that are negative or not finite; compute it again from "
                             "the pretraining races")


def load_fisher(checkpoint: Checkpoint) -> dict[str, Tensor]:
    """Load the Fisher stored with a checkpoint.

    Raises:
        CheckpointError: It is missing or damaged, or of another model.
    """
    path, sha256 = checkpoint.path / FISHER, checkpoint.meta.get("fisher_sha256")
    if sha256 is None:
        raise CheckpointError(f"{checkpoint.path}: stored without a Fisher, which EWC needs; materialize "
                              "pretrained_ranker again, or choose method finetune")
    try:
        content = path.read_bytes()
    except OSError as missing:
        raise CheckpointError(f"{path}: can't be read ({missing}); materialize pretrained_ranker again") from missing
    if hashlib.sha256(content).hexdigest() != sha256:
        raise CheckpointError(f"{path}: damaged, its digest differs from meta.json; delete the folder "
                              f"{checkpoint.path.name} and materialize pretrained_ranker again")
    try:
        fisher = load(content)
        check_fisher(fisher, checkpoint.trained.model)
    except (SafetensorError, ValueError) as problem:
        raise CheckpointError(f"{path}: {problem}") from problem
    return fisher
