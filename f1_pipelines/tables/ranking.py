"""Tables of schema `ranking`: trained models, what they predicted, and how good that was."""
from __future__ import annotations

from f1_pipelines.tables.features import STAGES
from f1_pipelines.tables.race import CONSTRUCTOR, DRIVER, WEEKEND
from f1_pipelines.tables.schema import Column, Table

KINDS = ("pretrained", "adapted", "ewc")
PROTOCOLS = ("holdout_2025", "rolling_2019_2025", "prequential_2026")
POPULATIONS = ("starters", "classified")

DATA_VERSION = Column("data_version", "VARCHAR", "Sources and digest of the feature rows and outcomes behind it; "
                      "sample = made up", required=True)
CHECKPOINT = Column("checkpoint", "VARCHAR", "Checkpoint id: a digest of its weights and settings", required=True)

TEMPERATURES = Table(
    "ranking", "temperatures", "Trials of the search for F1Net's ListNet temperature",
    ("data_version", "seed", "trial"), (
        DATA_VERSION,
        Column("seed", "INTEGER", "Seed of the search", required=True),
        Column("trial", "INTEGER", "Number of the trial, from 1", required=True, minimum=1),
        Column("temperature", "DOUBLE", "Temperature tried", required=True, minimum=0),
        Column("spearman", "DOUBLE", "Mean Spearman on the last season of the pretraining set", required=True),
    ), slice_by=("data_version", "seed"))

CHECKPOINTS = Table(
    "ranking", "checkpoints", "Every trained ranker", ("checkpoint",), (
        CHECKPOINT,
        Column("kind", "VARCHAR", "How it was trained", required=True, allowed=KINDS),
        Column("model", "VARCHAR", "Architecture: f1net_reference or champion", required=True),
        Column("parent", "VARCHAR", "Checkpoint it was trained on from, if any"),
        Column("trained_from", "VARCHAR", "First weekend it learnt from", required=True),
        Column("trained_through", "VARCHAR", "Last weekend it learnt from", required=True),
        Column("n_races", "INTEGER", "Races it learnt from", required=True, minimum=1),
        Column("feature_version", "VARCHAR", "Version of the features it reads", required=True),
        DATA_VERSION,
        Column("seed", "INTEGER", "Seed of the training", required=True),
        Column("metrics", "VARCHAR", "Metrics of the training as JSON", required=True),
        Column("path", "VARCHAR", "Folder with model.safetensors and meta.json", required=True),
        Column("promoted", "BOOLEAN", "Whether predictions use it", required=True),
        Column("created_at", "TIMESTAMPTZ", "When it was trained (UTC)", required=True),
    ), slice_by=("checkpoint",))

PREDICTIONS = Table(
    "ranking", "predictions", "Predicted finishing orders", ("weekend", "driver", "checkpoint", "stage"), (
        WEEKEND, DRIVER, CHECKPOINT,
        Column("stage", "VARCHAR", "What was known: the entry list, practice, qualifying or the grid", required=True,
               allowed=STAGES),
        CONSTRUCTOR,
        Column("predicted_position", "INTEGER", "Place in the predicted order, 1..n over the entry list", required=True,
               minimum=1),
        Column("score", "DOUBLE", "The model's score, higher = further ahead", required=True),
        Column("p_win", "DOUBLE", "Probability of winning; missing until a calibrated model gives it", minimum=0,
               maximum=1),
        Column("p_podium", "DOUBLE", "Probability of a place 1 to 3; as p_win", minimum=0, maximum=1),
        Column("p_points", "DOUBLE", "Probability of a place that scores; as p_win", minimum=0, maximum=1),
        Column("expected_position", "DOUBLE", "Mean place; as p_win", minimum=1),
        Column("actual_position", "INTEGER", "Place in the official order of the starters, once known", minimum=1),
        Column("exact_match", "BOOLEAN", "Whether prediction and result agree; missing until the result is known"),
        DATA_VERSION,
        Column("in_sample", "BOOLEAN", "The model learnt from this race: no forecast, whatever it says", required=True),
        Column("made_at", "TIMESTAMPTZ", "When it was made (UTC)", required=True),
    ), slice_by=("weekend", "checkpoint", "stage"))

EVALUATION = Table(
    "ranking", "evaluation", "How good each predictor was in each race", ("weekend", "predictor", "protocol",
                                                                       "population"), (
        WEEKEND,
        Column("predictor", "VARCHAR", "Model or baseline", required=True),
        Column("protocol", "VARCHAR", "Which races taught it, which it was tested on", required=True,
               allowed=PROTOCOLS),
        Column("population", "VARCHAR", "All who started, or only the classified", required=True, allowed=POPULATIONS),
        Column("n_cars", "INTEGER", "Cars ranked", required=True, minimum=2),
        Column("spearman", "DOUBLE", "Rank correlation, ties averaged", minimum=-1, maximum=1),
        Column("kendall", "DOUBLE", "Kendall's tau-b", minimum=-1, maximum=1),
        Column("ndcg10", "DOUBLE", "NDCG of the first ten with gains 25-18-15-12-10-8-6-4-2-1", minimum=0, maximum=1),
        Column("mae_positions", "DOUBLE", "Mean places off", minimum=0),
        Column("top1", "DOUBLE", "Share of the win that the first prediction hit", minimum=0, maximum=1),
        Column("podium_overlap", "DOUBLE", "Share of the podium named", minimum=0, maximum=1),
        Column("log_loss_win", "DOUBLE", "Log loss of the winner; missing for predictors without probabilities",
               minimum=0),
        DATA_VERSION,
    ), slice_by=("predictor", "protocol"))

EVALUATION_SUMMARY = Table(
    "ranking", "evaluation_summary", "Means over races, with the paired 95 % bootstrap interval against grid order",
    ("predictor", "protocol", "population"), (
        Column("predictor", "VARCHAR", "Model or baseline", required=True),
        Column("protocol", "VARCHAR", "Which races taught it, which it was tested on", required=True,
               allowed=PROTOCOLS),
        Column("population", "VARCHAR", "All who started, or only the classified", required=True, allowed=POPULATIONS),
        Column("n_races", "INTEGER", "Races", required=True, minimum=1),
        *(Column(name, "DOUBLE", f"Mean of {name} over the races", required=True) for name in (
            "spearman", "kendall", "ndcg10", "mae_positions", "top1", "podium_overlap")),
        Column("delta_spearman", "DOUBLE", "Mean Spearman less that of grid order", required=True),
        Column("delta_low", "DOUBLE", "Lower bound of its 95 % interval", required=True),
        Column("delta_high", "DOUBLE", "Upper bound of its 95 % interval", required=True),
        DATA_VERSION,
        Column("evaluated_at", "TIMESTAMPTZ", "When it was measured (UTC)", required=True),
    ), slice_by=("predictor", "protocol"))

RANKING_TABLES = (TEMPERATURES, CHECKPOINTS, PREDICTIONS, EVALUATION, EVALUATION_SUMMARY)
