"""`/ws`, `/health`, `/schema`, `/metadata`: OpenEnv's own routes, its WebSocket behind limits; `/mcp`."""
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
# Of OpenEnv's routes. Its /reset, /step and /state make an environment for each request: episodes.py has ours.
OPENENV_PATHS = ("/ws", "/health", "/schema", "/metadata")


def add_openenv(app: FastAPI, settings: ServeSettings) -> None:
    """Add OpenEnv's routes to the application."""
    scratch = FastAPI()
    HTTPEnvServer(F1Environment, F1Action, F1Observation, settings.sockets, env_name=NAME,
                  state_cls=F1State).register_routes(scratch)
    for route in scratch.routes:
        if getattr(route, "path", None) in OPENENV_PATHS:
            if isinstance(route, WebSocketRoute) and route.path == "/ws":
                route.app = SocketLimits(route.app, settings)
            app.router.routes.append(route)

    @app.post("/mcp", tags=["environment"])
    async def mcp() -> JsonRpcResponse:
        """There are no MCP tools; the error says which routes to use."""
        return JsonRpcResponse.error_response(
            JsonRpcErrorCode.METHOD_NOT_FOUND, "no MCP tools here: play on /ws, or with /reset and /step")


class SocketLimits:
    """ASGI around one WebSocket route: what comes must be small JSON objects, in time, and not faster than allowed."""

    def __init__(self, app: ASGIApp, settings: ServeSettings) -> None:
        self._app, self._settings = app, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        limits, begun_s = self._settings, time.monotonic()
        bucket = TokenBucket(limits.messages_per_s, limits.messages_per_s, begun_s)

        async def limited() -> Message:
            while True:
                left_s = min(limits.idle_s, begun_s + limits.session_s - time.monotonic())
                try:
                    async with asyncio.timeout(left_s):
                        message = await receive()
                except TimeoutError:
                    await tell(WSErrorCode.SESSION_ERROR, "this session was idle or open for too long and has ended.")
                    return {"type": "websocket.disconnect", "code": 1001}
                if message["type"] != "websocket.receive":
                    return message
                wait_s = bucket.take(time.monotonic())
                if wait_s:
                    await asyncio.sleep(wait_s)
                problem = _message_error(message, limits.body_kib * 1024)
                if problem is None:
                    return message
                await tell(WSErrorCode.INVALID_JSON, problem)

        async def tell(code: WSErrorCode, sentence: str) -> None:
            answer = WSErrorResponse(data={"message": sentence, "code": code})
            await send({"type": "websocket.send", "text": answer.model_dump_json()})

        await self._app(scope, limited, send)


def _message_error(message: Message, most_bytes: int) -> str | None:
    """Why a message is not even read."""
    text = message.get("text")
    if text is None or not text.lstrip().startswith("{"):
        return "a message is a JSON object as text, like {\"type\": \"state\"}."
    if len(text.encode("utf-8", "replace")) > most_bytes:
        return f"a message has at most {most_bytes // 1024} KiB."
    if "\\ud" in text.lower():  # half a character: JSON allows it, the reply that quotes it could not be sent
        try:
            json.dumps(json.loads(text), ensure_ascii=False).encode()
        except ValueError:
            return "a message is JSON in whole Unicode characters."
    return None
