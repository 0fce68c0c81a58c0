"""`POST /simulate`: a whole race by one policy, as one reply or lap by lap; and what there is to choose from."""
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
    """Which race, and who calls it."""

    policy: Name = Field("expert", description="One of GET /policies.")
    stream: bool = Field(False, description="Lap by lap as Server-Sent Events, as `Accept: text/event-stream` asks.")


class SimulationStart(BaseModel):
    """Which race it is: the answers to `RaceRequest`, and what everybody knows before lights out."""

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
    """A whole race: lap 0 is the grid."""

    start: SimulationStart
    laps: list[Lap]
    end: RaceEnd


class StreamError(BaseModel):
    """Why a stream ended early."""

    detail: str


class Choices(BaseModel):
    """What /reset and /simulate take."""

    policies: list[AvailablePolicy]
    families: list[str]
    circuits: list[str]
    commands: list[str]


class RaceTimeout(RuntimeError):
    """A race that takes longer than this server allows."""


def router(settings: ServeSettings) -> APIRouter:
    """The routes, with a limit on races at once."""
    routes = APIRouter(tags=["simulator"])
    places = asyncio.Semaphore(settings.races)

    @routes.get("/policies")
    def policies() -> Choices:
        """Policies, families, circuits and commands to choose from."""
        return Choices(policies=available_policies(), families=[*FAMILIES, GRAND_PRIX], circuits=sorted(prior_rows()),
                       commands=usage().splitlines())

    @routes.post("/simulate", response_model=SimulationResponse, responses={
        200: {"content": {EVENT_STREAM: {}},
              "description": "The race; as events `start`, `lap`, ..., `end`, or `error`"},
        422: {"description": "No such race or policy"}, 503: {"description": "Not available here and now"}})
    async def simulate(request: SimulationRequest, accept: Annotated[str, Header()] = "") -> Any:
        """Play a race."""
        if request.policy == BY_HAND:
            raise HTTPException(422, "to call the laps yourself, POST /reset and then /step.")
        if places.locked():
            raise HTTPException(503, f"{settings.races} races are on, no more at once.", {"Retry-After": "5"})
        parts = _race_parts(request, places, settings.race_s)
        try:
            start = await anext(parts)  # whatever is wrong with the question shows here, before a stream begins
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


async def _race_parts(request: SimulationRequest, places: asyncio.Semaphore,
                      most_s: float) -> AsyncGenerator[SimulationStart | Lap | RaceEnd]:
    """The start, the grid, every lap and the end of a race, as they come."""
    until = time.monotonic() + most_s
    async with places:
        race = await asyncio.to_thread(begin_race, request, request.policy)
        yield _start_message(race)
        yield race.laps[0]
        while not race.over:
            if time.monotonic() > until:
                raise RaceTimeout(f"the race took longer than {most_s:.0f} s and was stopped at lap {race.laps[-1].lap}.")
            yield await asyncio.to_thread(race.lap)
        if race.end is not None:
            yield race.end


async def _encode_events(start: SimulationStart | Lap | RaceEnd,
                         parts: AsyncGenerator[SimulationStart | Lap | RaceEnd]) -> AsyncIterator[bytes]:
    """The parts as Server-Sent Events. What goes wrong once the stream is on comes as its last event."""
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
