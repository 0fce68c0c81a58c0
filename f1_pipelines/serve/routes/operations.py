"""The operations API: starting Dagster's jobs, and asking Dagster how they went. There is no second queue.

Whatever starts something wants the key of `F1_API_KEY` in the header `X-API-KEY`, and is refused where none is set.
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

# What an update of the ranker changes, in the order of the graph.
FINETUNE_ASSETS = ("ewc_ranker", "promoted_ranker", "race_predictions", "ranking_evaluation")
NO_KEY = "nothing can be started from here: no key is set on this server; set F1_API_KEY and start it again"
WRONG_KEY = "the key in X-API-KEY is missing or wrong"
RunId = Annotated[str, Path(pattern=r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$", description="Of a Dagster run")]


class KeyRefused(PermissionError):
    """Who asks may not start anything."""


class StartRequest(BaseModel):
    """Of which weekend."""

    model_config = ConfigDict(extra="forbid")

    weekend: Key


class FinetuneRequest(BaseModel):
    """Through which weekend; the last one with a result without."""

    model_config = ConfigDict(extra="forbid")

    weekend: Key | None = None


class Job(BaseModel):
    """A run as Dagster knows it."""

    id: str
    job: str
    weekend: str | None
    state: str = Field(description="Dagster's own word: QUEUED, STARTED, SUCCESS, FAILURE, ...")
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None


class Operations:
    """What may be started, for the routes and for the page alike."""

    def __init__(self, api_key: str | None, dagster_url: str):
        """
        Args:
            api_key: Who starts something must say it; without one nobody can.
            dagster_url: Of Dagster's webserver.
        """
        self._api_key, self.dagster = api_key, DagsterApi(dagster_url)

    @property
    def has_key(self) -> bool:
        return bool(self._api_key)

    def check(self, given: str | None) -> None:
        """`KeyRefused` unless that is the key. Takes as long for a key that is nearly right as for any other."""
        if not self._api_key:
            raise KeyRefused(NO_KEY)
        if not hmac.compare_digest((given or "").encode(), self._api_key.encode()):
            raise KeyRefused(WRONG_KEY)

    def ingest(self, key: str) -> Run:
        """Start `pre_race`: practice, qualifying, grid, features, prediction."""
        return self._start("pre_race", key)

    def finish(self, key: str) -> Run:
        """Start `post_race`: results, laps, what the ranker learns, evaluation."""
        return self._start("post_race", key)

    def finetune(self, key: str | None = None) -> Run:
        """Let the ranker learn through a weekend, the last one with a result without, and predict and judge anew."""
        if key is None:
            with published() as connection:
                newest = newest_result(connection)
            if newest is None:
                raise OrderUnknown("there is no result to learn from yet; start /ingest/finish for a weekend first")
            key = newest[0]
        return self._start(ASSET_JOB, key, FINETUNE_ASSETS)

    def _start(self, job: str, key: str, assets: tuple[str, ...] = ()) -> Run:
        known = weekend(key, settings().calendar_path).key
        running = self.dagster.at_work(job, known)
        if running and set(running.assets) == set(assets):
            return running
        run_id = self.dagster.start(job, known, assets)
        begun = self.dagster.run(run_id)
        if begun is None:
            raise DagsterUnavailable(f"Dagster began run {run_id} and does not know it now; look at the Dagster UI")
        return begun


def router(settings: ServeSettings) -> APIRouter:
    """The routes /ingest, /ingest/finish, /finetune and /jobs/{id}."""
    operations = Operations(settings.api_key, settings.dagster_url)
    refusals: dict[int | str, dict[str, Any]] = {404: {"model": ErrorDetail, "description": "Not known"},
                503: {"model": ErrorDetail, "description": "Dagster or the warehouse is not there"}}
    guarded: dict[int | str, dict[str, Any]] = {**refusals, 401: {"model": ErrorDetail, "description": "Wrong key"},
               403: {"model": ErrorDetail, "description": "No key is set on this server"}}

    def with_key(x_api_key: Annotated[str | None, Header()] = None) -> None:
        try:
            operations.check(x_api_key)
        except KeyRefused as problem:
            raise HTTPException(401 if operations.has_key else 403, str(problem)) from None

    def ingest(order: StartRequest) -> Job:
        """Before a race: practice, qualifying, grid, features, prediction (job `pre_race`)."""
        return _job_reply(lambda: operations.ingest(order.weekend))

    def finish(order: StartRequest) -> Job:
        """After a race: results, laps, what the ranker learns from it, evaluation (job `post_race`)."""
        return _job_reply(lambda: operations.finish(order.weekend))

    def finetune(order: FinetuneRequest | None = None) -> Job:
        """Let the ranker learn through a weekend, then predict and judge anew."""
        return _job_reply(lambda: operations.finetune(order.weekend if order else None))

    def job(run_id: RunId) -> Job:
        """What Dagster says of a run."""
        return _job_reply(lambda: operations.dagster.run(run_id))

    routes = APIRouter(tags=["operations"])
    for path, start in (("/ingest", ingest), ("/ingest/finish", finish), ("/finetune", finetune)):
        routes.post(path, status_code=202, responses=guarded, dependencies=[Depends(with_key)])(start)
    routes.get("/jobs/{run_id}", responses=refusals)(job)
    return routes


def _job_reply(ask: Callable[[], Run | None]) -> Job:
    """What came of it, as a reply."""
    try:
        run = ask()
    except (DagsterUnavailable, NoWarehouse) as problem:
        raise HTTPException(503, str(problem)) from None
    except (UnknownWeekend, OrderUnknown) as problem:
        raise HTTPException(404, str(problem.args[0])) from None
    if run is None:
        raise HTTPException(404, "Dagster knows no run of that id; POST /ingest and its like reply with one")
    return Job(id=run.id, job=run.job, weekend=run.weekend, state=run.state, created_at=run.created_at,
               started_at=run.started_at, ended_at=run.ended_at)
