"""What every request meets first: size, rate and origin limits on the way in, security headers on the way out."""
from __future__ import annotations

import time
from collections.abc import Callable
from urllib.parse import urlsplit

from fastapi import FastAPI
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import JSONResponse
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from f1_pipelines.serve.errors import SERVER_FAULT, fault_response
from f1_pipelines.serve.rate_limit import RateLimiter
from f1_pipelines.serve.settings import ServeSettings

SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
POLICY_VIOLATION = 1008  # WebSocket close code
SECURITY_HEADERS = {
    # The pages are Vue templates compiled in the browser, hence eval and inline; nothing comes from elsewhere.
    "Content-Security-Policy": "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; "
                               "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; "
                               "connect-src 'self'; object-src 'none'; base-uri 'self'; form-action 'self'; "
                               "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}


def add_limits(app: FastAPI, settings: ServeSettings) -> None:
    """Put the guard before all routes."""
    if settings.origins:
        app.add_middleware(CORSMiddleware, allow_origins=settings.origins, allow_methods=["GET", "POST"],
                           allow_headers=["Content-Type", "X-Session-Id", "X-API-KEY"],
                           expose_headers=["X-Session-Id"])
    app.add_middleware(RequestLimits, settings=settings)


class RequestLimits:
    """ASGI middleware around everything."""

    def __init__(self, app: ASGIApp, settings: ServeSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self._app, self._most_bytes = app, settings.body_kib * 1024
        self._origins = {origin.rstrip("/") for origin in settings.origins}
        self._buckets = RateLimiter(settings.requests_per_s, settings.burst, clock)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._request(scope, receive, send)
        elif scope["type"] == "websocket" and not (self._same_origin(scope) and self._may_ask(scope) == 0.0):
            await receive()
            await send({"type": "websocket.close", "code": POLICY_VIOLATION})  # before accept: a bare 403
        else:
            await self._app(scope, receive, send)

    async def _request(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun, taken = False, 0

        async def limited() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > self._most_bytes:
                raise HTTPException(413, self._too_large())
            return message

        async def secured(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        async def withheld(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] == 500:
                raise HTTPException(500,
                                    SERVER_FAULT)  # who answers so, NiceGUI's error page for one, may tell too much
            await secured(message)

        refusal = self._refusal(scope)
        try:
            await (refusal or self._app)(scope, limited, withheld)
        except Exception as problem:
            reply = JSONResponse({"detail": problem.detail}, problem.status_code) \
                if isinstance(problem, HTTPException) else fault_response(problem)
            if not begun:
                await reply(scope, receive, secured)

    def _refusal(self, scope: Scope) -> JSONResponse | None:
        """Why a request is not even looked at."""
        wait_s = self._may_ask(scope)
        if wait_s:
            return JSONResponse({"detail": f"too many requests; again in {wait_s:.1f} s."}, 429,
                                {"Retry-After": str(int(wait_s) + 1)})
        if scope["method"] not in SAFE_METHODS and not self._same_origin(scope):
            return JSONResponse({"detail": "pages of other sites may not ask this server."}, 403)
        length = Headers(scope=scope).get("content-length", "0")
        if length.isdecimal() and int(length) > self._most_bytes:
            return JSONResponse({"detail": self._too_large()}, 413)
        return None

    def _too_large(self) -> str:
        return f"a request has at most {self._most_bytes // 1024} KiB."

    def _may_ask(self, scope: Scope) -> float:
        """0 if its address may ask now, else after how long [s]."""
        return self._buckets.take(scope["client"][0] if scope.get("client") else "")

    def _same_origin(self, scope: Scope) -> bool:
        """Whether no page of another site is behind it. Programs send no Origin."""
        headers = Headers(scope=scope)
        origin = headers.get("origin")
        return origin is None or origin in self._origins or urlsplit(origin).netloc == headers.get("host")
