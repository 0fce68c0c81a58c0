"""The ranker that learns after every race."""
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import dagster as dg
import duckdb
import pandas as pd
from pydantic import Field

from f1_pipelines.assets.checkpoint_store import TrainedCheckpoint, run_ids, store
from f1_pipelines.assets.checks import keys_are_unique, no_rows_check
from f1_pipelines.assets.features import RANKING_BY_WEEKEND, not_learnt_from, ranking_features, training_rows
from f1_pipelines.assets.metadata import described, line_plot, preview
from f1_pipelines.assets.partitions import weekends_of_run
from f1_pipelines.assets.race_data import race_results
from f1_pipelines.assets.ranking import pretrained_ranker
from f1_pipelines.features.history import unlearnable_weekends
from f1_pipelines.forecast.predictions import pretrained_checkpoint
from f1_pipelines.models.continual.settings import DEFAULT, METHODS, UpdateConfig
from f1_pipelines.resources.checkpoints import Checkpoints
from f1_pipelines.resources.race_data import Clock
from f1_pipelines.resources.tracking import Tracking, linked
from f1_pipelines.resources.warehouse import Warehouse
from f1_pipelines.tables.learning import UPDATES
from f1_pipelines.tables.ranking import CHECKPOINTS, MODELS
from f1_pipelines.warehouse.replace import replace_slices

if TYPE_CHECKING:
    from f1_pipelines.models.continual.chain import Link
    from f1_pipelines.tracking.runs import TrackedRun


class LearnConfig(dg.Config):
    """Settings of the update after a race, measured in docs/lab-notes/continual-learning.md (benchmarks.continual)."""

    models: list[str] = Field(list(MODELS), min_length=1, description="Pretrained models to update.")
    method: str = Field(DEFAULT.method, description=f"How to prevent forgetting: {', '.join(METHODS)}.")
    epochs: int = Field(DEFAULT.epochs, description="Passes over the races of the window.")
    lr: float = Field(DEFAULT.lr, description="Learning rate of Adam.")
    ewc_lambda: float = Field(DEFAULT.ewc_lambda, description="Weight of the EWC penalty; the documented 10 has hardly "
                              "any effect.")
    window_races: int = Field(DEFAULT.window_races, description="Number of latest races to train on.")
    races_per_step: int = Field(DEFAULT.races_per_step, description="Races in one optimizer step.")
    freeze_drivers: bool = Field(DEFAULT.freeze_drivers, description="Freeze the embeddings of known drivers.")
    fisher_decay: float = Field(DEFAULT.fisher_decay, description="Decay of the Fisher information, online_ewc only.")
    replayed_races: int = Field(DEFAULT.replayed_races, description="Old races for each new one, replay only.")
    restart: bool = Field(DEFAULT.restart, description="Start each update from the pretrained weights.")
    seed: int = Field(DEFAULT.seed, ge=0, description="Seed of dropout, race order and replayed races.")

    def settings(self) -> UpdateConfig:
        return UpdateConfig(**{name: getattr(self, name) for name in asdict(DEFAULT)})


@dg.asset(**RANKING_BY_WEEKEND, kinds={"python", "pytorch"}, deps=[pretrained_ranker, ranking_features, race_results],
          pool="gpu", metadata=described(UPDATES))
def ewc_ranker(context: dg.AssetExecutionContext, config: LearnConfig, warehouse: Warehouse, checkpoints: Checkpoints,
               clock: Clock, tracking: Tracking) -> dg.MaterializeResult[None]:
    """The pretrained rankers, updated race by race through this weekend. One row per link of the chain.

    Keeps links that are up to date, retrains from the race of an amended result on, and skips races that can't be
    learnt from (`race.unlearnable_weekends`) until they are corrected. Each link is a checkpoint
    (`ranking.checkpoints`) with its parent, the parent's score on the new race and how much of the last pretraining
    season was forgotten. The newest link of our ranker is a candidate for champion; `promoted_ranker` decides.
    """
    from f1_pipelines.models.checkpoints import load_checkpoint
    from f1_pipelines.models.continual.chain import bring_up_to_date

    weekends, settings = weekends_of_run(context), config.settings()
    rows = training_rows(warehouse)
    with warehouse.read() as connection:
        stored, unlearnable = stored_updates(connection), unlearnable_weekends(connection)
        folders = {model: pretrained_checkpoint(connection, model, checkpoints.folder) for model in config.models}
    # A stored race start takes precedence: it may have moved since the calendar was planned.
    stored_starts = rows.loc[rows["weekend"].isin([weekend.key for weekend in weekends]), "race_start"]
    until = max([weekends[-1].race_start, *stored_starts])
    with tracking.run(context, f"ewc_ranker {weekends[-1].key}", settings.stored()) as run:
        chains = {model: bring_up_to_date(
            load_checkpoint(folder), rows, until, settings, stored, folder=checkpoints.folder, created_at=clock.now(),
            log=context.log.info) for model, folder in folders.items()}
        links = [link for chain in chains.values() for link in chain.made]
        trained = [_tracked(context, run, link) for link in links]
        with warehouse.write(f"ewc_ranker {weekends[-1].key}") as connection:
            replace_slices(connection, UPDATES, pd.DataFrame([link.update for link in links],
                                                             columns=UPDATES.column_names))
            for model, chain in chains.items():
                connection.execute("UPDATE ranking.updates SET current = list_contains(?::VARCHAR[], checkpoint) "
                                   "WHERE model = ?", [chain.ids, model])
            store(connection, trained)
        with warehouse.read() as connection:
            updates = stored_updates(connection)
    return dg.MaterializeResult(metadata={
        "links_made": len(links), "settings": settings.stored(),
        **_learning_metadata(updates, chains[config.models[0]].ids, config.models[0]),
        **{f"{model} forgot": _forgotten(updates, chain.ids) for model, chain in chains.items()},
        **_curves(links), "mlflow": linked(run), **not_learnt_from(unlearnable),
    })


def _tracked(context: dg.AssetExecutionContext, run: "TrackedRun", link: "Link") -> TrainedCheckpoint:
    """Track a link as a child run and return its checkpoint for the warehouse."""
    checkpoint, update = link.checkpoint, link.update
    tags = {name: update[name] for name in ("checkpoint", "parent", "weekend", "data_version")}
    with run.child(f"{update['model']} {update['kind']} {update['weekend']}", json.loads(update["settings"]),
                   tags) as child:
        for curve in ("loss", "penalty"):
            child.curve(curve, [epoch[curve] for epoch in link.history])
        child.metrics({**checkpoint.meta["metrics"], "seconds": update["seconds"]})
        if update["model"] == MODELS[0]:
            child.checkpoint(checkpoint.id, checkpoint.path)
        return TrainedCheckpoint({**link.row, **run_ids(context, child)}, link.rows, link.roles)


def stored_updates(connection: duckdb.DuckDBPyConnection) -> pd.DataFrame:
    """Read all of `ranking.updates`, in race order."""
    return UPDATES.conform(connection.execute(
        "SELECT u.* FROM ranking.updates u LEFT JOIN race.calendar USING (weekend) "
        "ORDER BY race_start, u.created_at, kind").df())


def _learning_metadata(updates: pd.DataFrame, ids: list[str], model: str) -> dict[str, Any]:
    """Metadata of a chain: numbers of its newest link, a plot of the season, a table of its links."""
    chain = updates[updates["checkpoint"].isin(ids)]
    learnt = chain[chain["kind"] == "ewc"]
    if learnt.empty:
        return {"reason": f"{model} has no official result after its pretraining to learn from"}
    newest = learnt.iloc[-1]
    numbers = ("spearman_before", "spearman_after", "spearman_grid", "old_season_before", "old_season_after", "loss",
               "penalty", "seconds")
    return {
        "checkpoint": newest["checkpoint"], "parent": newest["parent"], "data_version": newest["data_version"],
        "learnt_through": newest["weekend"], "races_learnt": len(learnt),
        **{name: float(newest[name]) for name in numbers},
        "season_spearman_before": float(learnt["spearman_before"].mean()),
        "season_spearman_grid": float(learnt["spearman_grid"].mean()),
        "season": line_plot({
            "forecast (before learning from it)": list(learnt["spearman_before"].astype(float)),
            "after": list(learnt["spearman_after"].astype(float)),
            "grid": list(learnt["spearman_grid"].astype(float)),
            "last pretraining season": list(learnt["old_season_after"].astype(float)),
        }, f"{model}: Spearman, race by race", "race since the pretraining"),
        "preview": preview(chain[["weekend", "kind", "checkpoint", "parent", "n_races", *numbers]].iloc[::-1], 14),
    }


def _forgotten(updates: pd.DataFrame, ids: list[str]) -> float:
    """Spearman that a chain has lost on the last pretraining season; 0 before its first link."""
    chain = updates[updates["checkpoint"].isin(ids)]
    return float(chain["old_season_before"].iloc[0] - chain["old_season_after"].iloc[-1]) if len(chain) else 0.0


def _curves(links: list["Link"]) -> dict[str, Any]:
    """Plot the loss and penalty of each model's newest update among these links."""
    newest = {link.update["model"]: link for link in links if link.history}
    if not newest:
        return {}
    curves = {f"{model} {name}": [epoch[name] for epoch in link.history]
              for model, link in newest.items() for name in ("loss", "penalty")}
    return {"loss_and_penalty": line_plot(curves, "Newest update: loss of the new races, EWC penalty", "epoch")}


# A chain can't leave out a link, so a broken one blocks a whole range.
learning_checks = [
    keys_are_unique(ewc_ranker, UPDATES, CHECKPOINTS),
    no_rows_check(
        ewc_ranker, "every_link_has_its_parent", "A broken chain can't be traced to its training data.",
        """SELECT u.checkpoint, u.weekend, u.parent, u.pretrained FROM ranking.updates u
           WHERE NOT EXISTS (SELECT 1 FROM ranking.checkpoints c WHERE c.checkpoint = u.checkpoint)
              OR NOT EXISTS (SELECT 1 FROM ranking.checkpoints c WHERE c.checkpoint = u.parent)
              OR NOT EXISTS (SELECT 1 FROM ranking.checkpoints c
                             WHERE c.checkpoint = u.pretrained AND c.kind = 'pretrained')""", stops_range=True),
    no_rows_check(
        ewc_ranker, "one_current_link_per_race", "Two chains of one model would give two candidates.",
        """SELECT model, weekend, kind, count(*) AS links FROM ranking.updates WHERE current
           GROUP BY ALL HAVING count(*) > 1""", stops_range=True),
]
