"""Training of a ranker on past races.

Notable choices:
- One loop for both models; `config.RANKER` and `config.F1NET` are their dial settings.
- F1Net learns by ListNet, which looks at the head of the field; ours by pairs, which count every swap alike.
- The weight decay is a prior: it weighs as much as that many races, so that a first season of 21 races is held back
  and seven seasons are not.
- The seed settles everything: first weights, order of races, dropout. The caller's random state is left alone.
- One CPU thread: these models are too small for two, which on a busy machine are four times slower, and sums that
  threads share out differently would not give the same bytes.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any, cast

import pandas as pd
import torch
from torch import Tensor, nn

from f1_pipelines.models.batch import RaceBatch, to_batch
from f1_pipelines.models.config import RANKER, TrainConfig
from f1_pipelines.models.f1net import F1Net, drop_to_unknown
from f1_pipelines.models.listnet import listnet_loss, relevance
from f1_pipelines.models.pairwise import pairwise_loss
from f1_pipelines.models.ranker import Ranker
from f1_pipelines.models.trained import TrainedRanker, fresh_model
from f1_pipelines.models.vocabulary import Vocabulary

Progress = Callable[[int, float], None]


def train(
    frame: pd.DataFrame, config: TrainConfig = RANKER, progress: Progress | None = None,
) -> tuple[TrainedRanker, list[dict[str, float]]]:
    """Train a ranker from nothing. Seconds on one CPU thread.

    Args:
        frame: Feature rows with `weekend`, `season`, `race_start`, `driver`, `constructor`, `official_order`,
            `classified`, in any order; rows whose `started` is false are left out.
        config: Dial settings.
        progress: Called after each epoch with its number from 1 and its loss.

    Returns:
        The trained ranker, and the history: epoch, loss and lr of each epoch.
    """
    races = training_races(frame, config.seasons)
    drivers, constructors = Vocabulary.of(races["driver"]), Vocabulary.of(races["constructor"])
    batch = to_batch(races, config.features, drivers, constructors).to(config.device)
    devices = [torch.device(config.device)] if config.device.startswith("cuda") else []
    with one_thread(), torch.random.fork_rng(devices):
        torch.manual_seed(config.seed)
        model = fresh_model(config, drivers, constructors).to(config.device)
        if isinstance(model, F1Net):
            model.standardise_by(batch.numeric, batch.entered)
        history = list(epochs(model, batch, config, progress))
    seasons = tuple(sorted(int(season) for season in races["season"].unique()))
    trained = TrainedRanker(model.cpu().eval(), config, drivers, constructors, seasons, batch.weekends[0],
                            batch.weekends[-1], len(batch))
    return trained, history


@contextmanager
def one_thread() -> Iterator[None]:
    """Torch on one CPU thread, on as many as before afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def training_races(frame: pd.DataFrame, seasons: Collection[int] | None = None) -> pd.DataFrame:
    """Starters of run races of these seasons; an error where none are left."""
    races = frame[frame["started"].astype(bool)] if "started" in frame.columns else frame
    races = races[races["official_order"].notna()]
    if seasons is not None:
        races = races[races["season"].isin(list(seasons))]
    if races.empty:
        wanted = "any season" if seasons is None else ", ".join(str(season) for season in seasons)
        raise ValueError(f"0 races with an official order in {wanted} (needs at least 1): load their results first")
    return races


def epochs(
    model: nn.Module, batch: RaceBatch, config: TrainConfig, progress: Progress | None = None,
) -> Iterator[dict[str, float]]:
    """Train epoch by epoch on torch's random state, saying how each went: epoch, loss, lr."""
    generator = torch.Generator().manual_seed(config.seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=config.lr)
    per_step = config.races_per_step or len(batch)
    model.train()
    for epoch in range(1, config.epochs + 1):
        turn = (1 + math.cos(math.pi * (epoch - 1) / config.epochs)) / 2
        lr = config.lr * (config.lr_end + (1 - config.lr_end) * turn)
        for group in optimizer.param_groups:
            group["lr"] = lr
        total = 0.0
        for step in _steps(batch, per_step, generator):
            loss = objective(model, step, config, generator)
            if config.weight_decay:
                loss = loss + config.weight_decay * cast("Any", model).penalty() / len(batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(step)
        if progress is not None:
            progress(epoch, total / len(batch))
        yield {"epoch": float(epoch), "loss": total / len(batch), "lr": lr}


def objective(model: nn.Module, batch: RaceBatch, config: TrainConfig, generator: torch.Generator) -> Tensor:
    """What training makes small on these races, without the prior, scalar."""
    if batch.order is None or batch.classified is None:
        raise ValueError("the batch has no outcome to learn from: official_order is missing in some rows of its frame")
    if isinstance(model, Ranker):
        scores = model.members(batch.numeric, batch.entered)  # (M, B, N)
        return pairwise_loss(scores, batch.order, batch.entered, batch.classified, config.retired_weight)
    driver = drop_to_unknown(batch.driver, config.rookie_share, generator)
    constructor = drop_to_unknown(batch.constructor, config.rookie_share, generator)
    scores = model(batch.numeric, driver, constructor, batch.entered)  # (B, N)
    return listnet_loss(scores, relevance(batch.order, batch.entered), batch.entered, config.temperature)


def _steps(batch: RaceBatch, per_step: int, generator: torch.Generator) -> Iterator[RaceBatch]:
    """All races once, shuffled, so many at a time; as they are where one step takes them all."""
    if per_step >= len(batch):
        yield batch
        return
    for races in torch.randperm(len(batch), generator=generator).split(per_step):
        yield batch.races(races)
