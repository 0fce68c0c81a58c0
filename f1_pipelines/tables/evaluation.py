"""Tables of schema `ranking`: accuracy of predictors and calibration of their probabilities."""
from __future__ import annotations

from f1_pipelines.tables.race import WEEKEND
from f1_pipelines.tables.ranking import DATA_VERSION
from f1_pipelines.tables.schema import Column, Table

PROTOCOLS = ("holdout_2025", "rolling_2019_2025", "prequential_2026")
POPULATIONS = ("starters", "classified")
EVENTS = ("win", "podium", "points")
SLICES = ("season", "circuit", "weather")

PREDICTOR = Column("predictor", "VARCHAR", "Model or baseline", required=True)
PROTOCOL = Column("protocol", "VARCHAR", "Choice of training and test races", required=True, allowed=PROTOCOLS)
_POPULATION = Column("population", "VARCHAR", "All starters, or only classified ones", required=True,
                     allowed=POPULATIONS)
_N_RACES = Column("n_races", "INTEGER", "Races", required=True, minimum=1)
_PROBABILITY_SCORES = {
    "log_loss_win": "Negative log of the winner's probability",
    "brier_win": "Squared error of the win probabilities, summed over the cars",
    "brier_podium": "Squared error of the podium probabilities, mean over the cars",
    "brier_points": "Squared error of the probabilities of a top-10 finish, mean over the cars",
}
# Probabilities are over all starters, so only that population has these scores.
_PROBABILITIES = tuple(Column(name, "DOUBLE", f"{meaning}; missing without probabilities and for population classified",
                              minimum=0) for name, meaning in _PROBABILITY_SCORES.items())

EVALUATION = Table(
    "ranking", "evaluation", "Metrics of each predictor in each race",
    ("weekend", "predictor", "protocol", "population"), (
        WEEKEND, PREDICTOR, PROTOCOL, _POPULATION,
        Column("n_cars", "INTEGER", "Cars ranked", required=True, minimum=2),
        Column("spearman", "DOUBLE", "Rank correlation, ties averaged", minimum=-1, maximum=1),
        Column("kendall", "DOUBLE", "Kendall's tau-b", minimum=-1, maximum=1),
        Column("ndcg10", "DOUBLE", "NDCG of the first ten with gains 25-18-15-12-10-8-6-4-2-1", minimum=0, maximum=1),
        Column("mae_positions", "DOUBLE", "Mean absolute position error [places]", minimum=0),
        Column("top1", "DOUBLE", "1 if the predicted winner won, else 0; a fraction for tied predictions", minimum=0,
               maximum=1),
        Column("podium_overlap", "DOUBLE", "Share of the podium predicted", minimum=0, maximum=1),
        *_PROBABILITIES,
        DATA_VERSION,
    ), slice_by=("predictor", "protocol"))

EVALUATION_SUMMARY = Table(
    "ranking", "evaluation_summary", "Means over races, with the paired 95 % bootstrap interval against grid order",
    ("predictor", "protocol", "population"), (
        PREDICTOR, PROTOCOL, _POPULATION, _N_RACES,
        *(Column(name, "DOUBLE", f"Mean of {name} over the races", required=True) for name in (
            "spearman", "kendall", "ndcg10", "mae_positions", "top1", "podium_overlap")),
        Column("delta_spearman", "DOUBLE", "Mean Spearman minus that of grid order", required=True),
        Column("delta_low", "DOUBLE", "Lower bound of its 95 % interval", required=True),
        Column("delta_high", "DOUBLE", "Upper bound of its 95 % interval", required=True),
        *(Column(name, "DOUBLE", f"Mean of {name} over the races") for name in _PROBABILITY_SCORES),
        *(column for name in ("log_loss_win", "brier_podium") for column in (
            Column(f"delta_{name}", "DOUBLE", f"Mean {name} minus that of the grid-only model, grid_logit"),
            Column(f"delta_{name}_low", "DOUBLE", "Lower bound of its paired 95 % interval"),
            Column(f"delta_{name}_high", "DOUBLE", "Upper bound of its paired 95 % interval"))),
        *(Column(f"ece_{event}", "DOUBLE", f"Expected calibration error of the probability of {event}, ten bins",
                 minimum=0, maximum=1) for event in EVENTS),
        DATA_VERSION,
        Column("settings_version", "VARCHAR", "Digest of protocol, predictors and code version; with the same data and "
               "settings the row is not computed again"),
        Column("evaluated_at", "TIMESTAMPTZ", "When it was computed (UTC)", required=True),
    ), slice_by=("predictor", "protocol"))

CALIBRATION = Table(
    "ranking", "calibration", "Predicted probabilities against observed frequencies, in ten bins of equal width",
    ("predictor", "protocol", "event", "bin"), (
        PREDICTOR, PROTOCOL,
        Column("event", "VARCHAR", "A win, a top-3 finish (podium) or a top-10 finish (points)", required=True,
               allowed=EVENTS),
        Column("bin", "INTEGER", "1 = probabilities below 0.1, 10 = 0.9 and above", required=True, minimum=1,
               maximum=10),
        Column("n", "INTEGER", "Cars with a probability in the bin; empty bins have no row", required=True, minimum=1),
        Column("mean_probability", "DOUBLE", "Their mean predicted probability", required=True, minimum=0, maximum=1),
        Column("frequency", "DOUBLE", "Share of them with the event", required=True, minimum=0, maximum=1),
        DATA_VERSION,
    ), slice_by=("predictor", "protocol"))

EVALUATION_SLICES = Table(
    "ranking", "evaluation_slices", "Mean Spearman of all starters by season, circuit and weather, against grid order",
    ("predictor", "protocol", "kind", "slice"), (
        PREDICTOR, PROTOCOL,
        Column("kind", "VARCHAR", "How the races are grouped", required=True, allowed=SLICES),
        Column("slice", "VARCHAR", "The group: a season; race or street circuit; dry, wet (rain tyres were used) or "
               "unknown (no laps are stored)", required=True),
        _N_RACES,
        Column("spearman", "DOUBLE", "Mean over the races", required=True, minimum=-1, maximum=1),
        Column("delta_spearman", "DOUBLE", "Mean minus that of grid order", required=True),
        Column("delta_low", "DOUBLE", "Lower bound of its paired 95 % interval", required=True),
        Column("delta_high", "DOUBLE", "Upper bound of its paired 95 % interval", required=True),
        DATA_VERSION,
    ), slice_by=("predictor", "protocol"))

EVALUATION_TABLES = (EVALUATION, EVALUATION_SUMMARY, CALIBRATION, EVALUATION_SLICES)
