"""Update of a ranker after a race: it learns from the latest races without forgetting earlier ones.

Notable choices:
- The window has the latest races since the pretraining; each update makes `epochs` passes over it.
- The loss is that of the pretraining with dropout, but without its prior: the EWC penalty takes its place.
- The anchor of EWC is the pretrained ranker, however many updates ago that was: a moving anchor would forget a little
  more after each race. (`online_ewc` has one, for comparison.)
- An update is a pure function: the same rankers, rows and settings give the same bytes, on one CPU thread.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import pandas as pd
import torch
from torch import Tensor

from f1_pipelines.models.batch import RaceBatch
from f1_pipelines.models.continual.adaptation import adapt, grow, grow_fisher, may_learn
from f1_pipelines.models.continual.ewc import ewc_penalty
from f1_pipelines.models.continual.fisher import check_fisher, fisher_information
from f1_pipelines.models.continual.settings import PULLED_BACK, UpdateConfig
from f1_pipelines.models.trained import TrainedRanker
from f1_pipelines.models.training import objective, one_thread, training_races


@dataclass(frozen=True)
class LearntState:
    """A ranker and its Fisher information, which is None if the method does not need it."""

    trained: TrainedRanker
    fisher: dict[str, Tensor] | None = None


@dataclass(frozen=True)
class UpdateResult:
    """Result of an update.

    Attributes:
        known: The updated ranker, with its own Fisher for `online_ewc`.
        history: epoch, loss of the new races, and penalty (times lambda) of each epoch.
        rows: The rows used, including replayed races.
    """

    known: LearntState
    history: list[dict[str, float]]
    rows: pd.DataFrame


def learn(before: LearntState, pretrained: LearntState, window: pd.DataFrame, settings: UpdateConfig,
          old: pd.DataFrame | None = None) -> UpdateResult:
    """Learn from the races of the window. The given rankers stay unchanged.

    Args:
        before: Result of the previous update; at first `pretrained`.
        pretrained: Anchor of EWC and start of `restart`, with its Fisher if the method needs one.
        window: Starters of the races to learn from, with features and outcome. New drivers and teams get embedding
            rows.
        settings: Hyperparameters.
        old: Races of the pretraining, for `replay`.

    Raises:
        ValueError: The method is `none`, or its Fisher or old races are missing.
    """
    if settings.method == "none":
        raise ValueError("method none learns nothing: keep the ranker unchanged")
    races = training_races(window).sort_values(["race_start", "driver"], ignore_index=True)
    replayed = _replayed(old, races, settings) if settings.method == "replay" else None
    grown = adapt(before.trained, races)
    start = grow(pretrained.trained, grown.drivers, grown.constructors) if settings.restart else grown
    anchor, fisher = _anchor(before, pretrained, grown, settings)
    config, masks = grown.config, may_learn(grown, pretrained.trained, settings)
    batch, model = start.batch(races), start.model
    old_batch = start.batch(replayed) if replayed is not None else None
    history = []
    with one_thread(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        generator = torch.Generator().manual_seed(settings.seed)
        optimizer = torch.optim.Adam(model.parameters(), lr=settings.lr)
        model.train()
        for epoch in range(1, settings.epochs + 1):
            losses, penalty = 0.0, 0.0
            for step in _steps(batch, settings.races_per_step, generator):
                loss = new_loss = objective(model, step, config, generator)
                if fisher is not None:
                    weighted_penalty = settings.ewc_lambda * ewc_penalty(model, anchor, fisher)
                    loss, penalty = loss + weighted_penalty, weighted_penalty.item()
                if old_batch is not None:
                    drawn = torch.randperm(len(old_batch), generator=generator)[:settings.replayed_races * len(step)]
                    loss = loss + settings.replayed_races * objective(model, old_batch.races(drawn), config, generator)
                optimizer.zero_grad()
                loss.backward()
                for name, parameter in model.named_parameters():
                    if parameter.grad is not None:
                        parameter.grad.mul_(masks[name])
                optimizer.step()
                losses += new_loss.item() * len(step)
            history.append({"epoch": float(epoch), "loss": losses / len(batch), "penalty": penalty})
    model.eval()
    trained = replace(
        grown, model=model, seasons=tuple(sorted({*grown.seasons, *(int(s) for s in races["season"].unique())})),
        trained_through=batch.weekends[-1], n_races=before.trained.n_races + 1)
    new_fisher = None
    if settings.method == "online_ewc" and fisher is not None:
        latest = fisher_information(trained, races[races["weekend"] == batch.weekends[-1]])
        keep = settings.fisher_decay
        new_fisher = {name: keep * values + (1 - keep) * latest[name] for name, values in fisher.items()}
    used = races if replayed is None else pd.concat([replayed, races], ignore_index=True)
    return UpdateResult(LearntState(trained, new_fisher), history, used)


def window_of(rows: pd.DataFrame, weekend: str, races: int) -> pd.DataFrame:
    """Rows of the latest `races` races, up to and including this weekend's."""
    starts = rows.groupby("weekend")["race_start"].first().sort_values()
    latest = starts[starts <= starts[weekend]].index[-races:]
    return rows[rows["weekend"].isin(latest)]


def _anchor(before: LearntState, pretrained: LearntState, grown: TrainedRanker, settings: UpdateConfig,
            ) -> tuple[Mapping[str, Tensor], Mapping[str, Tensor] | None]:
    """Anchor weights and Fisher of the EWC penalty; None as the Fisher if the method has no penalty."""
    if settings.method not in PULLED_BACK:
        return {}, None
    origin = before if settings.method == "online_ewc" and before.fisher is not None else pretrained
    if origin.fisher is None:
        raise ValueError(f"method {settings.method} needs the Fisher of the pretrained ranker; compute it with "
                         "fisher_information, or choose finetune")
    check_fisher(origin.fisher, origin.trained.model)
    model = grow(origin.trained, grown.drivers, grown.constructors).model
    return {name: weight.detach() for name, weight in model.named_parameters()}, grow_fisher(origin.fisher, model)


def _replayed(old: pd.DataFrame | None, races: pd.DataFrame, settings: UpdateConfig) -> pd.DataFrame:
    """Choose the old races to replay, at most as many as the update can use; latest race and seed determine them."""
    if old is None or old.empty:
        raise ValueError("method replay needs races of the pretraining, and there are none; load the results of the "
                         "pretraining seasons, or choose another method")
    starts = old.groupby("weekend")["race_start"].first().sort_values()
    count = min(len(starts), settings.replayed_races * races["weekend"].nunique() * settings.epochs)
    generator = torch.Generator().manual_seed(settings.seed + int(races["race_start"].max().timestamp()))
    drawn = torch.randperm(len(starts), generator=generator)[:count].tolist()
    return old[old["weekend"].isin(starts.index[drawn])].sort_values(["race_start", "driver"], ignore_index=True)


def _steps(batch: RaceBatch, per_step: int, generator: torch.Generator) -> Iterator[RaceBatch]:
    """Yield all races once, in shuffled steps."""
    for races in torch.randperm(len(batch), generator=generator).split(per_step):
        yield batch.races(races)
