"""Tables of schema `ranking` on lineage: the rows that models saw, and decisions on promotion."""
from __future__ import annotations

from dataclasses import replace

from f1_pipelines.tables.features import RANKING
from f1_pipelines.tables.race import WEEKEND
from f1_pipelines.tables.schema import Column, Table

SEEN_BY = ("checkpoint", "prediction")
ROLES = ("train", "adapt", "window", "replay", "predict")
DECISIONS = ("promoted", "candidate", "rolled_back")
DECIDERS = ("rule", "operator")

_VERSION = Column("data_version", "VARCHAR", "Source and digest of one weekend's rows, with the outcome if it was seen",
                  required=True)

ROWS_SEEN = Table(
    "ranking", "rows_seen", "Feature rows and outcomes that models saw, each version stored once, permanently",
    ("data_version", "driver"), (
        _VERSION,
        *(replace(column, minimum=None, maximum=None) for column in RANKING.columns),
        Column("official_order", "INTEGER", "Position among the starters; missing if no outcome was seen", minimum=1),
        Column("started", "BOOLEAN", "Whether it started the race; missing if no outcome was seen"),
        Column("classified", "BOOLEAN", "Whether it was classified; missing if no outcome was seen"),
    ), slice_by=("data_version",))

LINEAGE = Table(
    "ranking", "lineage", "Rows that each checkpoint and each prediction saw", ("seen_by", "role", "weekend"), (
        Column("seen_by", "VARCHAR", "Checkpoint id, or weekend/stage/checkpoint of a prediction", required=True),
        Column("kind", "VARCHAR", "Kind of `seen_by`", required=True, allowed=SEEN_BY),
        Column("role", "VARCHAR", "Use of the rows: pretraining (train), finding newcomers (adapt), a new race of an "
               "update (window), an old one (replay), prediction (predict)", required=True, allowed=ROLES),
        WEEKEND, _VERSION,
        Column("n_rows", "INTEGER", "Rows seen", required=True, minimum=1),
        Column("result_version", "INTEGER", "Version of the classification with the outcome; missing if none was seen",
               minimum=1),
        Column("dagster_run", "VARCHAR", "Dagster run that used them"),
    ), slice_by=("seen_by",))

PROMOTIONS = Table(
    "ranking", "promotions", "Every decision on which ranker predictions use", ("decided_at", "candidate"), (
        Column("decided_at", "TIMESTAMPTZ", "When (UTC)", required=True),
        Column("candidate", "VARCHAR", "Checkpoint proposed as champion", required=True),
        Column("champion", "VARCHAR", "Previous champion; missing for the first one"),
        Column("weekend", "VARCHAR", "Last weekend that the candidate learnt from", required=True),
        Column("decision", "VARCHAR", "promoted: now champion; rolled_back: champion again; candidate: not promoted",
               required=True, allowed=DECISIONS),
        Column("decided_by", "VARCHAR", "The rule, or a person", required=True, allowed=DECIDERS),
        Column("reason", "VARCHAR", "Reason of the decision", required=True),
        Column("n_races", "INTEGER", "Races on which candidate and champion were compared", minimum=0),
        Column("candidate_spearman", "DOUBLE", "The candidate's mean Spearman on these races, each scored before "
               "learning from it", minimum=-1, maximum=1),
        Column("champion_spearman", "DOUBLE", "The champion's mean Spearman, likewise", minimum=-1, maximum=1),
        Column("grid_spearman", "DOUBLE", "Mean Spearman of grid order", minimum=-1, maximum=1),
        Column("margin", "DOUBLE", "Largest accepted Spearman deficit to the champion", minimum=0),
        Column("n_examined_races", "INTEGER", "Number of latest races, in sample or not, in the acceptance test of the "
               "candidate's weights", minimum=0),
        Column("own_spearman", "DOUBLE", "Mean Spearman of the candidate's weights on these races: no forecast",
               minimum=-1, maximum=1),
        Column("own_grid_spearman", "DOUBLE", "Mean Spearman of grid order on these races", minimum=-1, maximum=1),
        Column("agreement", "DOUBLE", "Mean Spearman between its orders of these races and those of its parent, or of "
               "the champion for a pretrained candidate", minimum=-1, maximum=1),
        Column("forgotten", "DOUBLE", "Spearman that its weights lost on the last pretraining season", minimum=-2,
               maximum=2),
        Column("over_champion_low", "DOUBLE", "Mean difference to the champion's forecasts: lower end of the paired "
               "99 % interval"),
        Column("over_champion_high", "DOUBLE", "Its upper end"),
        Column("over_grid_low", "DOUBLE", "Mean difference to grid order: lower end of the paired 99 % interval"),
        Column("over_grid_high", "DOUBLE", "Its upper end"),
    ), slice_by=("decided_at", "candidate"))

LINEAGE_TABLES = (ROWS_SEEN, LINEAGE, PROMOTIONS)
