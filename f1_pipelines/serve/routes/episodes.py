"""`/reset`, `/step`, `/state` as sessions for whoever has only curl, and `/close`."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from fastapi import APIRouter, Header, HTTPException, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from f1_pipelines.serve.openenv.environment import ServerFault
from f1_pipelines.serve.openenv.models import F1Action, F1Observation, F1State
from f1_pipelines.serve.openenv.sessions import NoSession, Session, Sessions, TooManySessions
from f1_pipelines.serve.race_factory import CLIENT_ERRORS, ResetRequest
from f1_pipelines.serve.settings import ServeSettings
from f1_pipelines.sim.environment.environment import EpisodeOver

HEADER = "X-Session-Id"
SessionId = Annotated[str | None, Field(max_length=60)]
InHeader = Annotated[SessionId, Header(alias=HEADER)]
ERROR_RESPONSES: dict[int | str, dict[str, Any]] = {404: {"description": "No such session"},
                                                    409: {"description": "The race is over"},
            422: {"description": "Not understood"}, 503: {"description": "All sessions are taken"}}


class SessionResetRequest(ResetRequest):
    """Which race, in a session that is there or in a new one."""

    session_id: SessionId = None


class StepRequest(BaseModel):
    """The call of the coming lap."""

    model_config = ConfigDict(extra="forbid")

    action: F1Action
    session_id: SessionId = None


class CloseRequest(BaseModel):
    """Which session ends."""

    model_config = ConfigDict(extra="forbid")

    session_id: SessionId = None


class EpisodeResponse(BaseModel):
    """An observation, with its reward and whether the race is over, as OpenEnv sends them."""

    session_id: str
    observation: F1Observation
    reward: float | None
    done: bool


def router(settings: ServeSettings) -> APIRouter:
    """The routes, with sessions of their own."""
    routes = APIRouter(tags=["environment"], responses=ERROR_RESPONSES)
    sessions = Sessions(settings.sessions, settings.idle_s, settings.session_s)

    def turn(session: Session, observation: F1Observation, response: Response) -> EpisodeResponse:
        response.headers[HEADER] = session.id
        return EpisodeResponse(session_id=session.id, observation=observation, reward=observation.reward,
                               done=observation.done)

    @routes.post("/reset")
    async def reset(response: Response, request: SessionResetRequest | None = None,
                    session_id: InHeader = None) -> EpisodeResponse:
        """Begin a race, in a new session or in that of `X-Session-Id`."""
        request = request or SessionResetRequest()
        known = session_id or request.session_id
        with client_errors():
            session = sessions.get(known) if known else sessions.open()
            try:
                async with session.turn:
                    observation = await session.environment.reset_async(**request.model_dump(exclude={"session_id"}))
            except Exception:
                if not known:
                    sessions.close(session.id)
                raise
        return turn(session, observation, response)

    @routes.post("/step")
    async def step(response: Response, call: StepRequest, session_id: InHeader = None) -> EpisodeResponse:
        """Call the coming lap."""
        with client_errors():
            session = sessions.get(session_id or call.session_id)
            async with session.turn:
                observation = await session.environment.step_async(call.action)
        return turn(session, observation, response)

    @routes.get("/state")
    async def state(session_id: InHeader = None,
                    query: Annotated[SessionId, Query(alias="session_id")] = None) -> F1State:
        """Which race a session is in, and how far."""
        with client_errors():
            return sessions.get(session_id or query).environment.state

    @routes.post("/close", status_code=204)
    async def close(closing: CloseRequest | None = None, session_id: InHeader = None) -> None:
        """End a session: each later request of it is an error."""
        with client_errors():
            sessions.close(session_id or (closing.session_id if closing else None))

    return routes


@contextmanager
def client_errors() -> Iterator[None]:
    """What a client can mend, as the status that says so."""
    try:
        yield
    except NoSession as problem:
        raise HTTPException(404, str(problem)) from None
    except EpisodeOver as problem:
        raise HTTPException(409, str(problem)) from None
    except TooManySessions as problem:
        raise HTTPException(503, str(problem), {"Retry-After": "10"}) from None
    except ServerFault as problem:
        raise HTTPException(500, str(problem)) from None
    except CLIENT_ERRORS as problem:
        raise HTTPException(422, str(problem)) from None
