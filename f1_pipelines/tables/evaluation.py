"""Tables of schema `ranking` that say how good predictors are, and how far their probabilities can be believed."""
from __future__ import annotations

from f1_pipelines.tables.race import WEEKEND
from f1_pipelines.tables.ranking import DATA_VERSION
from f1_pipelines.tables.schema import Column, Table

PROTOCOLS = ("holdout_2025", "rolling_2019_2025", "prequential_2026")
POPULATIONS = ("starters", "classified")
EVENTS = ("win", "podium", "points")
SLICES = ("season", "circuit", "weather")

PREDICTOR = Column("predictor", "VARCHAR", "Model or baseline", required=True)
PROTOCOL = Column("protocol", "VARCHAR", "Which races taught it, which it was tested on", required=True,
                  allowed=PROTOCOLS)
_POPULATION = Column("population", "VARCHAR", "All who started, or only the classified", required=True,
                     allowed=POPULATIONS)
_N_RACES = Column("n_races", "INTEGER", "Races", required=True, minimum=1)
_PROBABILITY_SCORES = {
    "log_loss_win": "Minus the log of the winner's probability",
    "brier_win": "Squared error of the win probabilities, summed over the cars",
    "brier_podium": "Squared error of the podium probabilities, mean over the cars",
    "brier_points": "Squared error of the probabilities of a place among the first ten, mean over the cars",
}
# Chances are those of all who start, so only that population has them.
_PROBABILITIES = tuple(Column(name, "DOUBLE", f"{meaning}; missing without probabilities, and for the classified alone",
                              minimum=0) for name, meaning in _PROBABILITY_SCORES.items())

EVALUATION = Table(
    "ranking", "evaluation", "How good each predictor was in each race",
    ("weekend", "predictor", "protocol", "population"), (
        WEEKEND, PREDICTOR, PROTOCOL, _POPULATION,
        Column("n_cars", "INTEGER", "Cars ranked", required=True, minimum=2),
        Column("spearman", "DOUBLE", "Rank correlation, ties averaged", minimum=-1, maximum=1),
        Column("kendall", "DOUBLE", "Kendall's tau-b", minimum=-1, maximum=1),
        Column("ndcg10", "DOUBLE", "NDCG of the first ten with gains 25-18-15-12-10-8-6-4-2-1", minimum=0, maximum=1),
        Column("mae_positions", "DOUBLE", "Mean places off", minimum=0),
        Column("top1", "DOUBLE", "Share of the win that the first prediction hit", minimum=0, maximum=1),
        Column("podium_overlap", "DOUBLE", "Share of the podium named", minimum=0, maximum=1),
        *_PROBABILITIES,
        DATA_VERSION,
    ), slice_by=("predictor", "protocol"))

EVALUATION_SUMMARY = Table(
    "ranking", "evaluation_summary", "Means over races, with the paired 95 % bootstrap interval against grid order",
    ("predictor", "protocol", "population"), (
        PREDICTOR, PROTOCOL, _POPULATION, _N_RACES,
        *(Column(name, "DOUBLE", f"Mean of {name} over the races", required=True) for name in (
            "spearman", "kendall", "ndcg10", "mae_positions", "top1", "podium_overlap")),
        Column("delta_spearman", "DOUBLE", "Mean Spearman less that of grid order", required=True),
        Column("delta_low", "DOUBLE", "Lower bound of its 95 % interval", required=True),
        Column("delta_high", "DOUBLE", "Upper bound of its 95 % interval", required=True),
        *(Column(name, "DOUBLE", f"Mean of {name} over the races") for name in _PROBABILITY_SCORES),
        *(column for name in ("log_loss_win", "brier_podium") for column in (
            Column(f"delta_{name}", "DOUBLE", f"Mean {name} less that of the grid-only model, grid_logit"),
            Column(f"delta_{name}_low", "DOUBLE", "Lower bound of its paired 95 % interval"),
            Column(f"delta_{name}_high", "DOUBLE", "Upper bound of its paired 95 % interval"))),
        *(Column(f"ece_{event}", "DOUBLE", f"Expected calibration error of the chance of {event}, ten bins", minimum=0,
                 maximum=1) for event in EVENTS),
        DATA_VERSION,
        Column("settings_version", "VARCHAR", "Digest of protocol, predictors and code version behind the numbers; "
               "with the same data and settings they are not computed again"),
        Column("evaluated_at", "TIMESTAMPTZ", "When it was measured (UTC)", required=True),
    ), slice_by=("predictor", "protocol"))

CALIBRATION = Table(
    "ranking", "calibration", "Predicted probabilities against what happened, in ten bins of equal width",
    ("predictor", "protocol", "event", "bin"), (
        PREDICTOR, PROTOCOL,
        Column("event", "VARCHAR", "Winning, a place among the first three, or among the first ten", required=True,
               allowed=EVENTS),
        Column("bin", "INTEGER", "1 = probabilities below 0.1, 10 = 0.9 and above", required=True, minimum=1,
               maximum=10),
        Column("n", "INTEGER", "Cars whose probability lies there; empty bins have no row", required=True, minimum=1),
        Column("mean_probability", "DOUBLE", "Mean of what was predicted for them", required=True, minimum=0,
               maximum=1),
        Column("frequency", "DOUBLE", "Share of them that it happened to", required=True, minimum=0, maximum=1),
        DATA_VERSION,
    ), slice_by=("predictor", "protocol"))

EVALUATION_SLICES = Table(
    "ranking", "evaluation_slices", "Mean Spearman of all starters by season, circuit and weather, against grid order",
    ("predictor", "protocol", "kind", "slice"), (
        PREDICTOR, PROTOCOL,
        Column("kind", "VARCHAR", "What the races are sorted by", required=True, allowed=SLICES),
        Column("slice", "VARCHAR", "Which of them: a season; race or street circuit; dry, wet (rain tyres were used) "
               "or unknown (no laps are stored)", required=True),
        _N_RACES,
        Column("spearman", "DOUBLE", "Mean over the races", required=True, minimum=-1, maximum=1),
        Column("delta_spearman", "DOUBLE", "The same less that of grid order", required=True),
        Column("delta_low", "DOUBLE", "Lower bound of its paired 95 % interval", required=True),
        Column("delta_high", "DOUBLE", "Upper bound of its paired 95 % interval", required=True),
        DATA_VERSION,
    ), slice_by=("predictor", "protocol"))

EVALUATION_TABLES = (EVALUATION, EVALUATION_SUMMARY, CALIBRATION, EVALUATION_SLICES)
