"""Training of a ranker on past races.

Notable choices:
- One loop for both models; `config.RANKER` and `config.F1NET` are their hyperparameters.
- F1Net is trained with ListNet, which weighs the top places; our ranker with pairs, which weigh every swap the same.
- The weight decay is a prior with the weight of a fixed number of races, so it matters for a first season of 21 races
  and hardly for seven seasons.
- The seed determines initial weights, order of races and dropout. The caller's random state is not changed.
- One CPU thread: these models are too small for two, which are four times slower on a busy machine, and another number
  of threads adds in another order, which changes the bytes.
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
    """Train a ranker from scratch. Takes seconds on one CPU thread.

    Args:
        frame: Feature rows with `weekend`, `season`, `race_start`, `driver`, `constructor`, `official_order`,
            `classified`, in any order; rows whose `started` is false are left out.
        config: Hyperparameters.
        progress: Called after each epoch with its number from 1 and its loss.

    Returns:
        The trained ranker, and epoch, loss and lr of each epoch.
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
    """Run torch on one CPU thread, then restore the number of threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def training_races(frame: pd.DataFrame, seasons: Collection[int] | None = None) -> pd.DataFrame:
    """Starters of completed races of these seasons.

    Raises:
        ValueError: There are none.
    """
    races = frame[frame["started"].astype(bool)] if "started" in frame.columns else frame
    races = races[races["official_order"].notna()]
    if seasons is not None:
        races = races[races["season"].isin(list(seasons))]
    if races.empty:
        names = "any season" if seasons is None else ", ".join(str(season) for season in seasons)
        raise ValueError(f"0 races with an official order in {names} (needs at least 1): load their results first")
    return races


def epochs(
    model: nn.Module, batch: RaceBatch, config: TrainConfig, progress: Progress | None = None,
) -> Iterator[dict[str, float]]:
    """Train epoch by epoch with torch's random state; yield epoch, loss and lr of each."""
    generator = torch.Generator().manual_seed(config.seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=config.lr)
    per_step = config.races_per_step or len(batch)
    model.train()
    for epoch in range(1, config.epochs + 1):
        cosine = (1 + math.cos(math.pi * (epoch - 1) / config.epochs)) / 2
        lr = config.lr * (config.lr_end + (1 - config.lr_end) * cosine)
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
    """Training loss of these races, without the prior, scalar.

    Raises:
        ValueError: The batch has no outcomes.
    """
    if batch.order is None or batch.classified is None:
        raise ValueError("the batch has no outcome to train on: official_order is missing in some rows of its frame")
    if isinstance(model, Ranker):
        scores = model.members(batch.numeric, batch.entered)  # (M, B, N)
        return pairwise_loss(scores, batch.order, batch.entered, batch.classified, config.retired_weight)
    driver = drop_to_unknown(batch.driver, config.rookie_share, generator)
    constructor = drop_to_unknown(batch.constructor, config.rookie_share, generator)
    scores = model(batch.numeric, driver, constructor, batch.entered)  # (B, N)
    return listnet_loss(scores, relevance(batch.order, batch.entered), batch.entered, config.temperature)


def _steps(batch: RaceBatch, per_step: int, generator: torch.Generator) -> Iterator[RaceBatch]:
    """Yield all races once in shuffled steps; in their own order if one step takes all."""
    if per_step >= len(batch):
        yield batch
        return
    for races in torch.randperm(len(batch), generator=generator).split(per_step):
        yield batch.races(races)
