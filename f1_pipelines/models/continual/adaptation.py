"""A new season: unseen drivers and teams get embedding rows of their own; known ones keep theirs.

Notable choices:
- Who is new is found by comparing with the vocabulary, never by name or index. New rows come behind the known ones, so
  that a row keeps its number for ever.
- A newcomer starts as a copy of the unknown row: before its first race it is ranked like any unknown driver.
- What must not learn is masked in the gradient. Adam starts afresh with each update and has no weight decay, so a
  gradient that is always 0 leaves a row bit by bit as it was.
- Our ranker has no embeddings: all of it adapts, and growing changes nothing but its lists of names.
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
    """A copy of the ranker with an embedding row for every driver and team in these rows."""
    return grow(trained, trained.drivers.grown(rows["driver"]), trained.constructors.grown(rows["constructor"]))


def grow(trained: TrainedRanker, drivers: Vocabulary, constructors: Vocabulary) -> TrainedRanker:
    """The same ranker with these vocabularies, which begin with its own. A copy; it scores as before."""
    model = trained.model
    if not isinstance(model, F1Net):
        return replace(trained, model=deepcopy(model), drivers=drivers, constructors=constructors)
    with torch.random.fork_rng(devices=[]):  # first weights are drawn and thrown away
        grown = F1Net(replace(model.config, drivers=len(drivers), constructors=len(constructors)))
    state = model.state_dict()
    for name in _EMBEDDINGS.values():
        known = state[name]
        newcomers = grown.get_parameter(name).shape[0] - known.shape[0]
        state[name] = torch.cat([known, known[UNKNOWN].expand(newcomers, -1)])
    grown.load_state_dict(state)
    return replace(trained, model=grown.eval(), drivers=drivers, constructors=constructors)


def grow_fisher(fisher: Mapping[str, Tensor], model: nn.Module) -> dict[str, Tensor]:
    """The Fisher for a grown model: 0 for rows that came since, for nothing learnt so far depends on them."""
    grown = {}
    for name, parameter in model.named_parameters():
        grown[name] = torch.zeros_like(parameter)
        grown[name][tuple(slice(size) for size in fisher[name].shape)] = fisher[name]
    return grown


def may_learn(trained: TrainedRanker, pretrained: TrainedRanker, settings: UpdateConfig) -> dict[str, Tensor]:
    """Which weights an update may move, by parameter name: bool, shaped as the parameter.

    Args:
        trained: The ranker, grown to all it is to learn from.
        pretrained: Whom this one knows is no newcomer.
        settings: `method` and `freeze_drivers` say what is held still.
    """
    if settings.method == "constructors" and not isinstance(trained.model, F1Net):
        raise ValueError(f"{trained.config.model} has no constructor embedding, so method constructors would learn "
                         "nothing; choose another one")
    known = {"driver.weight": len(pretrained.drivers), "constructor.weight": len(pretrained.constructors)}
    masks = {}
    for name, parameter in trained.model.named_parameters():
        free = {"freeze": name.startswith(cast("F1Net | Ranker", trained.model).READ_OUT),
                "constructors": name == _EMBEDDINGS["constructor"]}.get(settings.method, True)
        if name == _EMBEDDINGS["driver"] and settings.freeze_drivers:
            free = False
        masks[name] = torch.full(parameter.shape, free)
        if name in known:
            masks[name][known[name]:] = True  # newcomers always learn
    return masks
