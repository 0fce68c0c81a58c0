"""Pretraining of our ranker and of F1Net, as stored checkpoints."""
from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pandas as pd

from f1_pipelines.models.checkpoints import save_checkpoint
from f1_pipelines.models.config import F1NET, RANKER, TrainConfig
from f1_pipelines.models.continual.chain import mean_spearman
from f1_pipelines.models.continual.fisher import fisher_information
from f1_pipelines.models.position_model import with_position_model
from f1_pipelines.models.training import train, training_races

_LOG_EVERY = 50  # epochs between progress lines


@dataclass(frozen=True)
class Pretrained:
    """A stored checkpoint: its row of `ranking.checkpoints`, its loss by epoch, and the training time [s]."""

    row: dict[str, Any]
    losses: list[float]
    seconds: float


def pretrain(rows: pd.DataFrame, *, seasons: tuple[int, ...], seed: int, temperature: float, device: str,
             data_version: str, folder: Path, created_at: datetime, log: Callable[[str], None]) -> list[Pretrained]:
    """Train our ranker and F1Net; store both with their Fisher information under `folder`.

    Args:
        rows: Starters of completed races with features and outcome (`evaluation.targets.with_targets`).
        seasons: Seasons to train on.
        seed: The same seed, rows and settings give the same checkpoints.
        temperature: ListNet temperature of F1Net.
        device: Training device.
        data_version: Sources and digest of the rows of these seasons.
        folder: Checkpoint folder.
        created_at: Time of the training, timezone-aware.
        log: Receives progress lines.
    """
    return [pretrain_one(rows, replace(settings, seasons=seasons, seed=seed, device=device), data_version=data_version,
                         folder=folder, created_at=created_at, log=log)
            for settings in (RANKER, replace(F1NET, temperature=temperature))]


def pretrain_one(rows: pd.DataFrame, config: TrainConfig, *, data_version: str, folder: Path, created_at: datetime,
                 log: Callable[[str], None]) -> Pretrained:
    """Train and store one ranker with these hyperparameters. Other arguments as for `pretrain`."""
    def progress(epoch: int, loss: float) -> None:
        if epoch % _LOG_EVERY == 0 or epoch == config.epochs:
            log(f"{config.model}: epoch {epoch} of {config.epochs}, loss {loss:.4f}")

    start = time.perf_counter()
    trained, history = train(rows, config, progress)
    races = training_races(rows, config.seasons)
    trained = with_position_model(trained, races)
    fisher = fisher_information(trained, races)
    seconds = time.perf_counter() - start
    # A fit, not a test: these are the training races.
    metrics = {"loss": history[-1]["loss"], "fit_spearman": mean_spearman(trained, races)}
    checkpoint = save_checkpoint(trained, folder, kind="pretrained", data_version=data_version, metrics=metrics,
                                 created_at=created_at, fisher=fisher)
    return Pretrained({
        "checkpoint": checkpoint.id, "kind": "pretrained", "model": config.model, "parent": None,
        "trained_from": trained.trained_from, "trained_through": trained.trained_through,
        "n_races": trained.n_races, "feature_version": checkpoint.meta["feature_version"],
        "data_version": data_version, "seed": config.seed, "metrics": json.dumps(metrics),
        "path": str(checkpoint.path), "promoted": False, "created_at": created_at,
        "settings": json.dumps(asdict(config), sort_keys=True), "dagster_run": None, "mlflow_run": None,
    }, [epoch["loss"] for epoch in history], seconds)
