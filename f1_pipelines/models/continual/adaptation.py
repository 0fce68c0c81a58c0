"""Adaptation to a new season: embedding rows for new drivers and teams.

Notable choices:
- Ids outside the vocabulary are new. Their rows are appended, so that existing rows keep their numbers.
- A new row starts as a copy of the unknown row: before its first race, a newcomer is ranked like any unknown driver.
- Frozen weights have their gradient masked. Adam's state is new in each update and there is no weight decay, so a
  gradient of 0 leaves a weight bit-identical.
- Our ranker has no embeddings: growing it only extends its vocabularies, and every weight adapts.
"""
from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from typing import cast

import pandas as pd
import torch
from torch import Tensor, nn

from f1_pipelines.models.continual.settings import UpdateConfig
from f1_pipelines.models.f1net import F1Net
from f1_pipelines.models.ranker import Ranker
from f1_pipelines.models.trained import TrainedRanker
from f1_pipelines.models.vocabulary import UNKNOWN, Vocabulary

_EMBEDDINGS = {"driver": "driver.weight", "constructor": "constructor.weight"}


def adapt(trained: TrainedRanker, rows: pd.DataFrame) -> TrainedRanker:
    """Copy the ranker, with an embedding row for every driver and team in these rows."""
    return grow(trained, trained.drivers.grown(rows["driver"]), trained.constructors.grown(rows["constructor"]))


def grow(trained: TrainedRanker, drivers: Vocabulary, constructors: Vocabulary) -> TrainedRanker:
    """Copy the ranker with these vocabularies, which extend its own. Its scores stay the same."""
    model = trained.model
    if not isinstance(model, F1Net):
        return replace(trained, model=deepcopy(model), drivers=drivers, constructors=constructors)
    with torch.random.fork_rng(devices=[]):  # loaded weights replace the random ones
        grown = F1Net(replace(model.config, drivers=len(drivers), constructors=len(constructors)))
    state = model.state_dict()
    for name in _EMBEDDINGS.values():
        known = state[name]
        newcomers = grown.get_parameter(name).shape[0] - known.shape[0]
        state[name] = torch.cat([known, known[UNKNOWN].expand(newcomers, -1)])
    grown.load_state_dict(state)
    return replace(trained, model=grown.eval(), drivers=drivers, constructors=constructors)


def grow_fisher(fisher: Mapping[str, Tensor], model: nn.Module) -> dict[str, Tensor]:
    """Extend the Fisher information to a grown model: 0 for new rows, which no earlier race depends on."""
    grown = {}
    for name, parameter in model.named_parameters():
        grown[name] = torch.zeros_like(parameter)
        grown[name][tuple(slice(size) for size in fisher[name].shape)] = fisher[name]
    return grown


def may_learn(trained: TrainedRanker, pretrained: TrainedRanker, settings: UpdateConfig) -> dict[str, Tensor]:
    """Masks of the weights that an update may change, by parameter name: bool, shaped as the parameter.

    Args:
        trained: The ranker, already grown.
        pretrained: Pretrained ranker; ids outside its vocabularies are newcomers.
        settings: `method` and `freeze_drivers` determine the frozen weights.

    Raises:
        ValueError: Method `constructors` with a model without a constructor embedding.
    """
    if settings.method == "constructors" and not isinstance(trained.model, F1Net):
        raise ValueError(f"{trained.config.model} has no constructor embedding, so method constructors would learn "
                         "nothing; choose another method")
    known = {"driver.weight": len(pretrained.drivers), "constructor.weight": len(pretrained.constructors)}
    masks = {}
    for name, parameter in trained.model.named_parameters():
        learns = {"freeze": name.startswith(cast("F1Net | Ranker", trained.model).READ_OUT),
                  "constructors": name == _EMBEDDINGS["constructor"]}.get(settings.method, True)
        if name == _EMBEDDINGS["driver"] and settings.freeze_drivers:
            learns = False
        masks[name] = torch.full(parameter.shape, learns)
        if name in known:
            masks[name][known[name]:] = True  # newcomers always learn
    return masks
