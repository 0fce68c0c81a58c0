"""One update after a race: a ranker learns from the latest races without losing what it knew.

Notable choices:
- The window reaches back over the latest races since the pretraining; each is seen `epochs` times, one after the other.
- The loss is that of the pretraining, without its prior: the pull to the old weights takes its place. Dropout stays.
- The pull of EWC goes to the pretrained weights, however many updates ago that was: an anchor that moved along would
  let go of a little more after each race. (`online_ewc` does just that, to have it to compare with.)
- A pure function: the same rankers, rows and settings give the same bytes, on one CPU thread as in training.
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
    """A ranker and how much each of its weights matters; the Fisher is missing where nothing asks for it."""

    trained: TrainedRanker
    fisher: dict[str, Tensor] | None = None


@dataclass(frozen=True)
class UpdateResult:
    """What an update gave.

    Attributes:
        known: The ranker afterwards, and its own Fisher where the method moves it along.
        history: epoch, loss of the new races, and penalty (lambda included) of each epoch.
        rows: The rows it saw, old races that were replayed included.
    """

    known: LearntState
    history: list[dict[str, float]]
    rows: pd.DataFrame


def learn(before: LearntState, pretrained: LearntState, window: pd.DataFrame, settings: UpdateConfig,
          old: pd.DataFrame | None = None) -> UpdateResult:
    """Learn from the races of the window. The rankers that come in are left as they are.

    Args:
        before: What the update before gave; `pretrained` at first.
        pretrained: Where EWC pulls to and `restart` begins, with its Fisher if the method needs one.
        window: Starters of the races to learn from, with features and outcome. Unseen drivers and teams get embedding
            rows.
        settings: Dial settings; method `none` is refused, there is nothing to do.
        old: Races of the pretraining, which `replay` draws from.
    """
    if settings.method == "none":
        raise ValueError("method none learns nothing: keep the ranker as it is")
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
                loss = new = objective(model, step, config, generator)
                if fisher is not None:
                    pull = settings.penalty * ewc_penalty(model, anchor, fisher)
                    loss, penalty = loss + pull, pull.item()
                if old_batch is not None:
                    drawn = torch.randperm(len(old_batch), generator=generator)[:settings.replayed_races * len(step)]
                    loss = loss + settings.replayed_races * objective(model, old_batch.races(drawn), config, generator)
                optimizer.zero_grad()
                loss.backward()
                for name, parameter in model.named_parameters():
                    if parameter.grad is not None:
                        parameter.grad.mul_(masks[name])
                optimizer.step()
                losses += new.item() * len(step)
            history.append({"epoch": float(epoch), "loss": losses / len(batch), "penalty": penalty})
    model.eval()
    trained = replace(
        grown, model=model, seasons=tuple(sorted({*grown.seasons, *(int(s) for s in races["season"].unique())})),
        trained_through=batch.weekends[-1], n_races=before.trained.n_races + 1)
    moved = None
    if settings.method == "online_ewc" and fisher is not None:
        latest = fisher_information(trained, races[races["weekend"] == batch.weekends[-1]])
        keep = settings.fisher_decay
        moved = {name: keep * values + (1 - keep) * latest[name] for name, values in fisher.items()}
    seen = races if replayed is None else pd.concat([replayed, races], ignore_index=True)
    return UpdateResult(LearntState(trained, moved), history, seen)


def window_of(rows: pd.DataFrame, weekend: str, races: int) -> pd.DataFrame:
    """Rows of the latest `races` races up to and with this weekend's."""
    starts = rows.groupby("weekend")["race_start"].first().sort_values()
    latest = starts[starts <= starts[weekend]].index[-races:]
    return rows[rows["weekend"].isin(latest)]


def _anchor(before: LearntState, pretrained: LearntState, grown: TrainedRanker, settings: UpdateConfig,
            ) -> tuple[Mapping[str, Tensor], Mapping[str, Tensor] | None]:
    """Where the pull goes to, and how strong it is at each weight; None where there is no pull."""
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
    """Old races to draw from, as many as one epoch takes: always the same for the same latest race and seed."""
    if old is None or old.empty:
        raise ValueError("method replay needs races of the pretraining to mix in, and none are there; load the results "
                         "of the pretraining seasons, or choose another method")
    starts = old.groupby("weekend")["race_start"].first().sort_values()
    count = min(len(starts), settings.replayed_races * races["weekend"].nunique() * settings.epochs)
    generator = torch.Generator().manual_seed(settings.seed + int(races["race_start"].max().timestamp()))
    drawn = torch.randperm(len(starts), generator=generator)[:count].tolist()
    return old[old["weekend"].isin(starts.index[drawn])].sort_values(["race_start", "driver"], ignore_index=True)


def _steps(batch: RaceBatch, per_step: int, generator: torch.Generator) -> Iterator[RaceBatch]:
    """All races once, shuffled, so many at a time."""
    for races in torch.randperm(len(batch), generator=generator).split(per_step):
        yield batch.races(races)
