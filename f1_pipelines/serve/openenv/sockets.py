"""OpenEnv's routes `/ws` (with limits), `/health`, `/schema` and `/metadata`, and a `/mcp` that offers no tools."""
from __future__ import annotations

import asyncio
import json
import time

from fastapi import FastAPI
from openenv.core.env_server.http_server import HTTPEnvServer
from openenv.core.env_server.mcp_types import JsonRpcErrorCode, JsonRpcResponse
from openenv.core.env_server.types import WSErrorCode, WSErrorResponse
from starlette.routing import WebSocketRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from f1_pipelines.serve.openenv.environment import F1Environment
from f1_pipelines.serve.openenv.models import F1Action, F1Observation, F1State
from f1_pipelines.serve.rate_limit import TokenBucket
from f1_pipelines.serve.settings import ServeSettings

NAME = "f1_race_engineer"
# Used from OpenEnv. Its /reset, /step and /state create an environment per request; routes/episodes.py replaces them.
OPENENV_PATHS = ("/ws", "/health", "/schema", "/metadata")


def add_openenv(app: FastAPI, settings: ServeSettings) -> None:
    """Add OpenEnv's routes to the application."""
    openenv_app = FastAPI()
    HTTPEnvServer(F1Environment, F1Action, F1Observation, settings.sockets, env_name=NAME,
                  state_cls=F1State).register_routes(openenv_app)
    for route in openenv_app.routes:
        if getattr(route, "path", None) in OPENENV_PATHS:
            if isinstance(route, WebSocketRoute) and route.path == "/ws":
                route.app = SocketLimits(route.app, settings)
            app.router.routes.append(route)

    @app.post("/mcp", tags=["environment"])
    async def mcp() -> JsonRpcResponse:
        """Reply that there are no MCP tools and which routes to use."""
        return JsonRpcResponse.error_response(
            JsonRpcErrorCode.METHOD_NOT_FOUND, "there are no MCP tools: use /ws, or /reset and /step")


class SocketLimits:
    """ASGI wrapper of one WebSocket route that limits the size, format and rate of messages and the session's time."""

    def __init__(self, app: ASGIApp, settings: ServeSettings) -> None:
        self._app, self._settings = app, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        limits, started_s = self._settings, time.monotonic()
        bucket = TokenBucket(limits.messages_per_s, limits.messages_per_s, started_s)

        async def receive_limited() -> Message:
            while True:
                left_s = min(limits.idle_s, started_s + limits.session_s - time.monotonic())
                try:
                    async with asyncio.timeout(left_s):
                        message = await receive()
                except TimeoutError:
                    await send_error(WSErrorCode.SESSION_ERROR, "the session ended: it was idle or open for too long.")
                    return {"type": "websocket.disconnect", "code": 1001}
                if message["type"] != "websocket.receive":
                    return message
                wait_s = bucket.take(time.monotonic())
                if wait_s:
                    await asyncio.sleep(wait_s)
                problem = _message_error(message, limits.body_kib * 1024)
                if problem is None:
                    return message
                await send_error(WSErrorCode.INVALID_JSON, problem)

        async def send_error(code: WSErrorCode, sentence: str) -> None:
            response = WSErrorResponse(data={"message": sentence, "code": code})
            await send({"type": "websocket.send", "text": response.model_dump_json()})

        await self._app(scope, receive_limited, send)


def _message_error(message: Message, max_bytes: int) -> str | None:
    """Return why a message is rejected unread, or None."""
    text = message.get("text")
    if text is None or not text.lstrip().startswith("{"):
        return "a message must be a JSON object as text, like {\"type\": \"state\"}."
    if len(text.encode("utf-8", "replace")) > max_bytes:
        return f"the message is too large; at most {max_bytes // 1024} KiB are allowed."
    if "\\ud" in text.lower():  # a lone surrogate: JSON allows it, but a reply that quotes it could not be sent
        try:
            json.dumps(json.loads(text), ensure_ascii=False).encode()
        except ValueError:
            return "the message contains an incomplete Unicode character."
    return None
