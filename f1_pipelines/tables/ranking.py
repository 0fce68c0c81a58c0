"""Tables of schema `ranking`: trained models and their predictions."""
from __future__ import annotations

from f1_pipelines.tables.features import STAGES
from f1_pipelines.tables.race import CONSTRUCTOR, DRIVER, WEEKEND
from f1_pipelines.tables.schema import Column, Table

MODELS = ("champion", "f1net_reference")
KINDS = ("pretrained", "adapted", "ewc")

DATA_VERSION = Column("data_version", "VARCHAR", "Sources and digest of the feature rows and outcomes used; "
                      "sample = made-up data", required=True)
CHECKPOINT = Column("checkpoint", "VARCHAR", "Checkpoint id: a digest of its weights and settings", required=True)

TEMPERATURES = Table(
    "ranking", "temperatures", "Trials of the search for F1Net's ListNet temperature",
    ("data_version", "seed", "trial"), (
        DATA_VERSION,
        Column("seed", "INTEGER", "Seed of the search", required=True),
        Column("trial", "INTEGER", "Trial from 1", required=True, minimum=1),
        Column("temperature", "DOUBLE", "Temperature of the trial", required=True, minimum=0),
        Column("spearman", "DOUBLE", "Mean Spearman on the last season of the pretraining set", required=True),
    ), slice_by=("data_version", "seed"))

CHECKPOINTS = Table(
    "ranking", "checkpoints", "Every trained ranker", ("checkpoint",), (
        CHECKPOINT,
        Column("kind", "VARCHAR", "How it was trained", required=True, allowed=KINDS),
        Column("model", "VARCHAR", "Architecture: f1net_reference or champion", required=True),
        Column("parent", "VARCHAR", "Checkpoint from which training started, if any"),
        Column("trained_from", "VARCHAR", "First training weekend", required=True),
        Column("trained_through", "VARCHAR", "Last training weekend", required=True),
        Column("n_races", "INTEGER", "Number of training races", required=True, minimum=1),
        Column("feature_version", "VARCHAR", "Version of the features it reads", required=True),
        DATA_VERSION,
        Column("seed", "INTEGER", "Seed of the training", required=True),
        Column("metrics", "VARCHAR", "Metrics of the training as JSON", required=True),
        Column("path", "VARCHAR", "Folder with model.safetensors and meta.json", required=True),
        Column("promoted", "BOOLEAN", "Whether predictions use it", required=True),
        Column("created_at", "TIMESTAMPTZ", "When it was trained (UTC)", required=True),
        Column("settings", "VARCHAR", "Hyperparameters of the training as JSON"),
        Column("dagster_run", "VARCHAR", "Dagster run that trained it"),
        Column("mlflow_run", "VARCHAR", "MLflow run with its metrics; missing if it was not tracked"),
    ), slice_by=("checkpoint",))

# Missing for predictions of checkpoints stored without probabilities.
CHANCE_COLUMNS = (
    Column("p_win", "DOUBLE", "Probability of a win", minimum=0, maximum=1),
    Column("p_podium", "DOUBLE", "Probability of a top-3 finish", minimum=0, maximum=1),
    Column("p_points", "DOUBLE", "Probability of a top-10 finish, which scores points in a Grand Prix", minimum=0,
           maximum=1),
    Column("expected_position", "DOUBLE", "Mean position", minimum=1),
    Column("p_beats_teammate", "DOUBLE", "Probability of being the first of its team; missing for a team's only car",
           minimum=0, maximum=1),
)

PREDICTIONS = Table(
    "ranking", "predictions", "Predicted finishing orders", ("weekend", "driver", "checkpoint", "stage"), (
        WEEKEND, DRIVER, CHECKPOINT,
        Column("stage", "VARCHAR", "Latest known data: entry list, practice, qualifying or grid", required=True,
               allowed=STAGES),
        CONSTRUCTOR,
        Column("predicted_position", "INTEGER", "Predicted position, 1..n over the entry list", required=True,
               minimum=1),
        Column("score", "DOUBLE", "The model's score, higher = further ahead", required=True),
        *CHANCE_COLUMNS,
        Column("actual_position", "INTEGER", "Position in the official order of the starters, once known", minimum=1),
        Column("exact_match", "BOOLEAN", "Whether predicted and actual position agree; missing until the result is "
               "known"),
        DATA_VERSION,
        Column("in_sample", "BOOLEAN", "Whether the model learnt from this race; then it is no forecast",
               required=True),
        Column("made_at", "TIMESTAMPTZ", "When it was made (UTC)", required=True),
    ), slice_by=("weekend", "checkpoint", "stage"))

SIMULATED_PREDICTIONS = Table(
    "ranking", "simulated_predictions", "Probabilities from simulated races, with the ranker's scores as paces",
    ("weekend", "driver", "checkpoint", "stage"), (
        WEEKEND, DRIVER, CHECKPOINT,
        Column("stage", "VARCHAR", "Latest known data, as in ranking.predictions", required=True, allowed=STAGES),
        CONSTRUCTOR,
        Column("predicted_position", "INTEGER", "Rank by expected position, 1..n over the entry list", required=True,
               minimum=1),
        Column("pace_s", "DOUBLE", "Pace from the score, against the median car, + is slower [s/lap]", required=True),
        *CHANCE_COLUMNS,
        Column("races", "INTEGER", "Number of simulated races", required=True, minimum=1),
        Column("in_sample", "BOOLEAN", "Whether the ranker learnt from this race; then it is no forecast",
               required=True),
        Column("circuit_provenance", "VARCHAR", "Source of the circuit's parameters: fitted, circuit_prior or prior",
               required=True),
        Column("inputs", "VARCHAR", "Inputs beside rows and checkpoint, as JSON: the pace per score, and the circuit's "
               "parameters if fitted"),
        Column("made_at", "TIMESTAMPTZ", "When it was made (UTC)", required=True),
    ), slice_by=("weekend", "checkpoint", "stage"))

RANKING_TABLES = (TEMPERATURES, CHECKPOINTS, PREDICTIONS, SIMULATED_PREDICTIONS)
