"""`POST /simulate`: a race driven by a policy, as one reply or as a stream of laps. `GET /policies`: valid values."""
from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Annotated, Any

from fastapi import APIRouter, Header, HTTPException
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field, TypeAdapter

from f1_pipelines.serve.errors import SERVER_FAULT, fault_response
from f1_pipelines.serve.live_race import Lap, LiveRace, RaceEnd
from f1_pipelines.serve.policies import AvailablePolicy, PolicyUnavailable, available_policies
from f1_pipelines.serve.race_factory import BY_HAND, CLIENT_ERRORS, Name, RaceRequest, begin_race
from f1_pipelines.serve.settings import ServeSettings
from f1_pipelines.sim.engine.priors import prior_rows
from f1_pipelines.sim.environment.commands import usage
from f1_pipelines.sim.scenarios import FAMILIES, GRAND_PRIX

EVENT_STREAM = "text/event-stream"


class SimulationRequest(RaceRequest):
    """A race and the policy that drives it."""

    policy: Name = Field("expert", description="A policy of GET /policies.")
    stream: bool = Field(False, description="Send each lap as a Server-Sent Event, as with `Accept: "
                                            "text/event-stream`.")


class SimulationStart(BaseModel):
    """The race and the public facts about it before the start."""

    family: str
    seed: int
    split: str
    circuit: str
    weekend: str
    policy: str
    laps: int
    briefing: str
    env_version: int


class SimulationResponse(BaseModel):
    """A complete race; lap 0 is the grid."""

    start: SimulationStart
    laps: list[Lap]
    end: RaceEnd


class StreamError(BaseModel):
    """The reason why a stream ended early."""

    detail: str


class Choices(BaseModel):
    """Valid values for /reset and /simulate."""

    policies: list[AvailablePolicy]
    families: list[str]
    circuits: list[str]
    commands: list[str]


class RaceTimeout(RuntimeError):
    """A race took longer than `F1_SERVE_RACE_S`."""


def router(settings: ServeSettings) -> APIRouter:
    """Create the routes, with a limit on concurrent races."""
    routes = APIRouter(tags=["simulator"])
    slots = asyncio.Semaphore(settings.races)

    @routes.get("/policies")
    def policies() -> Choices:
        """Valid policies, families, circuits and commands."""
        return Choices(policies=available_policies(), families=[*FAMILIES, GRAND_PRIX], circuits=sorted(prior_rows()),
                       commands=usage().splitlines())

    @routes.post("/simulate", response_model=SimulationResponse, responses={
        200: {"content": {EVENT_STREAM: {}},
              "description": "The race; as events `start`, `lap`, ..., `end`, or `error`"},
        422: {"description": "Invalid race or policy"}, 503: {"description": "Not available at the moment"}})
    async def simulate(request: SimulationRequest, accept: Annotated[str, Header()] = "") -> Any:
        """Drive a race with a policy."""
        if request.policy == BY_HAND:
            raise HTTPException(422, "to drive a race by hand, use POST /reset and POST /step.")
        if slots.locked():
            raise HTTPException(503, f"{settings.races} races are running, the maximum; try again later.",
                                {"Retry-After": "5"})
        parts = _race_parts(request, slots, settings.race_s)
        try:
            start = await anext(parts)  # raises the errors in the request, before a stream starts
            if request.stream or EVENT_STREAM in accept:
                return StreamingResponse(_encode_events(start, parts), headers={"Cache-Control": "no-store"},
                                         media_type=EVENT_STREAM)
            *laps, end = [part async for part in parts]
        except CLIENT_ERRORS as problem:
            raise HTTPException(422, str(problem)) from None
        except (PolicyUnavailable, RaceTimeout) as problem:
            raise HTTPException(503, str(problem)) from None
        return SimulationResponse(start=start, laps=laps, end=end)

    return routes


async def _race_parts(request: SimulationRequest, slots: asyncio.Semaphore,
                      limit_s: float) -> AsyncGenerator[SimulationStart | Lap | RaceEnd]:
    """Yield the start message, the grid, each lap and the end of a race."""
    deadline_s = time.monotonic() + limit_s
    async with slots:
        race = await asyncio.to_thread(begin_race, request, request.policy)
        yield _start_message(race)
        yield race.laps[0]
        while not race.over:
            if time.monotonic() > deadline_s:
                raise RaceTimeout(f"the race took more than {limit_s:.0f} s; stopped at lap {race.laps[-1].lap}.")
            yield await asyncio.to_thread(race.lap)
        if race.end is not None:
            yield race.end


async def _encode_events(start: SimulationStart | Lap | RaceEnd,
                         parts: AsyncGenerator[SimulationStart | Lap | RaceEnd]) -> AsyncIterator[bytes]:
    """Encode the parts as Server-Sent Events. An exception becomes the last event."""
    yield _encode_event(start)
    try:
        async with aclosing(parts):
            async for part in parts:
                yield _encode_event(part)
    except RaceTimeout as problem:
        yield _encode_event(StreamError(detail=str(problem)))
    except Exception as problem:
        fault_response(problem)
        yield _encode_event(StreamError(detail=SERVER_FAULT))


def _encode_event(part: SimulationStart | Lap | RaceEnd | StreamError) -> bytes:
    name = {SimulationStart: "start", Lap: "lap", RaceEnd: "end", StreamError: "error"}[type(part)]
    return b"event: %s\ndata: %s\n\n" % (name.encode(), TypeAdapter(type(part)).dump_json(part))


def _start_message(race: LiveRace) -> SimulationStart:
    scenario = race.scenario
    return SimulationStart(family=scenario.family, seed=scenario.seed, split=scenario.split,
                           circuit=scenario.circuit.circuit,
                           weekend=scenario.weekend, policy=race.name, laps=scenario.laps, briefing=race.briefing,
                           env_version=race.env_version)
