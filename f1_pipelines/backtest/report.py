"""Rows of the evaluation tables: all predictors under one protocol, and the versions that the numbers depend on."""
from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from f1_pipelines.backtest.protocols import (
    SEASONS_TESTED,
    SEASONS_TESTED_BY_WEEKEND,
    KnownFolds,
    Predictor,
    evaluate_races,
    folds,
    summarise,
)
from f1_pipelines.backtest.slices import by_slice
from f1_pipelines.evaluation.baselines import BASELINES
from f1_pipelines.evaluation.calibration import expected_calibration_error, reliability
from f1_pipelines.features.history import data_version
from f1_pipelines.tables.evaluation import CALIBRATION, EVALUATION, EVALUATION_SLICES, EVALUATION_SUMMARY

# Raised when the same rows and settings give different numbers.
EVALUATION_VERSION = "3"


@dataclass(frozen=True)
class ProtocolReport:
    """Rows of the four evaluation tables for one protocol, without `evaluated_at`."""

    races: pd.DataFrame
    summary: pd.DataFrame
    calibration: pd.DataFrame
    slices: pd.DataFrame


def default_predictors(protocol: str, results: pd.DataFrame, checkpoints: Path | None = None) -> list[Predictor]:
    """The baselines, F1Net, our ranker and its simulated races. Protocols that test race by race have each model both
    with an update after each race (`_ewc`) and as pretrained before the season.

    Args:
        protocol: Protocol name.
        results: Rows of `race.results`, for the simulated races.
        checkpoints: Folder of stored pretrainings to reuse.
    """
    from f1_pipelines.backtest.continual_predictors import ContinualPredictor, PretrainedPredictor
    from f1_pipelines.backtest.predictors import GridLogit, TrainedPredictor, champion, f1net_reference
    from f1_pipelines.backtest.pretraining_cache import PretrainingCache
    from f1_pipelines.forecast.monte_carlo_rows import SimulatedRaces, evaluated_races
    from f1_pipelines.models.config import F1NET
    from f1_pipelines.models.continual.settings import DEFAULT

    if protocol in SEASONS_TESTED_BY_WEEKEND:
        stored = PretrainingCache(checkpoints) if checkpoints else None
        continual = ContinualPredictor(DEFAULT, stored=stored)
        ours: TrainedPredictor | ContinualPredictor = continual
        reference = ContinualPredictor(DEFAULT, F1NET, stored=stored)
        models: list[Predictor] = [PretrainedPredictor(reference), reference, PretrainedPredictor(continual), continual]
    else:
        ours = champion()
        models = [f1net_reference(), ours]
    simulated = [SimulatedRaces(ours, results)] if evaluated_races() else []
    return [*BASELINES, GridLogit(), *models, *simulated]


def rows_of(rows: pd.DataFrame, protocol: str) -> pd.DataFrame:
    """The rows that a protocol uses, so that later races change none of its numbers. Empty without a test race, or
    without an earlier season to train on."""
    tested = {**SEASONS_TESTED, **SEASONS_TESTED_BY_WEEKEND}[protocol]
    upto = rows[rows["season"] <= max(tested)]
    train, _ = next(folds(upto, protocol), (upto.iloc[:0], upto))
    return upto.iloc[:0] if train.empty else upto


def versions(rows: pd.DataFrame, kinds: pd.DataFrame, protocol: str) -> tuple[str, str]:
    """What the numbers of a protocol depend on: version of its rows, digest of settings and code versions.

    Args:
        rows: Rows from `rows_of`.
        kinds: Slices of each race (`backtest.slices.kinds_of_race`).
        protocol: Protocol name.
    """
    from f1_pipelines.forecast.monte_carlo import DAY_SD_PCT, STRETCH
    from f1_pipelines.forecast.monte_carlo_rows import evaluated_races
    from f1_pipelines.models.config import F1NET, RANKER
    from f1_pipelines.models.continual.settings import DEFAULT
    from f1_pipelines.models.position_model import INPUTS, PRIOR
    from f1_pipelines.sim.engine.step import ENGINE_VERSION

    tested = kinds[kinds.index.isin(set(rows["weekend"]))].sort_index()
    settings = [EVALUATION_VERSION, protocol, RANKER, F1NET, DEFAULT, INPUTS, PRIOR, ENGINE_VERSION, STRETCH,
                DAY_SD_PCT, evaluated_races(), tested.to_csv()]
    return data_version(rows), hashlib.sha256(repr(settings).encode()).hexdigest()[:12]


def evaluate_protocol(rows: pd.DataFrame, results: pd.DataFrame, kinds: pd.DataFrame, protocol: str,
                      log: Callable[[str], None], known: KnownFolds | None = None,
                      checkpoints: Path | None = None) -> ProtocolReport:
    """Evaluate the default predictors under one protocol.

    Args:
        rows: Starters of completed races with features and outcome, from `rows_of`.
        results: Rows of `race.results` of these races.
        kinds: Slices of each race (`backtest.slices.kinds_of_race`).
        protocol: Protocol name.
        log: Receives progress lines.
        known: Fold results of this run's other protocols, reused and extended.
        checkpoints: Folder of stored pretrainings to reuse.
    """
    from f1_pipelines.models.training import one_thread

    seasons = {**SEASONS_TESTED, **SEASONS_TESTED_BY_WEEKEND}[protocol]
    unit = "season" if protocol in SEASONS_TESTED else "race"
    log(f"{protocol}: testing {seasons[0]} to {seasons[-1]}, each {unit} after training on earlier ones")
    data, settings = versions(rows, kinds, protocol)
    with one_thread():  # the models are too small for two threads, also when scoring
        evaluation = evaluate_races(default_predictors(protocol, results, checkpoints), rows, protocol,
                                known if protocol in SEASONS_TESTED else None)
    summary = summarise(evaluation.races).rename(columns={"races": "n_races", "delta": "delta_spearman"})
    bins = reliability(evaluation.cars) if len(evaluation.cars) else pd.DataFrame(columns=CALIBRATION.column_names)
    if len(bins):
        errors = expected_calibration_error(bins).reset_index().assign(population="starters")
        summary = summary.merge(errors, on=["predictor", "protocol", "population"], how="left")
    frames = {EVALUATION: evaluation.races, EVALUATION_SUMMARY: summary, CALIBRATION: bins,
              EVALUATION_SLICES: by_slice(evaluation.races, kinds)}
    return ProtocolReport(*(frame.assign(data_version=data, settings_version=settings).reindex(
        columns=[name for name in table.column_names if name != "evaluated_at"]) for table, frame in frames.items()))
