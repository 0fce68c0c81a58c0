"""Rebuild a checkpoint from its stored rows, to prove that it comes from them and nothing else.

Train the pretrained ranker again, then every link up to the checkpoint. An id is the digest of weights and settings, so
an equal id means equal bytes. This holds on the CPU only: a GPU adds sums in no fixed order.
"""
from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd

from f1_pipelines.features.ranking import FEATURE_VERSION
from f1_pipelines.forecast.monte_carlo_rows import simulated_again
from f1_pipelines.forecast.predictions import rank
from f1_pipelines.lineage.seen import Untraceable, rows_seen_by
from f1_pipelines.models.checkpoints import Checkpoint, load_checkpoint
from f1_pipelines.models.config import TrainConfig
from f1_pipelines.models.continual.chain import bring_up_to_date
from f1_pipelines.models.continual.settings import UpdateConfig
from f1_pipelines.models.pretrain import pretrain_one
from f1_pipelines.promotion.champion import ancestry, usable
from f1_pipelines.tables.learning import UPDATES
from f1_pipelines.tables.ranking import PREDICTIONS, SIMULATED_PREDICTIONS

_OUTCOME = ("actual_position", "exact_match")  # not known when predicting


def rebuild(connection: duckdb.DuckDBPyConnection, checkpoint: str, folder: Path) -> Checkpoint:
    """Train a checkpoint and its ancestors again from their stored rows.

    Args:
        connection: To the warehouse.
        checkpoint: Id of the checkpoint.
        folder: Empty folder for the rebuilt checkpoints.

    Returns:
        The rebuilt checkpoint; equal to the original if its id is.

    Raises:
        Untraceable: Rows or settings are not stored, or it was trained on a GPU or with other features.
    """
    *links, pretrained = ancestry(connection, checkpoint) or [checkpoint]
    base = _pretrain(connection, pretrained, folder)
    return _learn_on(connection, base, links[::-1], folder) if links else base


def differences(connection: duckdb.DuckDBPyConnection, prediction: str, checkpoints: Path) -> list[str]:
    """The columns that differ when a prediction is made again from its stored rows.

    Args:
        connection: To the warehouse.
        prediction: Its `seen.prediction_id`.
        checkpoints: Folder of checkpoints.

    Raises:
        Untraceable: There is no such prediction, or its rows are not stored.
    """
    weekend, stage, checkpoint, *predictor = prediction.split("/")
    table = SIMULATED_PREDICTIONS if predictor else PREDICTIONS
    stored = table.conform(connection.execute(
        f"SELECT * FROM {table.qualified} WHERE weekend = ? AND stage = ? AND checkpoint = ? ORDER BY driver",
        [weekend, stage, checkpoint]).df())
    if stored.empty:
        raise Untraceable(f"{prediction} is not stored; `f1 trace {weekend}` lists stored predictions")
    rows, trained = rows_seen_by(connection, prediction), usable(connection, checkpoint, checkpoints).trained
    repeated = simulated_again(rows, trained, stored) if predictor else \
        rank(rows, trained, checkpoint, stored["made_at"].iloc[0])
    repeated = repeated.sort_values("driver", ignore_index=True)
    return [name for name in table.column_names if name not in _OUTCOME and not repeated[name].equals(stored[name])]


def _pretrain(connection: duckdb.DuckDBPyConnection, checkpoint: str, folder: Path) -> Checkpoint:
    rows = connection.execute("SELECT settings, feature_version, data_version FROM ranking.checkpoints "
                              "WHERE checkpoint = ? AND kind = 'pretrained'", [checkpoint]).fetchall()
    if not rows or rows[0][0] is None:
        raise Untraceable(f"{checkpoint} is not a known pretrained checkpoint, or older than the record of settings; "
                          "materialize pretrained_ranker again")
    ((settings, feature_version, data_version),) = rows
    fields: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value
                              for name, value in json.loads(settings).items()}
    config = TrainConfig(**fields)
    if config.device != "cpu":
        raise Untraceable(f"{checkpoint} was trained on {config.device}; only training on the CPU is reproducible bit "
                          "by bit")
    if feature_version != FEATURE_VERSION:
        raise Untraceable(f"{checkpoint} reads features of version {feature_version}, this code computes "
                          f"{FEATURE_VERSION}; use the version of the code that trained it")
    pretrained = pretrain_one(rows_seen_by(connection, checkpoint, "train"), config, data_version=data_version,
                              folder=folder, created_at=datetime.now(UTC), log=_quiet)
    return load_checkpoint(folder / pretrained.row["checkpoint"])


def _learn_on(connection: duckdb.DuckDBPyConnection, pretrained: Checkpoint, links: list[str],
              folder: Path) -> Checkpoint:
    ((weekend, settings),) = connection.execute("SELECT weekend, settings FROM ranking.updates WHERE checkpoint = ?",
                                                [links[-1]]).fetchall()
    seen = pd.concat([rows_seen_by(connection, link) for link in links]).drop_duplicates(["weekend", "driver"])
    old = rows_seen_by(connection, pretrained.id, "train")
    rows = pd.concat([seen, old[~old["weekend"].isin(seen["weekend"])]], ignore_index=True)
    until = rows.loc[rows["weekend"] == weekend, "race_start"].iloc[0]
    chain = bring_up_to_date(pretrained, rows, until, UpdateConfig.from_stored(json.loads(settings)), UPDATES.empty(),
                             folder=folder, created_at=datetime.now(UTC), log=_quiet)
    # The chain goes on after an adapted checkpoint with one that learnt from the same race: take the link asked for.
    return load_checkpoint(folder / chain.ids[len(links) - 1])


def _quiet(_: str) -> None:
    """Log nothing."""
