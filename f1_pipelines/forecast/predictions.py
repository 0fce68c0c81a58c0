"""Rows of `ranking.predictions`: an order from scores, its outcome once known, and the model that gives it."""
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
    """There is no model or no entry list for the weekend. The message says what to run."""


def at_each_stage(features: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """The rows as they were known at each stage that their weekend has reached, one frame a stage, in order."""
    reached = features["stage"].map(STAGES.index)
    for at, stage in enumerate(STAGES):
        if (reached >= at).any():
            yield as_known_at(features[reached >= at].reset_index(drop=True), stage)


def rank(features: pd.DataFrame, trained: TrainedRanker, checkpoint: str, made_at: datetime) -> pd.DataFrame:
    """Rows of `ranking.predictions` for every weekend of `features` at the stage they are at, outcome still missing.

    Args:
        features: Rows of `features.ranking`, one stage a weekend; cars that are not entered are left out.
        trained: The model.
        checkpoint: Its id.
        made_at: When, timezone-aware.

    Returns:
        A permutation 1..n of each entry list; equal scores in the order of grid, then driver id. Chances are missing
        for a checkpoint that was stored without them.
    """
    entered = features[features["entered"]].reset_index(drop=True)
    # Each race alone: in a batch with others the last bits of its scores would depend on them.
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
        rows = rows.join(_chances(entered, rows["score"].sort_index(), trained, checkpoint))
    unknown = [column for column in PREDICTIONS.column_names if column not in rows.columns]
    return PREDICTIONS.conform(rows.assign(**dict.fromkeys(unknown))[PREDICTIONS.column_names])


def knows_outcome(trained: TrainedRanker, rows: pd.DataFrame) -> pd.Series:
    """Which of these rows are of a race that the model has learnt from."""
    learnt_until = known_weekend(trained.trained_through, settings().calendar_path).race_start
    return rows["season"].isin(trained.seasons) & (rows["race_start"] <= learnt_until)


def _chances(entered: pd.DataFrame, scores: pd.Series, trained: TrainedRanker, checkpoint: str) -> pd.DataFrame:
    """Chances of each car, on the index of `entered`."""
    tables = []
    for weekend, race in entered.groupby("weekend"):
        drawn = trained.position_model().drawn(race, scores[race.index].to_numpy("float64"),
                                     rng_for(str(weekend), race["stage"].iloc[0], checkpoint))
        tables.append(position_probabilities(drawn, race["constructor"]))
    return pd.concat(tables) if tables else pd.DataFrame(columns=list(PROBABILITIES))


def with_outcome(predictions: pd.DataFrame, results: pd.DataFrame) -> pd.DataFrame:
    """The predictions with `actual_position` (place among the starters) and `exact_match` where results are known."""
    starters = results[~results["status"].isin(NON_STARTERS)]
    actual = starters.assign(actual_position=starters.groupby("weekend")["official_order"].rank().astype("Int32"))
    joined = predictions.drop(columns=["actual_position", "exact_match"]).merge(
        actual[["weekend", "driver", "actual_position"]], on=["weekend", "driver"], how="left")
    match = (joined["actual_position"] == joined["predicted_position"]).where(joined["actual_position"].notna())
    return PREDICTIONS.conform(joined.assign(exact_match=match.astype("boolean"))[PREDICTIONS.column_names])


def promoted_checkpoint(connection: duckdb.DuckDBPyConnection, folder: Path) -> tuple[str, Path]:
    """Id and folder of the model that predictions use: the promoted one, the newest if there are several.

    Args:
        connection: To the published warehouse.
        folder: Where checkpoints lie now; a warehouse that was moved takes its checkpoints along.
    """
    rows = connection.execute(
        "SELECT checkpoint, path FROM ranking.checkpoints WHERE promoted ORDER BY created_at DESC LIMIT 1").fetchall()
    if not rows:
        raise NothingToPredict("no model is promoted yet; train one with `make demo`, or materialize promoted_ranker")
    ((checkpoint, path),) = rows
    return checkpoint, _where(checkpoint, path, folder)


def pretrained_checkpoint(connection: duckdb.DuckDBPyConnection, model: str, folder: Path) -> Path:
    """Folder of the newest pretrained checkpoint of a model, which it keeps learning from. Arguments as above."""
    rows = connection.execute(
        "SELECT checkpoint, path FROM ranking.checkpoints WHERE kind = 'pretrained' AND model = ? "
        "ORDER BY created_at DESC, rowid DESC LIMIT 1", [model]).fetchall()
    if not rows:
        raise NothingToPredict(f"no {model} is pretrained yet, so there is nothing to learn on from; materialize "
                               "pretrained_ranker")
    ((checkpoint, path),) = rows
    return _where(checkpoint, path, folder)


def _where(checkpoint: str, path: str, folder: Path) -> Path:
    return folder / checkpoint if (folder / checkpoint).is_dir() else Path(path)
