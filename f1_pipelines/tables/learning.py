"""Tables of schema `ranking` on the ranker that keeps learning."""
from __future__ import annotations

from f1_pipelines.tables.race import WEEKEND
from f1_pipelines.tables.ranking import CHECKPOINT, DATA_VERSION, KINDS
from f1_pipelines.tables.schema import Column, Table

UPDATES = Table(
    "ranking", "updates", "Every link of the chains that keep learning", ("checkpoint",), (
        CHECKPOINT,
        Column("kind", "VARCHAR", "adapted: newcomers of a season got rows; ewc: learnt after a race", required=True,
               allowed=KINDS[1:]),
        Column("model", "VARCHAR", "Architecture: f1net_reference or champion", required=True),
        Column("parent", "VARCHAR", "The link before, or the pretrained checkpoint", required=True),
        Column("pretrained", "VARCHAR", "Checkpoint that the chain began with, EWC's anchor", required=True),
        WEEKEND,
        Column("method", "VARCHAR", "What keeps old knowledge: ewc, finetune, ...", required=True),
        Column("settings", "VARCHAR", "All hyperparameters as JSON", required=True),
        Column("n_races", "INTEGER", "Races it saw, replayed old ones included; 0 for an adapted one", required=True,
               minimum=0),
        Column("spearman_before", "DOUBLE", "Of the parent on this race, which it had not learnt from: a forecast",
               minimum=-1, maximum=1),
        Column("spearman_after", "DOUBLE", "Of this link on the same race, in sample; missing for an adapted one",
               minimum=-1, maximum=1),
        Column("spearman_grid", "DOUBLE", "Of grid order on the same race", minimum=-1, maximum=1),
        Column("old_season_before", "DOUBLE", "Mean of the parent on the last pretraining season", minimum=-1,
               maximum=1),
        Column("old_season_after", "DOUBLE", "Mean of this link on it: lower by what was forgotten", minimum=-1,
               maximum=1),
        Column("loss", "DOUBLE", "Mean loss of the window's races in the last epoch"),
        Column("penalty", "DOUBLE", "Pull to the old weights in the last step, lambda included; 0 without a pull",
               minimum=0),
        Column("seconds", "DOUBLE", "Time the update took [s]", required=True, minimum=0),
        DATA_VERSION,
        Column("current", "BOOLEAN", "Part of its model's chain as it stands; not once an amended race, other settings "
               "or a new pretraining has put another in its place", required=True),
        Column("created_at", "TIMESTAMPTZ", "When it was made (UTC)", required=True),
    ), slice_by=("checkpoint",))

LEARNING_TABLES = (UPDATES,)
