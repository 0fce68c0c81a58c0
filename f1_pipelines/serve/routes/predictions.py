"""The prediction API: forecasts with probabilities, and comparisons of forecasts, grid and result.

Each request reads the published warehouse, so a new forecast shows at once.
"""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import duckdb
import pandas as pd
from fastapi import APIRouter, HTTPException, Query

from f1_pipelines.identity.entrants import constructors, drivers
from f1_pipelines.identity.weekends import UnknownSeason, UnknownWeekend, weekend_of_round
from f1_pipelines.identity.weekends import weekend as calendar_weekend
from f1_pipelines.serve.finishing_orders import (
    PROMOTED,
    RESULT,
    FinishingOrder,
    OrderUnknown,
    checkpoints,
    order_of,
    predicted_order,
    result_order,
    spearman_between,
    upcoming_weekend,
)
from f1_pipelines.serve.notices import data_notices
from f1_pipelines.serve.published_warehouse import NoWarehouse, published
from f1_pipelines.serve.schemas import (
    ComparedCar,
    ComparedOrder,
    Comparison,
    ErrorDetail,
    ModelRow,
    Prediction,
    PredictionRequest,
    RankedCar,
    Stage,
    WeekendRow,
)
from f1_pipelines.serve.settings import ServeSettings
from f1_pipelines.settings import settings
from f1_pipelines.tables.features import STAGES

Name = Annotated[str, Query(min_length=1, max_length=60)]
_ERROR_RESPONSES: dict[int | str, dict[str, Any]] = {404: {"model": ErrorDetail, "description": "Not known"},
             503: {"model": ErrorDetail, "description": "No warehouse yet"}}


def router(_: ServeSettings) -> APIRouter:
    """Create the routes /predict, /weekends, /models and /compare."""
    routes = APIRouter(tags=["predictions"], responses=_ERROR_RESPONSES)
    routes.post("/predict", summary="Forecast of a race with probabilities")(predict)
    routes.get("/weekends", summary="All weekends and their stored data")(weekends)
    routes.get("/models", summary="All trained rankers, the promoted one first")(models)
    routes.get("/compare", summary="Compare two models, or a model with grid or result")(compare)
    return routes


def predict(request: PredictionRequest) -> Prediction:
    """Ranked drivers with probabilities, and the outcome if the race is over."""
    with _warehouse_connection() as connection:
        key = _weekend_key(connection, request)
        return prediction_of(connection, predicted_order(connection, key, request.model, request.stage))


def weekends(season: Annotated[int | None, Query(ge=1950, le=2100)] = None) -> list[WeekendRow]:
    """All weekends by race start, or those of one season."""
    with _warehouse_connection() as connection:
        return weekends_of(connection, season)


def models() -> list[ModelRow]:
    """All trained rankers, the promoted one first, then the newest."""
    with _warehouse_connection() as connection:
        return [ModelRow(**row) for row in checkpoints(connection).to_dict("records")]


def compare(weekend: Name, a: Name = PROMOTED, b: Name = RESULT, stage: Stage | None = None) -> Comparison:
    """Two orders of a race side by side: each is `grid`, `result`, `promoted` or a checkpoint of GET /models."""
    with _warehouse_connection() as connection:
        key = _weekend_key(connection, PredictionRequest(weekend=weekend))
        return comparison_of(connection, order_of(connection, key, a, stage), order_of(connection, key, b, stage))


def weekends_of(connection: duckdb.DuckDBPyConnection, season: int | None = None) -> list[WeekendRow]:
    """List the weekends by race start with their stored data."""
    rows = connection.execute("""
        WITH result AS (SELECT weekend, any_value(source) AS source, any_value(result_status) AS result_status
                        FROM race.current_results GROUP BY weekend),
             qualifying AS (SELECT weekend, any_value(source) AS source FROM race.qualifying GROUP BY weekend),
             forecast AS (SELECT weekend, list(DISTINCT stage) AS stages FROM ranking.predictions GROUP BY weekend)
        SELECT c.weekend, c.season, c.round, c.event_name AS event, c.circuit, s.state, c.race_start,
               coalesce(result.source, qualifying.source) AS source, result.result_status,
               coalesce(forecast.stages, []) AS stages
        FROM race.calendar c JOIN race.sessions s ON s.weekend = c.weekend AND s.session = 'race'
        LEFT JOIN result ON result.weekend = c.weekend LEFT JOIN qualifying ON qualifying.weekend = c.weekend
        LEFT JOIN forecast ON forecast.weekend = c.weekend
        WHERE ? IS NULL OR c.season = ? ORDER BY c.race_start, c.weekend""", [season, season])
    names = [column[0] for column in rows.description]
    weekends = [WeekendRow(**dict(zip(names, row, strict=True))) for row in rows.fetchall()]
    return [row.model_copy(update={"stages": sorted(row.stages, key=STAGES.index)}) for row in weekends]


def prediction_of(connection: duckdb.DuckDBPyConnection, order: FinishingOrder) -> Prediction:
    """Build the API reply for a model's forecast."""
    event = calendar_weekend(order.weekend, settings().calendar_path)
    rows = order.rows
    starters = rows[rows["actual_position"].notna()]
    finished = len(starters) > 0
    actual = FinishingOrder(order.weekend, RESULT, starters.assign(position=starters["actual_position"]))
    return Prediction(
        weekend=order.weekend, event=event.event_name, circuit=event.circuit, race_start=event.race_start,
        stage=order.stage, model=order.name, kind=order.kind, trained_through=order.trained_through,
        made_at=order.made_at, stored=order.stored, spearman=spearman_between(order, actual) if finished else None,
        exact_matches=int(rows["exact_match"].fillna(False).sum()) if finished else None,
        notices=data_notices(connection, order).sentences(),
        ranking=[RankedCar(**_without_nan(row) | {"name": driver_name(row["driver"]),
                                                  "predicted_position": row["position"]})
                 for row in rows.to_dict("records")])


def comparison_of(connection: duckdb.DuckDBPyConnection, a: FinishingOrder, b: FinishingOrder) -> Comparison:
    """Build the API reply for two orders of the same weekend, each also compared with the result."""
    try:
        result = result_order(connection, a.weekend)
    except OrderUnknown:
        result = None
    cars = a.rows[["driver", "constructor", "position"]].merge(
        b.rows[["driver", "constructor", "position"]], on="driver", how="outer", suffixes=("_a", "_b"))
    actual = result.rows.set_index("driver")["position"] if result else {}
    cars = cars.assign(constructor=cars["constructor_a"].fillna(cars["constructor_b"]), a=cars["position_a"],
                       b=cars["position_b"], actual_position=cars["driver"].map(actual)).sort_values(["a", "b"])
    orders = [ComparedOrder(name=order.name, stage=order.stage, trained_through=order.trained_through,
                            look_back=order.in_sample, spearman=spearman_between(order, result) if result else None)
              for order in (a, b)]
    notices = dict.fromkeys(sentence for order in (a, b) for sentence in data_notices(connection, order).sentences())
    return Comparison(
        weekend=a.weekend, event=calendar_weekend(a.weekend, settings().calendar_path).event_name,
        a=orders[0], b=orders[1],
        spearman_between=spearman_between(a, b), notices=list(notices),
        cars=[ComparedCar(**_without_nan(row) | {"name": driver_name(row["driver"])})
              for row in cars.to_dict("records")])


def driver_name(driver: str) -> str:
    """Return the driver's full name for an id, or the id if it is unknown."""
    return next((entry.name for entry in drivers() if entry.driver == driver), driver)


def constructor_name(constructor: str | None) -> str:
    """Return the constructor's name for an id, or the id if it is unknown."""
    return next((entry.name for entry in constructors() if entry.constructor == constructor), constructor or "")


@contextmanager
def _warehouse_connection() -> Iterator[duckdb.DuckDBPyConnection]:
    """Open the published warehouse; turn exceptions into HTTP errors."""
    try:
        with published() as connection:
            yield connection
    except NoWarehouse as problem:
        raise HTTPException(503, str(problem)) from None
    except (OrderUnknown, UnknownWeekend, UnknownSeason) as problem:
        raise HTTPException(404, str(problem.args[0])) from None


def _weekend_key(connection: duckdb.DuckDBPyConnection, request: PredictionRequest) -> str:
    if request.weekend == "next":
        return upcoming_weekend(connection)
    if request.weekend is not None:
        return calendar_weekend(request.weekend, settings().calendar_path).key
    if request.season is None or request.round is None:
        raise HTTPException(422, "give either weekend, like 2026-monaco, or season and round")
    return weekend_of_round(request.season, request.round, settings().calendar_path).key


def _without_nan(row: dict[str, object]) -> dict[str, object]:
    """Replace pandas' missing values by None."""
    return {name: None if pd.isna(value) else value for name, value in row.items()}
