"""Finishing orders of a weekend to compare: forecasts of models, the grid and the result."""
from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pandas as pd

from f1_pipelines.evaluation.metrics import spearman
from f1_pipelines.features.history import read_history
from f1_pipelines.features.ranking import as_known_at
from f1_pipelines.forecast.predictions import NothingToPredict, with_outcome
from f1_pipelines.forecast.report import next_weekend
from f1_pipelines.settings import settings
from f1_pipelines.tables.features import RANKING, STAGES
from f1_pipelines.tables.race import NON_STARTERS

if TYPE_CHECKING:
    from f1_pipelines.models.trained import TrainedRanker

GRID, RESULT, PROMOTED = "grid", "result", "promoted"
# Which of a weekend's stored forecasts comes first: the latest stage, then those made before the race, then the newest.
_FORECAST_ORDER = f"list_position({list(STAGES)}, p.stage) DESC, p.made_at < c.race_start DESC, p.made_at DESC"


class OrderUnknown(LookupError):
    """The requested order is not in the warehouse. The message says what is valid, or what to run."""


@dataclass(frozen=True)
class FinishingOrder:
    """A finishing order.

    `rows` has driver, constructor and position 1..n; a forecast also has probabilities and the outcome. For the grid
    and the result `stage`, `made_at` and `trained_through` are None.
    """

    weekend: str
    name: str  # checkpoint id, `grid` or `result`
    rows: pd.DataFrame
    stage: str | None = None
    made_at: datetime | None = None
    in_sample: bool = False
    stored: bool = True  # False: computed for this request
    kind: str | None = None  # kind of the checkpoint
    trained_through: str | None = None
    promoted: bool = False


def upcoming_weekend(connection: duckdb.DuckDBPyConnection) -> str:
    """Return the key of the first weekend after the last one with results.

    Raises:
        OrderUnknown: No upcoming weekend is loaded.
    """
    try:
        return next_weekend(connection)
    except NothingToPredict:
        raise OrderUnknown("no upcoming weekend is loaded; run `make demo`, or materialize race_calendar and "
                           "qualifying_results for it") from None


def checkpoints(connection: duckdb.DuckDBPyConnection) -> pd.DataFrame:
    """Return all trained rankers, the promoted one first, then the newest."""
    return connection.execute(
        "SELECT checkpoint, kind, model, trained_through, promoted, created_at FROM ranking.checkpoints "
        "ORDER BY promoted DESC, created_at DESC, checkpoint").df()


def order_of(connection: duckdb.DuckDBPyConnection, weekend: str, name: str,
             stage: str | None = None) -> FinishingOrder:
    """Return an order by name: `grid`, `result`, `promoted` or a checkpoint id.

    Raises:
        OrderUnknown: There is no such order.
    """
    if name == GRID:
        return grid_order(connection, weekend)
    if name == RESULT:
        return result_order(connection, weekend)
    return predicted_order(connection, weekend, name, stage)


def grid_order(connection: duckdb.DuckDBPyConnection, weekend: str) -> FinishingOrder:
    """Return the starting order. Pit-lane starters are last; cars without a grid position are left out."""
    rows = connection.execute(
        "SELECT driver, constructor, row_number() OVER (ORDER BY grid_position, driver) AS position FROM race.grid "
        "WHERE weekend = ? AND session = 'race' AND grid_position IS NOT NULL ORDER BY position", [weekend]).df()
    if rows.empty:
        raise OrderUnknown(f"the grid of {weekend} is not loaded; load it with the job pre_race")
    return FinishingOrder(weekend, GRID, rows)


def result_order(connection: duckdb.DuckDBPyConnection, weekend: str) -> FinishingOrder:
    """Return the current classification of the cars that started."""
    rows = connection.execute(
        "SELECT driver, constructor, row_number() OVER (ORDER BY official_order) AS position "
        f"FROM race.current_results WHERE weekend = ? AND status NOT IN {NON_STARTERS} ORDER BY position",
        [weekend]).df()
    if rows.empty:
        raise OrderUnknown(f"there is no result of {weekend} yet; load it with the job post_race")
    return FinishingOrder(weekend, RESULT, rows)


def predicted_order(connection: duckdb.DuckDBPyConnection, weekend: str, model: str | None = None,
                    stage: str | None = None) -> FinishingOrder:
    """Return a model's forecast for a weekend.

    Args:
        model: Checkpoint id or `promoted`; None for the last forecast before the race, else the newest one. A model
            without a stored forecast computes one from the stored features.
        stage: Use only data known at this stage; None for the latest stage.

    Raises:
        OrderUnknown: There is no such model, or no data of that weekend or stage.
    """
    if model == PROMOTED:
        model = _promoted_checkpoint(connection)
    stored = connection.execute(
        f"""SELECT p.checkpoint, p.stage FROM ranking.predictions p JOIN race.calendar c USING (weekend)
            WHERE p.weekend = ? AND (? IS NULL OR p.checkpoint = ?) AND (? IS NULL OR p.stage = ?)
            ORDER BY {_FORECAST_ORDER} LIMIT 1""",
        [weekend, model, model, stage, stage]).fetchone()
    if stored:
        rows = connection.execute(
            "SELECT * FROM ranking.predictions WHERE weekend = ? AND checkpoint = ? AND stage = ? "
            "ORDER BY predicted_position", [weekend, *stored]).df()
        return _order_from_rows(connection, weekend, rows, stored=True)
    rows = _rank_now(connection, weekend, model or _promoted_checkpoint(connection), stage)
    return _order_from_rows(connection, weekend, rows, stored=False)


def season_hits(connection: duckdb.DuckDBPyConnection, season: int, stage: str | None = None) -> pd.DataFrame:
    """Score the forecasts of a season's finished races, in race order: weekend, hits (exact positions), spearman.

    Uses the forecast that `predicted_order` returns without a model.
    """
    return connection.execute(
        f"""WITH forecasts AS (
                SELECT p.weekend, p.checkpoint, p.stage, c.race_start
                FROM ranking.predictions p JOIN race.calendar c USING (weekend)
                WHERE c.season = ? AND (? IS NULL OR p.stage = ?)
                QUALIFY row_number() OVER (PARTITION BY p.weekend ORDER BY {_FORECAST_ORDER}) = 1
            ), places AS (
                SELECT weekend, race_start, exact_match, actual_position AS actual,
                       rank() OVER (PARTITION BY weekend ORDER BY predicted_position) AS predicted
                FROM ranking.predictions JOIN forecasts USING (weekend, checkpoint, stage)
                WHERE actual_position IS NOT NULL
            )
            SELECT weekend, sum(exact_match::INT) AS hits, corr(predicted, actual) AS spearman
            FROM places GROUP BY weekend, race_start ORDER BY race_start""", [season, stage, stage]).df()


def spearman_between(one: FinishingOrder, other: FinishingOrder) -> float | None:
    """Rank correlation of two orders over the cars in both; None for fewer than two cars."""
    both = one.rows.merge(other.rows, on="driver", suffixes=("_one", "_other"))
    if len(both) < 2:
        return None
    return spearman(-both["position_one"].to_numpy("float64"), both["position_other"].to_numpy("float64"))


def _promoted_checkpoint(connection: duckdb.DuckDBPyConnection) -> str:
    rankers = checkpoints(connection)
    if rankers.empty or not rankers["promoted"].iloc[0]:
        raise OrderUnknown("no model is promoted yet; train one with `make demo`, or materialize promoted_ranker")
    return str(rankers["checkpoint"].iloc[0])


def _order_from_rows(connection: duckdb.DuckDBPyConnection, weekend: str, rows: pd.DataFrame,
                     stored: bool) -> FinishingOrder:
    first = rows.iloc[0]
    order = FinishingOrder(weekend, str(first["checkpoint"]), rows.rename(columns={"predicted_position": "position"}),
                           str(first["stage"]), pd.Timestamp(first["made_at"]).to_pydatetime(),
                           bool(rows["in_sample"].any()), stored)
    model = connection.execute("SELECT kind, trained_through, promoted FROM ranking.checkpoints WHERE checkpoint = ?",
                               [order.name]).fetchone()
    return replace(order, kind=model[0], trained_through=model[1], promoted=model[2]) if model else order


def _rank_now(connection: duckdb.DuckDBPyConnection, weekend: str, model: str, stage: str | None) -> pd.DataFrame:
    """Compute the rows that the asset `race_predictions` would store for this weekend and model."""
    from f1_pipelines.forecast.predictions import rank

    path = connection.execute("SELECT path FROM ranking.checkpoints WHERE checkpoint = ?", [model]).fetchone()
    if path is None:
        raise OrderUnknown(f"unknown model {model[:40]!r}. Valid: the checkpoints of GET /models, {GRID}, {RESULT}, "
                           f"{PROMOTED}")
    features = RANKING.conform(connection.execute("SELECT * FROM features.ranking WHERE weekend = ? ORDER BY driver",
                                                  [weekend]).df())
    if features.empty:
        raise OrderUnknown(f"no data of {weekend} is loaded yet; load it with the job pre_race")
    latest = str(features["stage"].iloc[0])
    if stage and STAGES.index(stage) > STAGES.index(latest):
        raise OrderUnknown(f"{weekend} has data up to {latest}, not {stage}; choose an earlier stage")
    folder = settings().checkpoints_path / model  # the stored path is old if the checkpoints were moved
    trained = _load_ranker(folder if folder.is_dir() else Path(path[0]))
    rows = rank(as_known_at(features, stage) if stage else features, trained, model, datetime.now(UTC))
    return with_outcome(rows, read_history(connection).results).sort_values("predicted_position", ignore_index=True)


@lru_cache(maxsize=4)
def _load_ranker(folder: Path) -> TrainedRanker:
    """Load a ranker. Caching by folder is safe: its name is the hash of its content. The first call imports torch."""
    from f1_pipelines.checkpoints.store import CheckpointError
    from f1_pipelines.models.checkpoints import load_checkpoint

    try:
        return load_checkpoint(folder).trained
    except CheckpointError:
        raise OrderUnknown(f"the model {folder.name} can't be loaded; rebuild it with "
                           f"`f1 trace {folder.name} --rebuild`") from None
