"""Tables of schema `ranking`: trained models and what they predicted."""
from __future__ import annotations

from f1_pipelines.tables.features import STAGES
from f1_pipelines.tables.race import CONSTRUCTOR, DRIVER, WEEKEND
from f1_pipelines.tables.schema import Column, Table

MODELS = ("champion", "f1net_reference")
KINDS = ("pretrained", "adapted", "ewc")

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
        Column("settings", "VARCHAR", "Dial settings of the training as JSON"),
        Column("dagster_run", "VARCHAR", "Dagster run that trained it"),
        Column("mlflow_run", "VARCHAR", "MLflow run with its curves; missing where it was not tracked"),
    ), slice_by=("checkpoint",))

# Missing for checkpoints that were stored without them, and for a car alone in its team where the mate is concerned.
CHANCE_COLUMNS = (
    Column("p_win", "DOUBLE", "Probability of winning", minimum=0, maximum=1),
    Column("p_podium", "DOUBLE", "Probability of a place 1 to 3", minimum=0, maximum=1),
    Column("p_points", "DOUBLE", "Probability of a place 1 to 10, which scores in a Grand Prix", minimum=0, maximum=1),
    Column("expected_position", "DOUBLE", "Mean place", minimum=1),
    Column("p_beats_teammate", "DOUBLE", "Probability of being the first of its team; missing for a car alone in it",
           minimum=0, maximum=1),
)

PREDICTIONS = Table(
    "ranking", "predictions", "Predicted finishing orders", ("weekend", "driver", "checkpoint", "stage"), (
        WEEKEND, DRIVER, CHECKPOINT,
        Column("stage", "VARCHAR", "What was known: the entry list, practice, qualifying or the grid", required=True,
               allowed=STAGES),
        CONSTRUCTOR,
        Column("predicted_position", "INTEGER", "Place in the predicted order, 1..n over the entry list", required=True,
               minimum=1),
        Column("score", "DOUBLE", "The model's score, higher = further ahead", required=True),
        *CHANCE_COLUMNS,
        Column("actual_position", "INTEGER", "Place in the official order of the starters, once known", minimum=1),
        Column("exact_match", "BOOLEAN", "Whether prediction and result agree; missing until the result is known"),
        DATA_VERSION,
        Column("in_sample", "BOOLEAN", "The model learnt from this race: no forecast, whatever it says", required=True),
        Column("made_at", "TIMESTAMPTZ", "When it was made (UTC)", required=True),
    ), slice_by=("weekend", "checkpoint", "stage"))

SIMULATED_PREDICTIONS = Table(
    "ranking", "simulated_predictions", "The same chances from simulated races, in which the ranker's scores are paces",
    ("weekend", "driver", "checkpoint", "stage"), (
        WEEKEND, DRIVER, CHECKPOINT,
        Column("stage", "VARCHAR", "What was known, as in ranking.predictions", required=True, allowed=STAGES),
        CONSTRUCTOR,
        Column("predicted_position", "INTEGER", "Place by expected position, 1..n over the entry list", required=True,
               minimum=1),
        Column("pace_s", "DOUBLE", "Pace from the score, against the median car, + is slower [s/lap]", required=True),
        *CHANCE_COLUMNS,
        Column("races", "INTEGER", "Simulated races", required=True, minimum=1),
        Column("in_sample", "BOOLEAN", "The ranker learnt from this race: no forecast at all", required=True),
        Column("circuit_provenance", "VARCHAR", "Where the circuit's physics come from: fitted, circuit_prior or prior",
               required=True),
        Column("inputs", "VARCHAR", "What came in beside rows and checkpoint, as JSON: what a score is worth, and the "
               "circuit where it is fitted"),
        Column("made_at", "TIMESTAMPTZ", "When it was made (UTC)", required=True),
    ), slice_by=("weekend", "checkpoint", "stage"))

RANKING_TABLES = (TEMPERATURES, CHECKPOINTS, PREDICTIONS, SIMULATED_PREDICTIONS)
