"""Training of the rankers: temperature search of the loss, pretrained models."""
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dagster as dg
from pydantic import Field

from f1_pipelines.assets.checkpoint_store import TrainedCheckpoint, run_ids, store
from f1_pipelines.assets.checks import keys_are_unique
from f1_pipelines.assets.features import RANKING_GROUP, ranking_features, training_rows
from f1_pipelines.assets.metadata import described, line_plot, preview
from f1_pipelines.features.history import data_version
from f1_pipelines.models.config import F1NET, PRETRAINING_SEASONS
from f1_pipelines.resources.checkpoints import Checkpoints
from f1_pipelines.resources.compute import Compute
from f1_pipelines.resources.race_data import Clock
from f1_pipelines.resources.tracking import Tracking, linked
from f1_pipelines.resources.warehouse import Warehouse
from f1_pipelines.tables import ranking as tables
from f1_pipelines.tables.ranking import MODELS
from f1_pipelines.warehouse.replace import replace_slices

if TYPE_CHECKING:
    from f1_pipelines.models.pretrain import Pretrained
    from f1_pipelines.tracking.runs import TrackedRun


class TemperatureConfig(dg.Config):
    """Size of the temperature search."""

    trials: int = Field(12, ge=1, le=500, description="Total number of trials, including those of earlier runs.")
    seed: int = Field(0, ge=0, description="Seed of the search and of each training.")


@dg.asset(**RANKING_GROUP, kinds={"python", "pytorch"}, deps=[ranking_features],
          metadata=described(tables.TEMPERATURES))
def listnet_temperature(context: dg.AssetExecutionContext, config: TemperatureConfig, warehouse: Warehouse,
                        checkpoints: Checkpoints) -> dg.MaterializeResult[None]:
    """Temperature of F1Net's ListNet loss, searched with Hyperopt. One row per trial.

    Validates on the last pretraining season, never on a later one. Saves each trial as it ends; an interrupted search
    resumes and gives the same result as an uninterrupted one.
    """
    from f1_pipelines.models.temperature import search_temperature

    rows = training_rows(warehouse)
    rows = rows[rows["season"].isin(PRETRAINING_SEASONS)]
    version = data_version(rows)
    trials_file = checkpoints.folder / f"temperature-{version}-{config.seed}.jsonl"

    def progress(trial: int, temperature: float, spearman: float) -> None:
        context.log.info("trial %d of %d: T = %.2f gives Spearman %.4f", trial, config.trials, temperature, spearman)

    search = search_temperature(rows, trials_file, max_trials=config.trials, seed=config.seed, progress=progress)
    table = search.trials.assign(data_version=version, seed=config.seed)
    with warehouse.write("listnet_temperature") as connection:
        replace_slices(connection, tables.TEMPERATURES, table[tables.TEMPERATURES.column_names], accept_fewer_rows=True)
    return dg.MaterializeResult(metadata={
        "temperature": search.temperature, "spearman": search.spearman, "trials": len(table),
        "data_version": version, "preview": preview(table.sort_values("spearman", ascending=False)),
    })


class PretrainConfig(dg.Config):
    """Settings of the pretraining."""

    seasons: list[int] = Field(list(PRETRAINING_SEASONS), description="Seasons to train on.")
    seed: int = Field(0, ge=0, description="Seed of the training.")
    temperature: float | None = Field(None, gt=0, description="ListNet temperature of F1Net; default: the best of "
                                      "listnet_temperature on these data, or 3.4.")


@dg.asset(**RANKING_GROUP, kinds={"python", "pytorch"}, deps=[ranking_features, listnet_temperature], pool="gpu",
          metadata=described(tables.CHECKPOINTS))
def pretrained_ranker(context: dg.AssetExecutionContext, config: PretrainConfig, warehouse: Warehouse,
                      checkpoints: Checkpoints, compute: Compute, clock: Clock, tracking: Tracking,
                      ) -> dg.MaterializeResult[None]:
    """Our ranker and the reference F1Net, trained on past seasons. One row per checkpoint.

    Ours becomes a candidate for champion; `promoted_ranker` decides. Weights are stored as safetensors beside their
    `meta.json`.
    """
    from f1_pipelines.models.pretrain import pretrain

    rows = training_rows(warehouse)
    rows = rows[rows["season"].isin(config.seasons)]
    version = data_version(rows)
    with warehouse.read() as connection:
        searched = connection.execute(
            "SELECT temperature FROM ranking.temperatures WHERE data_version = ? ORDER BY spearman DESC, trial LIMIT 1",
            [version]).fetchall()
    temperature = config.temperature or (searched[0][0] if searched else F1NET.temperature)
    with tracking.run(context, "pretrained_ranker", tags={"data_version": version}) as run:
        rankers = pretrain(rows, seasons=tuple(config.seasons), seed=config.seed, temperature=temperature,
                           device=compute.resolve(), data_version=version, folder=checkpoints.folder,
                           created_at=clock.now(), log=context.log.info)
        trained = [TrainedCheckpoint(_tracked(context, run, ranker), rows, "train") for ranker in rankers]
        ours = rankers[0]
        with warehouse.write("pretrained_ranker") as connection:
            store(connection, trained)
        with warehouse.read() as connection:
            table = connection.execute("SELECT * FROM ranking.checkpoints WHERE checkpoint IN (SELECT unnest(?))",
                                       [[ranker.row["checkpoint"] for ranker in trained]]).df()
    return dg.MaterializeResult(metadata={
        "checkpoint": ours.row["checkpoint"], "path": dg.MetadataValue.path(ours.row["path"]),
        "seconds": ours.seconds, "device": compute.resolve(), "data_version": version,
        "temperature_of_f1net": temperature, "races": int(ours.row["n_races"]),
        "trained_through": ours.row["trained_through"], **json.loads(ours.row["metrics"]),
        "loss": line_plot({ranker.row["model"]: ranker.losses for ranker in rankers}, "Training loss", "epoch"),
        "preview": preview(table[["checkpoint", "model", "kind", "n_races", "trained_through", "promoted"]]),
        "mlflow": linked(run),
    })


def _tracked(context: dg.AssetExecutionContext, run: "TrackedRun", ranker: "Pretrained") -> dict[str, Any]:
    """Track a pretrained model as a child run and return its row of `ranking.checkpoints`, with both run ids."""
    checkpoint, model = str(ranker.row["checkpoint"]), str(ranker.row["model"])
    with run.child(model, json.loads(ranker.row["settings"]), {"checkpoint": checkpoint}) as child:
        child.curve("loss", ranker.losses)
        child.metrics({**json.loads(ranker.row["metrics"]), "seconds": ranker.seconds})
        if model == MODELS[0]:
            child.checkpoint(checkpoint, Path(ranker.row["path"]))
        return {**ranker.row, **run_ids(context, child)}


ranking_checks = [
    keys_are_unique(listnet_temperature, tables.TEMPERATURES),
    keys_are_unique(pretrained_ranker, tables.CHECKPOINTS),
]
