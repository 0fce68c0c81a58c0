"""The chain of checkpoints from a pretrained ranker through every race since.

Notable choices:
- pretrained -> `adapted` at the start of a season -> `ewc` after its first race -> after its second ...; the parent of
  each link is the previous one.
- A link is a pure function of its parent, the rows of its window and the settings. A stored link with the same three is
  reused; otherwise it and all later links are computed again. So an amended result renews the links from its race on.
- The window starts after the races of the pretraining, which are not learnt from again.
- Rows leave out races that can't be learnt from. Links that used such a race are renewed without it, and again when the
  race returns.
"""
from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from f1_pipelines.checkpoints.store import CheckpointError
from f1_pipelines.evaluation.baselines import BASELINES
from f1_pipelines.evaluation.metrics import spearman
from f1_pipelines.features.history import data_version
from f1_pipelines.identity.weekends import UnknownWeekend
from f1_pipelines.identity.weekends import weekend as known_weekend
from f1_pipelines.models.checkpoints import Checkpoint, load_checkpoint, save_checkpoint
from f1_pipelines.models.continual.adaptation import adapt, grow_fisher
from f1_pipelines.models.continual.fisher import load_fisher
from f1_pipelines.models.continual.settings import PULLED_BACK, UpdateConfig
from f1_pipelines.models.continual.update import LearntState, UpdateResult, learn, window_of
from f1_pipelines.models.trained import TrainedRanker
from f1_pipelines.settings import settings

_GRID = next(baseline for baseline in BASELINES if baseline.name == "grid")


@dataclass(frozen=True)
class Link:
    """A new checkpoint: its rows of `ranking.checkpoints` and `ranking.updates`, the loss by epoch, the rows it used
    (features with outcome), and their role by weekend (`tables.lineage.ROLES`)."""

    checkpoint: Checkpoint
    row: dict[str, Any]
    update: dict[str, Any]
    history: list[dict[str, float]]
    rows: pd.DataFrame
    roles: pd.Series


@dataclass(frozen=True)
class Chain:
    """New links, ids of all links in order, and the newest checkpoint: the pretrained ranker if there is no link."""

    made: list[Link]
    ids: list[str]
    newest: Checkpoint


def bring_up_to_date(
    pretrained: Checkpoint, rows: pd.DataFrame, until: datetime, settings: UpdateConfig, stored: pd.DataFrame, *,
    folder: Path, created_at: datetime, log: Callable[[str], None],
) -> Chain:
    """Compute the links that are missing or outdated. Takes up to 1 s per link.

    Args:
        pretrained: Start of the chain, with its Fisher information if the method needs it.
        rows: Starters of completed races with features and outcome, of the pretraining and since.
        until: Learn from races that started until then, and from later races that stored links already used.
        settings: Hyperparameters of the updates; method `none` gives no links.
        stored: Rows of `ranking.updates`.
        folder: Checkpoint folder.
        created_at: Time of the run, timezone-aware.
        log: Receives a line per link.

    Raises:
        CheckpointError: The method needs the Fisher information, and it is missing or damaged.
    """
    chain = _ChainBuilder(pretrained, rows, settings, stored, folder, created_at, log)
    if settings.method == "none":
        return chain.result()
    for weekend in _weekends_to_learn(pretrained, chain.since, until, stored):
        chain.learn_from(weekend)
    return chain.result()


def races_since(pretrained: Checkpoint, rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of the races after the last race of the pretraining, in race order.

    If that race is not among the rows, because it can no longer be learnt from, its start comes from the calendar.

    Raises:
        ValueError: The rows have no race of the pretraining.
    """
    through, start = pretrained.trained.trained_through, None
    last = rows.loc[rows["weekend"] == through, "race_start"]
    if len(last):
        start = last.iloc[0]
    elif rows["season"].isin(pretrained.trained.seasons).any():
        with suppress(UnknownWeekend):
            start = pd.Timestamp(known_weekend(through, settings().calendar_path).race_start)
    if start is None or not (rows["season"].isin(pretrained.trained.seasons) & (rows["race_start"] <= start)).any():
        raise ValueError(f"{pretrained.id} was trained through {through}, of which no result is stored; load "
                         "its race_results and ranking_features")
    return rows[rows["race_start"] > start].sort_values(["race_start", "driver"], ignore_index=True)


def mean_spearman(trained: TrainedRanker, rows: pd.DataFrame) -> float:
    """Mean Spearman over races, all starters."""
    scored = rows.assign(score=trained.scores(rows))
    return float(np.mean([spearman(race["score"], race["official_order"].astype("float64"))
                          for _, race in scored.groupby("weekend")]))


def _weekends_to_learn(pretrained: Checkpoint, since: pd.DataFrame, until: datetime, stored: pd.DataFrame) -> list[str]:
    """Weekends in race order, up to `until` or the last race of a stored link, whichever is later."""
    stored_weekends = stored.loc[stored["model"] == pretrained.trained.config.model, "weekend"]
    last = max([pd.Timestamp(until), *since.loc[since["weekend"].isin(stored_weekends), "race_start"]])
    return list(since.loc[since["race_start"] <= last, "weekend"].drop_duplicates())


class _ChainBuilder:
    """Builds a chain link by link."""

    def __init__(self, pretrained: Checkpoint, rows: pd.DataFrame, settings: UpdateConfig, stored: pd.DataFrame,
                 folder: Path, created_at: datetime, log: Callable[[str], None]) -> None:
        self.pretrained, self.settings, self.stored = pretrained, settings, stored
        self.folder, self.created_at, self.log = folder, created_at, log
        self.since = races_since(pretrained, rows)
        self.old = rows[rows["season"].isin(pretrained.trained.seasons)
                        & ~rows["weekend"].isin(self.since["weekend"])]
        self.last_season = self.old[self.old["season"] == self.old["season"].max()]
        fisher = load_fisher(pretrained) if settings.method in PULLED_BACK else None
        self.anchor = LearntState(pretrained.trained, fisher)
        self.newest, self.known = pretrained, self.anchor
        self.learning = {"settings": settings.stored(), "pretrained": pretrained.id}
        self.made: list[Link] = []
        self.ids: list[str] = []

    def result(self) -> Chain:
        return Chain(self.made, self.ids, self.newest)

    def learn_from(self, weekend: str) -> None:
        """Add the link of this race; before the first race of a season also the adapted link."""
        race = self.since[self.since["weekend"] == weekend]
        if self.newest.id == self.pretrained.id or race["season"].iloc[0] not in self.newest.trained.seasons:
            self._link("adapted", weekend, race, lambda: self._adapted(race))
        window = window_of(self.since, weekend, self.settings.window_races)
        used = window if self.settings.method != "replay" else pd.concat([self.old, window], ignore_index=True)
        self._link("ewc", weekend, used, lambda: learn(self.known, self.anchor, window, self.settings, self.old))

    def _adapted(self, race: pd.DataFrame) -> UpdateResult:
        trained = adapt(self.known.trained, race)
        online = self.settings.method == "online_ewc"  # otherwise only the pretrained ranker has a Fisher
        fisher = grow_fisher(self.known.fisher, trained.model) if online and self.known.fisher is not None else None
        return UpdateResult(LearntState(trained, fisher), [], race)

    def _link(self, kind: str, weekend: str, rows: pd.DataFrame, update: Callable[[], UpdateResult]) -> None:
        """Add a link: the stored one, or else the result of `update`."""
        key = {"kind": kind, "weekend": weekend, "parent": self.newest.id, "data_version": data_version(rows),
               "settings": json.dumps(self.settings.stored(), sort_keys=True)}
        checkpoint = self._stored(key)
        if checkpoint is None:
            start = time.perf_counter()
            result = update()
            link = self._store(key, result, rows, time.perf_counter() - start)
            self.made.append(link)
            checkpoint, fisher = link.checkpoint, result.known.fisher
        else:
            fisher = load_fisher(checkpoint) if self.settings.method == "online_ewc" else None
        self.newest, self.known = checkpoint, LearntState(checkpoint.trained, fisher)
        self.ids.append(checkpoint.id)

    def _stored(self, key: dict[str, str]) -> Checkpoint | None:
        matches = self.stored[(self.stored[list(key)] == pd.Series(key)).all(axis=1)]
        for checkpoint in matches["checkpoint"]:
            try:
                return load_checkpoint(self.folder / checkpoint)
            except CheckpointError as problem:
                self.log(f"{problem}; computing it again from the same rows")
        return None

    def _store(self, key: dict[str, str], result: UpdateResult, rows: pd.DataFrame, seconds: float) -> Link:
        """Store the updated ranker, with its Spearman on the race before and after the update."""
        trained, before = result.known.trained, self.newest.trained
        race = self.since[self.since["weekend"] == key["weekend"]]
        learns = key["kind"] == "ewc"
        metrics = {
            "spearman_before": mean_spearman(before, race),
            "spearman_after": mean_spearman(trained, race) if learns else None,
            "spearman_grid": spearman(_GRID.scores(race), race["official_order"].astype("float64")),
            "old_season_before": mean_spearman(before, self.last_season),
            "old_season_after": mean_spearman(trained, self.last_season),
            "loss": result.history[-1]["loss"] if learns else None,
            "penalty": result.history[-1]["penalty"] if learns else None,
        }
        checkpoint = save_checkpoint(
            trained, self.folder, kind=key["kind"], data_version=key["data_version"], parent=self.newest.id,
            metrics={name: value for name, value in metrics.items() if value is not None}, created_at=self.created_at,
            fisher=result.known.fisher, learning=self.learning)
        model = trained.config.model
        n_races = result.rows["weekend"].nunique() if learns else 0
        self.log(f"{model} {checkpoint.id}: {key['kind']} at {key['weekend']}, {n_races} races used, Spearman on the "
                 f"race before the update {metrics['spearman_before']:.3f}")
        row = {
            "checkpoint": checkpoint.id, "kind": key["kind"], "model": model, "parent": self.newest.id,
            "trained_from": trained.trained_from, "trained_through": trained.trained_through,
            "n_races": trained.n_races, "feature_version": checkpoint.meta["feature_version"],
            "data_version": key["data_version"], "seed": self.settings.seed,
            "metrics": json.dumps(checkpoint.meta["metrics"]), "path": str(checkpoint.path), "promoted": False,
            "created_at": self.created_at, "settings": key["settings"], "dagster_run": None, "mlflow_run": None,
        }
        update = {
            **key, **metrics, "checkpoint": checkpoint.id, "model": model, "pretrained": self.pretrained.id,
            "method": self.settings.method, "n_races": n_races, "seconds": seconds, "current": True,
            "created_at": self.created_at,
        }
        roles = pd.Series({weekend: "replay" if weekend in set(self.old["weekend"]) else
                           "window" if learns else "adapt" for weekend in rows["weekend"].unique()})
        return Link(checkpoint, row, update, result.history, rows, roles)
