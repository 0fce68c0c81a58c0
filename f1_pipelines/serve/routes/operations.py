"""The operations API: starts Dagster runs and reports their status.

Endpoints that start runs require the header X-API-KEY with the value of `F1_API_KEY`; if that is not set, nobody can
start runs.
"""
from __future__ import annotations

import hmac
from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, HTTPException, Path
from pydantic import BaseModel, ConfigDict, Field

from f1_pipelines.identity.weekends import UnknownWeekend, weekend
from f1_pipelines.serve.dagster_api import ASSET_JOB, DagsterApi, DagsterUnavailable, Run
from f1_pipelines.serve.finishing_orders import OrderUnknown
from f1_pipelines.serve.notices import newest_result
from f1_pipelines.serve.published_warehouse import NoWarehouse, published
from f1_pipelines.serve.schemas import ErrorDetail, Key
from f1_pipelines.serve.settings import ServeSettings
from f1_pipelines.settings import settings

# Assets that change with the ranker, in the order of the graph.
FINETUNE_ASSETS = ("ewc_ranker", "promoted_ranker", "race_predictions", "ranking_evaluation")
NO_KEY = "runs can't be started: this server has no API key; set F1_API_KEY and restart it"
WRONG_KEY = "the key in X-API-KEY is missing or wrong"
RunId = Annotated[str, Path(pattern=r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$", description="Id of a Dagster run")]


class KeyRefused(PermissionError):
    """The API key is missing or wrong, or none is set on the server."""


class StartRequest(BaseModel):
    """The weekend to start a run for."""

    model_config = ConfigDict(extra="forbid")

    weekend: Key


class FinetuneRequest(BaseModel):
    """The last weekend to train on; default: the last one with a result."""

    model_config = ConfigDict(extra="forbid")

    weekend: Key | None = None


class Job(BaseModel):
    """A Dagster run."""

    id: str
    job: str
    weekend: str | None
    state: str = Field(description="Dagster's run status: QUEUED, STARTED, SUCCESS, FAILURE, ...")
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None


class Operations:
    """The runs that the API and the operations page can start."""

    def __init__(self, api_key: str | None, dagster_url: str):
        """
        Args:
            api_key: Key required to start a run; None: nobody can start one.
            dagster_url: Address of Dagster's webserver.
        """
        self._api_key, self.dagster = api_key, DagsterApi(dagster_url)

    @property
    def has_key(self) -> bool:
        return bool(self._api_key)

    def check(self, given: str | None) -> None:
        """Raise `KeyRefused` unless `given` is the API key. Compares in constant time."""
        if not self._api_key:
            raise KeyRefused(NO_KEY)
        if not hmac.compare_digest((given or "").encode(), self._api_key.encode()):
            raise KeyRefused(WRONG_KEY)

    def ingest(self, key: str) -> Run:
        """Start `pre_race`: practice, qualifying, grid, features, forecast."""
        return self._start("pre_race", key)

    def finish(self, key: str) -> Run:
        """Start `post_race`: results, laps, training of the ranker, evaluation."""
        return self._start("post_race", key)

    def finetune(self, key: str | None = None) -> Run:
        """Train the ranker up to a weekend (default: the last one with a result), then predict and evaluate again."""
        if key is None:
            with published() as connection:
                newest = newest_result(connection)
            if newest is None:
                raise OrderUnknown("there is no result to train on yet; POST /ingest/finish for a weekend first")
            key = newest[0]
        return self._start(ASSET_JOB, key, FINETUNE_ASSETS)

    def _start(self, job: str, key: str, assets: tuple[str, ...] = ()) -> Run:
        partition = weekend(key, settings().calendar_path).key
        running = self.dagster.unfinished_run(job, partition)
        if running and set(running.assets) == set(assets):
            return running
        run_id = self.dagster.start(job, partition, assets)
        started = self.dagster.run(run_id)
        if started is None:
            raise DagsterUnavailable(f"Dagster started run {run_id} but does not list it; see the Dagster UI")
        return started


def router(settings: ServeSettings) -> APIRouter:
    """Create the routes /ingest, /ingest/finish, /finetune and /jobs/{run_id}."""
    operations = Operations(settings.api_key, settings.dagster_url)
    errors: dict[int | str, dict[str, Any]] = {
        404: {"model": ErrorDetail, "description": "Not found"},
        503: {"model": ErrorDetail, "description": "Dagster or the warehouse is not available"}}
    start_errors: dict[int | str, dict[str, Any]] = {
        **errors, 401: {"model": ErrorDetail, "description": "Wrong key"},
        403: {"model": ErrorDetail, "description": "No key is set on this server"}}

    def with_key(x_api_key: Annotated[str | None, Header()] = None) -> None:
        try:
            operations.check(x_api_key)
        except KeyRefused as problem:
            raise HTTPException(401 if operations.has_key else 403, str(problem)) from None

    def ingest(request: StartRequest) -> Job:
        """Before a race: load practice, qualifying and grid, compute features and forecast (job `pre_race`)."""
        return _job_reply(lambda: operations.ingest(request.weekend))

    def finish(request: StartRequest) -> Job:
        """After a race: load results and laps, train the ranker, evaluate (job `post_race`)."""
        return _job_reply(lambda: operations.finish(request.weekend))

    def finetune(request: FinetuneRequest | None = None) -> Job:
        """Train the ranker up to a weekend, then predict and evaluate again."""
        return _job_reply(lambda: operations.finetune(request.weekend if request else None))

    def job(run_id: RunId) -> Job:
        """The status of a run."""
        return _job_reply(lambda: operations.dagster.run(run_id))

    routes = APIRouter(tags=["operations"])
    for path, start in (("/ingest", ingest), ("/ingest/finish", finish), ("/finetune", finetune)):
        routes.post(path, status_code=202, responses=start_errors, dependencies=[Depends(with_key)])(start)
    routes.get("/jobs/{run_id}", responses=errors)(job)
    return routes


def _job_reply(action: Callable[[], Run | None]) -> Job:
    """Call `action` and turn its run or its exception into a reply."""
    try:
        run = action()
    except (DagsterUnavailable, NoWarehouse) as problem:
        raise HTTPException(503, str(problem)) from None
    except (UnknownWeekend, OrderUnknown) as problem:
        raise HTTPException(404, str(problem.args[0])) from None
    if run is None:
        raise HTTPException(404, "Dagster has no run with that id; POST /ingest and /finetune return run ids")
    return Job(id=run.id, job=run.job, weekend=run.weekend, state=run.state, created_at=run.created_at,
               started_at=run.started_at, ended_at=run.ended_at)
