"""Tables of schema `ranking` on where things come from: the rows that models saw, and who was promoted why."""
from __future__ import annotations

from dataclasses import replace

from f1_pipelines.tables.features import RANKING
from f1_pipelines.tables.race import WEEKEND
from f1_pipelines.tables.schema import Column, Table

SEEN_BY = ("checkpoint", "prediction")
ROLES = ("train", "adapt", "window", "replay", "predict")
DECISIONS = ("promoted", "candidate", "rolled_back")
DECIDERS = ("rule", "operator")

_VERSION = Column("data_version", "VARCHAR", "Source and digest of one weekend's rows, outcome included if it was seen",
                  required=True)

ROWS_SEEN = Table(
    "ranking", "rows_seen", "Feature rows and outcomes as models saw them, each version once and for ever",
    ("data_version", "driver"), (
        _VERSION,
        *(replace(column, minimum=None, maximum=None) for column in RANKING.columns),
        Column("official_order", "INTEGER", "Place among the starters; missing where no outcome was seen", minimum=1),
        Column("started", "BOOLEAN", "Started the race; missing where no outcome was seen"),
        Column("classified", "BOOLEAN", "Was classified; missing where no outcome was seen"),
    ), slice_by=("data_version",))

LINEAGE = Table(
    "ranking", "lineage", "Which rows each checkpoint and each prediction saw", ("seen_by", "role", "weekend"), (
        Column("seen_by", "VARCHAR", "Checkpoint id, or weekend/stage/checkpoint of a prediction", required=True),
        Column("kind", "VARCHAR", "What saw them", required=True, allowed=SEEN_BY),
        Column("role", "VARCHAR", "What for: to train on, to find newcomers in (adapt), as a new race (window) or an "
               "old one (replay), to predict", required=True, allowed=ROLES),
        WEEKEND, _VERSION,
        Column("n_rows", "INTEGER", "Rows seen", required=True, minimum=1),
        Column("result_version", "INTEGER", "Version of the classification that the outcome is of; missing where none "
               "was seen", minimum=1),
        Column("dagster_run", "VARCHAR", "Dagster run that saw them"),
    ), slice_by=("seen_by",))

PROMOTIONS = Table(
    "ranking", "promotions", "Every decision on which ranker predictions use", ("decided_at", "candidate"), (
        Column("decided_at", "TIMESTAMPTZ", "When (UTC)", required=True),
        Column("candidate", "VARCHAR", "Checkpoint that was to become champion", required=True),
        Column("champion", "VARCHAR", "Champion before; missing for the first one"),
        Column("weekend", "VARCHAR", "Last weekend that the candidate has learnt from", required=True),
        Column("decision", "VARCHAR", "promoted: it is champion now; rolled_back: it is so again; candidate: it waits",
               required=True, allowed=DECISIONS),
        Column("decided_by", "VARCHAR", "The rule, or a person", required=True, allowed=DECIDERS),
        Column("reason", "VARCHAR", "Why, for people", required=True),
        Column("n_races", "INTEGER", "Races that candidate and champion were judged by", minimum=0),
        Column("candidate_spearman", "DOUBLE", "Mean over these races, each scored before it was learnt from",
               minimum=-1, maximum=1),
        Column("champion_spearman", "DOUBLE", "The champion's, likewise", minimum=-1, maximum=1),
        Column("grid_spearman", "DOUBLE", "Of grid order", minimum=-1, maximum=1),
        Column("margin", "DOUBLE", "By how much the candidate may be worse than the champion", minimum=0),
        Column("n_examined_races", "INTEGER", "Latest races, known to it or not, that its own weights were examined on",
               minimum=0),
        Column("own_spearman", "DOUBLE", "Mean over these races by its own weights: no forecast", minimum=-1,
               maximum=1),
        Column("own_grid_spearman", "DOUBLE", "Of grid order over these races", minimum=-1, maximum=1),
        Column("agreement", "DOUBLE", "Mean Spearman between its orders of these races and those of the ranker that it "
               "was trained on from, of the champion for a pretrained one", minimum=-1, maximum=1),
        Column("forgotten", "DOUBLE", "Spearman that its own weights have lost on the last pretraining season",
               minimum=-2, maximum=2),
        Column("over_champion_low", "DOUBLE", "Forecasts against the champion's: lower end of the paired 99 % interval "
               "of the mean difference"),
        Column("over_champion_high", "DOUBLE", "Its upper end"),
        Column("over_grid_low", "DOUBLE", "Forecasts against grid order: lower end of that interval"),
        Column("over_grid_high", "DOUBLE", "Its upper end"),
    ), slice_by=("decided_at", "candidate"))

LINEAGE_TABLES = (ROWS_SEEN, LINEAGE, PROMOTIONS)
