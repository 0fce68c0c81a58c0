"""`/reset`, `/step`, `/state` and `/close`: races over plain HTTP, for example with curl."""
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
SessionHeader = Annotated[SessionId, Header(alias=HEADER)]
ERROR_RESPONSES: dict[int | str, dict[str, Any]] = {
    404: {"description": "No such session"}, 409: {"description": "The race is over"},
    422: {"description": "Invalid request"}, 503: {"description": "All sessions are in use"}}


class SessionResetRequest(ResetRequest):
    """The race to start, in an existing session or a new one."""

    session_id: SessionId = None


class StepRequest(BaseModel):
    """The command for the next lap."""

    model_config = ConfigDict(extra="forbid")

    action: F1Action
    session_id: SessionId = None


class CloseRequest(BaseModel):
    """The session to end."""

    model_config = ConfigDict(extra="forbid")

    session_id: SessionId = None


class EpisodeResponse(BaseModel):
    """An observation, the reward and whether the race is over, in OpenEnv's format."""

    session_id: str
    observation: F1Observation
    reward: float | None
    done: bool


def router(settings: ServeSettings) -> APIRouter:
    """Create the routes and their sessions."""
    routes = APIRouter(tags=["environment"], responses=ERROR_RESPONSES)
    sessions = Sessions(settings.sessions, settings.idle_s, settings.session_s)

    def reply(session: Session, observation: F1Observation, response: Response) -> EpisodeResponse:
        response.headers[HEADER] = session.id
        return EpisodeResponse(session_id=session.id, observation=observation, reward=observation.reward,
                               done=observation.done)

    @routes.post("/reset")
    async def reset(response: Response, request: SessionResetRequest | None = None,
                    session_id: SessionHeader = None) -> EpisodeResponse:
        """Start a race, in a new session or the one of `X-Session-Id`."""
        request = request or SessionResetRequest()
        existing_id = session_id or request.session_id
        with client_errors():
            session = sessions.get(existing_id) if existing_id else sessions.open()
            try:
                async with session.lock:
                    observation = await session.environment.reset_async(**request.model_dump(exclude={"session_id"}))
            except Exception:
                if not existing_id:
                    sessions.close(session.id)
                raise
        return reply(session, observation, response)

    @routes.post("/step")
    async def step(response: Response, request: StepRequest, session_id: SessionHeader = None) -> EpisodeResponse:
        """Drive the next lap with a command."""
        with client_errors():
            session = sessions.get(session_id or request.session_id)
            async with session.lock:
                observation = await session.environment.step_async(request.action)
        return reply(session, observation, response)

    @routes.get("/state")
    async def state(session_id: SessionHeader = None,
                    query: Annotated[SessionId, Query(alias="session_id")] = None) -> F1State:
        """The race of a session and its progress."""
        with client_errors():
            return sessions.get(session_id or query).environment.state

    @routes.post("/close", status_code=204)
    async def close(request: CloseRequest | None = None, session_id: SessionHeader = None) -> None:
        """End a session. Later requests to it fail."""
        with client_errors():
            sessions.close(session_id or (request.session_id if request else None))

    return routes


@contextmanager
def client_errors() -> Iterator[None]:
    """Turn exceptions into HTTP errors."""
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
