"""The ranker that keeps learning after every race."""
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
    """How to learn after a race. `python -m benchmarks.continual` measures it: docs/lab-notes/continual-learning.md."""

    models: list[str] = Field(list(MODELS), min_length=1, description="Which pretrained models keep learning.")
    method: str = Field(DEFAULT.method, description=f"What keeps old knowledge: {', '.join(METHODS)}.")
    epochs: int = Field(DEFAULT.epochs, description="Times that each race of the window is seen.")
    lr: float = Field(DEFAULT.lr, description="Learning rate of Adam.")
    penalty: float = Field(DEFAULT.penalty, description="Lambda of EWC; the documented 10 does next to nothing.")
    window_races: int = Field(DEFAULT.window_races, description="Latest races learnt from.")
    races_per_step: int = Field(DEFAULT.races_per_step, description="Races in one optimizer step.")
    freeze_drivers: bool = Field(DEFAULT.freeze_drivers, description="Keep known drivers' embeddings as they were.")
    fisher_decay: float = Field(DEFAULT.fisher_decay, description="Share of the Fisher that stays, online_ewc only.")
    replayed_races: int = Field(DEFAULT.replayed_races, description="Old races beside each new one, replay only.")
    restart: bool = Field(DEFAULT.restart, description="Start each update from the pretrained weights.")
    seed: int = Field(DEFAULT.seed, ge=0, description="Seed of dropout, order of races and draw of old ones.")

    def settings(self) -> UpdateConfig:
        return UpdateConfig(**{name: getattr(self, name) for name in asdict(DEFAULT)})


@dg.asset(**RANKING_BY_WEEKEND, kinds={"python", "pytorch"}, deps=[pretrained_ranker, ranking_features, race_results],
          pool="gpu", metadata=described(UPDATES))
def ewc_ranker(context: dg.AssetExecutionContext, config: LearnConfig, warehouse: Warehouse, checkpoints: Checkpoints,
               clock: Clock, tracking: Tracking) -> dg.MaterializeResult[None]:
    """The pretrained rankers, learning on race by race through this weekend. One row per link of the chain.

    Links that are up to date are left alone; an amended result renews those from its race on, and the chain goes on
    without a race that can't be learnt from (`race.unlearnable_weekends`) until it is mended. Each link is a checkpoint
    (`ranking.checkpoints`) with its parent, how good the parent was on the race just run and how much of the last
    pretraining season was forgotten. The newest link of our ranker is a candidate for champion, on which
    `promoted_ranker` decides.
    """
    from f1_pipelines.models.checkpoints import load_checkpoint
    from f1_pipelines.models.continual.chain import bring_up_to_date

    weekends, settings = weekends_of_run(context), config.settings()
    rows = training_rows(warehouse)
    with warehouse.read() as connection:
        stored, marked = stored_updates(connection), unlearnable_weekends(connection)
        folders = {model: pretrained_checkpoint(connection, model, checkpoints.folder) for model in config.models}
    # The session's own start where it is known: it may have moved since the calendar was planned.
    run = rows.loc[rows["weekend"].isin([weekend.key for weekend in weekends]), "race_start"]
    until = max([weekends[-1].race_start, *run])
    with tracking.run(context, f"ewc_ranker {weekends[-1].key}", asdict(settings)) as tracked:
        chains = {model: bring_up_to_date(
            load_checkpoint(folder), rows, until, settings, stored, folder=checkpoints.folder, created_at=clock.now(),
            log=context.log.info) for model, folder in folders.items()}
        made = [link for chain in chains.values() for link in chain.made]
        trained = [_store_links(context, tracked, link) for link in made]
        with warehouse.write(f"ewc_ranker {weekends[-1].key}") as connection:
            replace_slices(connection, UPDATES, pd.DataFrame([link.update for link in made],
                                                             columns=UPDATES.column_names))
            for model, chain in chains.items():
                connection.execute("UPDATE ranking.updates SET current = list_contains(?::VARCHAR[], checkpoint) "
                                   "WHERE model = ?", [chain.ids, model])
            store(connection, trained)
        with warehouse.read() as connection:
            season = stored_updates(connection)
    return dg.MaterializeResult(metadata={
        "links_made": len(made), "settings": asdict(settings),
        **_learning_metadata(season, chains[config.models[0]].ids, config.models[0]),
        **{f"{model} forgot": _forgotten(season, chain.ids) for model, chain in chains.items()},
        **_curves(made), "mlflow": linked(tracked), **not_learnt_from(marked),
    })


def _store_links(context: dg.AssetExecutionContext, run: "TrackedRun", link: "Link") -> TrainedCheckpoint:
    """A link in a run of its own, and what the warehouse keeps of it."""
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
    """All of `ranking.updates`, in race order."""
    return UPDATES.conform(connection.execute(
        "SELECT u.* FROM ranking.updates u LEFT JOIN race.calendar USING (weekend) "
        "ORDER BY race_start, u.created_at, kind").df())


def _learning_metadata(updates: pd.DataFrame, ids: list[str], model: str) -> dict[str, Any]:
    """What the UI shows of a chain: its newest link in numbers, the season as a plot, its links as a table."""
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
    """Spearman that a chain has lost on the last pretraining season, of the reference too; 0 before its first link."""
    chain = updates[updates["checkpoint"].isin(ids)]
    return float(chain["old_season_before"].iloc[0] - chain["old_season_after"].iloc[-1]) if len(chain) else 0.0


def _curves(made: list["Link"]) -> dict[str, Any]:
    """Loss and penalty of the newest update of each model among the links made now."""
    newest = {link.update["model"]: link for link in made if link.history}
    if not newest:
        return {}
    curves = {f"{model} {name}": [epoch[name] for epoch in link.history]
              for model, link in newest.items() for name in ("loss", "penalty")}
    return {"loss_and_penalty": line_plot(curves, "Newest update: loss of the new races, pull to the old weights",
                                          "epoch")}


# A link can't be left out of its chain, so one that is broken stops a whole range.
learning_checks = [
    keys_are_unique(ewc_ranker, UPDATES, CHECKPOINTS),
    no_rows_check(
        ewc_ranker, "every_link_has_its_parent", "A chain with a hole can't be traced to what it learnt from.",
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
