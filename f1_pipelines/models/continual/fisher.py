"""Fisher information: how much each weight matters to the races that were learnt from.

Notable choices:
- The diagonal, from the squared gradient of each race alone. Squares of a mean over races would shrink with their
  number and say nothing.
- Of the training objective, without its prior, in evaluation mode: no dropout, no ids dropped to the rookie.
- The objective is a mean over the pairs of a race (a KL over its list, for F1Net), so the numbers are small, 1e-7 to
  1e-3, and the penalty's lambda has to be large: see docs/lab-notes/continual-learning.md.
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
        trained: The ranker; left as it is.
        rows: Starters of run races with features and outcome, those that the ranker learnt from.
    """
    batch = trained.batch(training_races(rows))
    still = replace(trained.config, rookie_share=0.0)
    parameters = dict(trained.model.named_parameters())
    fisher = {name: torch.zeros_like(parameter) for name, parameter in parameters.items()}
    trained.model.eval()
    with one_thread():
        for race in range(len(batch)):
            loss = objective(trained.model, batch.races(torch.tensor([race])), still, torch.Generator())
            gradients = torch.autograd.grad(loss, list(parameters.values()))
            for name, gradient in zip(parameters, gradients, strict=True):
                fisher[name] += gradient.square() / len(batch)
    return fisher


def check_fisher(fisher: Mapping[str, Tensor], model: nn.Module) -> None:
    """`ValueError` where the Fisher is not that of a model of these shapes, or holds what no square can be."""
    shapes = {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}
    given = {name: tuple(values.shape) for name, values in fisher.items()}
    if given != shapes:
        odd = sorted(name for name in {*shapes, *given} if shapes.get(name) != given.get(name))
        raise ValueError(f"the Fisher is of another model: {odd[0]} has shape {given.get(odd[0])}, the model's "
                         f"{shapes.get(odd[0])}; compute it again from the pretraining races")
    for name, values in fisher.items():
        if not bool(torch.isfinite(values).all() and (values >= 0).all()):
            raise ValueError(f"the Fisher of {name} has values that are negative or not finite; compute it again from "
                             "the pretraining races")


def load_fisher(checkpoint: Checkpoint) -> dict[str, Tensor]:
    """The Fisher stored beside a checkpoint. `CheckpointError` where there is none or it can't be used."""
    path, known = checkpoint.path / FISHER, checkpoint.meta.get("fisher_sha256")
    if known is None:
        raise CheckpointError(f"{checkpoint.path}: stored without a Fisher, so EWC does not know what to keep; "
                              "materialize pretrained_ranker again, or choose method finetune")
    try:
        content = path.read_bytes()
    except OSError as missing:
        raise CheckpointError(f"{path}: can't be read ({missing}); materialize pretrained_ranker again") from missing
    if hashlib.sha256(content).hexdigest() != known:
        raise CheckpointError(f"{path}: not the Fisher that meta.json names, it is damaged; delete the folder "
                              f"{checkpoint.path.name} and materialize pretrained_ranker again")
    try:
        fisher = load(content)
        check_fisher(fisher, checkpoint.trained.model)
    except (SafetensorError, ValueError) as odd:
        raise CheckpointError(f"{path}: {odd}") from odd
    return fisher
