"""Forecast of a weekend, as `f1 predict` prints it."""
from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import duckdb
import pandas as pd

from f1_pipelines.features.history import read_history
from f1_pipelines.features.ranking import as_known_at, build_ranking_features
from f1_pipelines.forecast.predictions import NothingToPredict, promoted_checkpoint, rank, with_outcome
from f1_pipelines.identity.entrants import constructors, drivers
from f1_pipelines.identity.weekends import known_weekends
from f1_pipelines.identity.weekends import weekend as known_weekend
from f1_pipelines.settings import settings
from f1_pipelines.tables.features import STAGES
from f1_pipelines.warehouse.database import WarehouseFile

_PER_CENT = {"p_win": "win %", "p_podium": "podium %", "p_points": "points %", "p_beats_teammate": "beats mate %"}


@dataclass(frozen=True)
class StoredForecast:
    """A ranking to print, and its heading."""

    heading: str
    ranking: pd.DataFrame


def predict_stored(weekend: str, stage: str | None = None) -> StoredForecast:
    """Rank a weekend from the current data of the published warehouse, without storing anything.

    Args:
        weekend: A key such as `2026-monaco`, or `next` for the first weekend without results.
        stage: Use data up to this stage, one of `tables.features.STAGES`; None for the last one reached.

    Raises:
        NothingToPredict: The model or data of the weekend are missing, or it was cancelled.
    """
    from f1_pipelines.models.checkpoints import load_checkpoint

    with WarehouseFile(settings().f1_warehouse).read() as connection:
        key = next_weekend(connection) if weekend == "next" else known_weekend(weekend, settings().calendar_path).key
        checkpoint, folder = promoted_checkpoint(connection, settings().checkpoints_path)
        history = read_history(connection)
    if known_weekend(key, settings().calendar_path).planned == "cancelled":
        raise NothingToPredict(f"{key} was cancelled, so there is nothing to predict")
    features = build_ranking_features(history.calendar, history.results, history.qualifying, history.practice,
                                      history.grid, weekends=[key])
    if features.empty:
        raise NothingToPredict(f"{key} has no data yet; load it with `dagster asset materialize -m "
                               f"f1_pipelines.definitions --select race_calendar,practice_results,qualifying_results "
                               f"--partition {key}`")
    if stage is not None:
        features = _at_stage(stage, key, features)
    rows = rank(features, load_checkpoint(folder).trained, checkpoint, datetime.now(UTC))
    return _forecast(key, with_outcome(rows, history.results), history.calendar)


def _at_stage(stage: str, key: str, features: pd.DataFrame) -> pd.DataFrame:
    reached = features["stage"].iloc[0]
    if STAGES.index(stage) > STAGES.index(reached):
        raise NothingToPredict(f"{key} is known as far as {reached}, not {stage}; choose an earlier stage, or load the "
                               "missing sessions")
    return as_known_at(features, stage)


def next_weekend(connection: duckdb.DuckDBPyConnection) -> str:
    """Key of the first weekend after the last one with stored results; without results, of the first upcoming one.

    Raises:
        NothingToPredict: No later weekend is loaded or known.
    """
    rows = connection.execute("""
        SELECT weekend FROM race.calendar
        WHERE state IN ('upcoming', 'live', 'overdue')
          AND race_start > (SELECT coalesce(max(race_start) FILTER (state = 'done'),
                                            max(race_start) FILTER (state = 'overdue'), '-infinity') FROM race.calendar)
        ORDER BY race_start LIMIT 1""").fetchall()
    if rows:
        return rows[0][0]
    [(last_start,)] = connection.execute("SELECT max(race_start) FROM race.calendar WHERE state = 'done'").fetchall()
    last_start = last_start or datetime.now(UTC)
    unloaded = next((weekend.key for weekend in known_weekends(settings().calendar_path)
                    if weekend.planned == "scheduled" and weekend.race_start > last_start), None)
    if unloaded is None:
        raise NothingToPredict(f"no weekend after {last_start:%Y-%m-%d} is known; upgrade to a release of this project "
                               f"with the next season, or add its weekends to {settings().calendar_path}")
    raise NothingToPredict(f"the next weekend, {unloaded}, is not loaded; load it with `dagster asset materialize -m "
                           "f1_pipelines.definitions --select race_calendar,practice_results,qualifying_results "
                           f"--partition {unloaded}`")


def _forecast(key: str, rows: pd.DataFrame, calendar: pd.DataFrame) -> StoredForecast:
    names = {driver.driver: driver.name for driver in drivers()}
    teams = {constructor.constructor: constructor.name for constructor in constructors()}
    event = calendar.set_index("weekend").loc[key]
    ordered = rows.sort_values("predicted_position")
    ranking = pd.DataFrame({
        "place": ordered["predicted_position"], "driver": ordered["driver"].map(lambda d: names.get(d, d)),
        "constructor": ordered["constructor"].map(lambda c: teams.get(c, c)), "score": ordered["score"].round(3),
        **{label: (ordered[name] * 100).round(1) for name, label in _PER_CENT.items()},
        "expected place": ordered["expected_position"].round(1), "actual": ordered["actual_position"]})
    ranking = ranking.dropna(axis="columns", how="all")
    model, stage = rows["checkpoint"].iloc[0], rows["stage"].iloc[0]
    heading = (f"{event['event_name']} {event['season']} ({key}), race {event['race_start']:%Y-%m-%d %H:%M} UTC: "
               f"model {model}, known: {stage}, data: {event['source']}")
    if event["source"] == "sample":
        heading += "\nSAMPLE: a season driven by the simulator of this project. No result in it is real."
    if bool(rows["in_sample"].iloc[0]):
        heading += "\nThe model was trained on this race: this is a look back, not a forecast."
    return StoredForecast(heading, ranking)
