"""What `f1 predict` says of a weekend."""
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
    """A ranking for people, and the sentence above it."""

    heading: str
    ranking: pd.DataFrame


def predict_stored(weekend: str, stage: str | None = None) -> StoredForecast:
    """Rank a weekend by what the published warehouse knows of it now. Nothing is stored.

    Args:
        weekend: A key such as `2026-monaco`, or `next` for the first weekend without results.
        stage: Look no further than this, one of `tables.features.STAGES`; the last one reached without.
    """
    from f1_pipelines.models.checkpoints import load_checkpoint

    with WarehouseFile(settings().f1_warehouse).read() as connection:
        key = next_weekend(connection) if weekend == "next" else known_weekend(weekend, settings().calendar_path).key
        checkpoint, folder = promoted_checkpoint(connection, settings().checkpoints_path)
        history = read_history(connection)
    if known_weekend(key, settings().calendar_path).planned == "cancelled":
        raise NothingToPredict(f"{key} was cancelled: there is nothing to predict")
    features = build_ranking_features(history.calendar, history.results, history.qualifying, history.practice,
                                      history.grid, weekends=[key])
    if features.empty:
        raise NothingToPredict(f"nothing is known of {key} yet; load it with `dagster asset materialize -m "
                               f"f1_pipelines.definitions --select race_calendar,practice_results,qualifying_results "
                               f"--partition {key}`")
    if stage is not None:
        features = _at(stage, key, features)
    fresh = rank(features, load_checkpoint(folder).trained, checkpoint, datetime.now(UTC))
    rows = with_outcome(fresh, history.results)
    return _for_people(key, rows, history.calendar)


def _at(stage: str, key: str, features: pd.DataFrame) -> pd.DataFrame:
    reached = features["stage"].iloc[0]
    if STAGES.index(stage) > STAGES.index(reached):
        raise NothingToPredict(f"{key} is known as far as {reached}, not {stage}; ask for an earlier stage, or load "
                               "the sessions that are missing")
    return as_known_at(features, stage)


def next_weekend(connection: duckdb.DuckDBPyConnection) -> str:
    """Key of the first weekend after the last one whose results are stored; with no results, of the first to come."""
    rows = connection.execute("""
        SELECT weekend FROM race.calendar
        WHERE state IN ('upcoming', 'live', 'overdue')
          AND race_start > (SELECT coalesce(max(race_start) FILTER (state = 'done'),
                                            max(race_start) FILTER (state = 'overdue'), '-infinity') FROM race.calendar)
        ORDER BY race_start LIMIT 1""").fetchall()
    if rows:
        return rows[0][0]
    [(after,)] = connection.execute("SELECT max(race_start) FROM race.calendar WHERE state = 'done'").fetchall()
    after = after or datetime.now(UTC)
    missing = next((weekend.key for weekend in known_weekends(settings().calendar_path)
                    if weekend.planned == "scheduled" and weekend.race_start > after), None)
    if missing is None:
        raise NothingToPredict(f"no weekend after {after:%Y-%m-%d} is known; take a release of this project that knows "
                               f"the next season, or add its weekends to {settings().calendar_path}")
    raise NothingToPredict(f"the next weekend, {missing}, is not loaded; load it with `dagster asset materialize -m "
                           "f1_pipelines.definitions --select race_calendar,practice_results,qualifying_results "
                           f"--partition {missing}`")


def _for_people(key: str, rows: pd.DataFrame, calendar: pd.DataFrame) -> StoredForecast:
    named = {driver.driver: driver.name for driver in drivers()}
    teams = {constructor.constructor: constructor.name for constructor in constructors()}
    event = calendar.set_index("weekend").loc[key]
    ordered = rows.sort_values("predicted_position")
    ranking = pd.DataFrame({
        "place": ordered["predicted_position"], "driver": ordered["driver"].map(lambda d: named.get(d, d)),
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
        heading += "\nThe model has learnt from this race: this is a look back, not a forecast."
    return StoredForecast(heading, ranking)
