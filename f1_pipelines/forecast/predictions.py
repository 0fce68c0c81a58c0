"""Rows of `ranking.predictions`: predicted orders, their outcomes, and the checkpoint to predict with."""
from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pandas as pd

from f1_pipelines.evaluation.probabilities import PROBABILITIES, position_probabilities, rng_for
from f1_pipelines.features.history import data_version
from f1_pipelines.features.ranking import as_known_at
from f1_pipelines.identity.weekends import weekend as known_weekend
from f1_pipelines.settings import settings
from f1_pipelines.tables.features import STAGES
from f1_pipelines.tables.race import NON_STARTERS
from f1_pipelines.tables.ranking import PREDICTIONS

if TYPE_CHECKING:
    from f1_pipelines.models.trained import TrainedRanker


class NothingToPredict(ValueError):
    """No model or no entry list for the weekend; the message says what to run."""


def at_each_stage(features: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Yield the rows as known at each stage, in order: one frame per stage, with the weekends that have reached it."""
    reached = features["stage"].map(STAGES.index)
    for index, stage in enumerate(STAGES):
        if (reached >= index).any():
            yield as_known_at(features[reached >= index].reset_index(drop=True), stage)


def rank(features: pd.DataFrame, trained: TrainedRanker, checkpoint: str, made_at: datetime) -> pd.DataFrame:
    """Rows of `ranking.predictions` for every weekend of `features`, without outcome.

    Args:
        features: Rows of `features.ranking`, one stage per weekend; cars that are not entered are left out.
        trained: The model.
        checkpoint: Id of the model.
        made_at: Time of the prediction, timezone-aware.

    Returns:
        A permutation 1..n of each entry list; ties by grid, then driver id. Probabilities are missing if the checkpoint
        has no position model.
    """
    entered = features[features["entered"]].reset_index(drop=True)
    # One race at a time: in a batch, the last bits of the scores would depend on the other races.
    scores = pd.concat([pd.Series(trained.scores(race), race.index) for _, race in entered.groupby("weekend")])
    rows = pd.DataFrame({
        "weekend": entered["weekend"], "driver": entered["driver"], "checkpoint": checkpoint, "stage": entered["stage"],
        "constructor": entered["constructor"], "score": scores, "grid": entered["grid_position"],
        "in_sample": knows_outcome(trained, entered),
        "data_version": entered["weekend"].map({key: data_version(rows) for key, rows in features.groupby("weekend")}),
        "made_at": made_at,
    }).sort_values(["weekend", "score", "grid", "driver"], ascending=[True, False, True, True])
    rows["predicted_position"] = rows.groupby("weekend").cumcount() + 1
    if trained.places is not None:
        rows = rows.join(_probabilities(entered, rows["score"].sort_index(), trained, checkpoint))
    missing = [column for column in PREDICTIONS.column_names if column not in rows.columns]
    return PREDICTIONS.conform(rows.assign(**dict.fromkeys(missing))[PREDICTIONS.column_names])


def knows_outcome(trained: TrainedRanker, rows: pd.DataFrame) -> pd.Series:
    """Whether the model was trained on the race of each row."""
    learnt_until = known_weekend(trained.trained_through, settings().calendar_path).race_start
    return rows["season"].isin(trained.seasons) & (rows["race_start"] <= learnt_until)


def _probabilities(entered: pd.DataFrame, scores: pd.Series, trained: TrainedRanker, checkpoint: str) -> pd.DataFrame:
    """Probabilities of each car, on the index of `entered`."""
    tables = []
    for weekend, race in entered.groupby("weekend"):
        rng = rng_for(str(weekend), race["stage"].iloc[0], checkpoint)
        places = trained.position_model().drawn(race, scores[race.index].to_numpy("float64"), rng)
        tables.append(position_probabilities(places, race["constructor"]))
    return pd.concat(tables) if tables else pd.DataFrame(columns=list(PROBABILITIES))


def with_outcome(predictions: pd.DataFrame, results: pd.DataFrame) -> pd.DataFrame:
    """Add `actual_position` (place among the starters) and `exact_match` where results are known."""
    starters = results[~results["status"].isin(NON_STARTERS)]
    actual = starters.assign(actual_position=starters.groupby("weekend")["official_order"].rank().astype("Int32"))
    joined = predictions.drop(columns=["actual_position", "exact_match"]).merge(
        actual[["weekend", "driver", "actual_position"]], on=["weekend", "driver"], how="left")
    match = (joined["actual_position"] == joined["predicted_position"]).where(joined["actual_position"].notna())
    return PREDICTIONS.conform(joined.assign(exact_match=match.astype("boolean"))[PREDICTIONS.column_names])


def promoted_checkpoint(connection: duckdb.DuckDBPyConnection, folder: Path) -> tuple[str, Path]:
    """Id and folder of the promoted checkpoint, which predictions use; of several, the newest. `folder` comes before
    the stored path, which is outdated if the warehouse was moved.

    Raises:
        NothingToPredict: No checkpoint is promoted.
    """
    rows = connection.execute(
        "SELECT checkpoint, path FROM ranking.checkpoints WHERE promoted ORDER BY created_at DESC LIMIT 1").fetchall()
    if not rows:
        raise NothingToPredict("no model is promoted yet; train one with `make demo`, or materialize promoted_ranker")
    ((checkpoint, path),) = rows
    return checkpoint, _folder_of(checkpoint, path, folder)


def pretrained_checkpoint(connection: duckdb.DuckDBPyConnection, model: str, folder: Path) -> Path:
    """Folder of a model's newest pretrained checkpoint, where its updates start. Arguments as `promoted_checkpoint`.

    Raises:
        NothingToPredict: No checkpoint of the model is pretrained.
    """
    rows = connection.execute(
        "SELECT checkpoint, path FROM ranking.checkpoints WHERE kind = 'pretrained' AND model = ? "
        "ORDER BY created_at DESC, rowid DESC LIMIT 1", [model]).fetchall()
    if not rows:
        raise NothingToPredict(f"no {model} is pretrained yet, so there is nothing to update; materialize "
                               "pretrained_ranker")
    ((checkpoint, path),) = rows
    return _folder_of(checkpoint, path, folder)


def _folder_of(checkpoint: str, path: str, folder: Path) -> Path:
    return folder / checkpoint if (folder / checkpoint).is_dir() else Path(path)
