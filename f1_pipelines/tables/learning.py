"""Tables of schema `ranking` on continual learning."""
from __future__ import annotations

from f1_pipelines.tables.race import WEEKEND
from f1_pipelines.tables.ranking import CHECKPOINT, DATA_VERSION, KINDS
from f1_pipelines.tables.schema import Column, Table

UPDATES = Table(
    "ranking", "updates", "Every checkpoint (link) of the chains of continual learning", ("checkpoint",), (
        CHECKPOINT,
        Column("kind", "VARCHAR", "adapted: extended by newcomers of a season; ewc: updated after a race",
               required=True, allowed=KINDS[1:]),
        Column("model", "VARCHAR", "Architecture: f1net_reference or champion", required=True),
        Column("parent", "VARCHAR", "The previous link, or the pretrained checkpoint", required=True),
        Column("pretrained", "VARCHAR", "First checkpoint of the chain, EWC's anchor", required=True),
        WEEKEND,
        Column("method", "VARCHAR", "Method against forgetting: ewc, finetune, ...", required=True),
        Column("settings", "VARCHAR", "All hyperparameters as JSON", required=True),
        Column("n_races", "INTEGER", "Races trained on, replayed old ones included; 0 for an adapted link",
               required=True, minimum=0),
        Column("spearman_before", "DOUBLE", "Spearman of the parent on this race, before learning from it: a forecast",
               minimum=-1, maximum=1),
        Column("spearman_after", "DOUBLE", "Spearman of this link on this race, in sample; missing for an adapted link",
               minimum=-1, maximum=1),
        Column("spearman_grid", "DOUBLE", "Spearman of grid order on this race", minimum=-1, maximum=1),
        Column("old_season_before", "DOUBLE", "Mean Spearman of the parent on the last pretraining season", minimum=-1,
               maximum=1),
        Column("old_season_after", "DOUBLE", "Mean Spearman of this link on that season; lower if it forgot",
               minimum=-1, maximum=1),
        Column("loss", "DOUBLE", "Mean loss of the window's races in the last epoch"),
        Column("penalty", "DOUBLE", "EWC penalty in the last step, lambda included; 0 without EWC", minimum=0),
        Column("seconds", "DOUBLE", "Duration of the update [s]", required=True, minimum=0),
        DATA_VERSION,
        Column("current", "BOOLEAN", "Part of its model's current chain; false once an amended race, other settings or "
               "a new pretraining has replaced it", required=True),
        Column("created_at", "TIMESTAMPTZ", "When it was created (UTC)", required=True),
    ), slice_by=("checkpoint",))

LEARNING_TABLES = (UPDATES,)
