"""Middleware for every request: limits on size, rate and origin, and security headers on every reply."""
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
    # NiceGUI compiles Vue templates in the browser, which needs eval and inline; nothing loads from other hosts.
    "Content-Security-Policy": "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; "
                               "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; "
                               "connect-src 'self'; object-src 'none'; base-uri 'self'; form-action 'self'; "
                               "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}


def add_limits(app: FastAPI, settings: ServeSettings) -> None:
    """Add the limits, and CORS headers if other origins are allowed."""
    if settings.origins:
        app.add_middleware(CORSMiddleware, allow_origins=settings.origins, allow_methods=["GET", "POST"],
                           allow_headers=["Content-Type", "X-Session-Id", "X-API-KEY"],
                           expose_headers=["X-Session-Id"])
    app.add_middleware(RequestLimits, settings=settings)


class RequestLimits:
    """ASGI middleware that enforces the limits of `ServeSettings`."""

    def __init__(self, app: ASGIApp, settings: ServeSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self._app, self._max_bytes = app, settings.body_kib * 1024
        self._origins = {origin.rstrip("/") for origin in settings.origins}
        self._rate_limiter = RateLimiter(settings.requests_per_s, settings.burst, clock)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._request(scope, receive, send)
        elif scope["type"] == "websocket" and not (self._same_origin(scope) and self._wait_s(scope) == 0.0):
            await receive()
            await send({"type": "websocket.close", "code": POLICY_VIOLATION})  # before accept: the client gets a 403
        else:
            await self._app(scope, receive, send)

    async def _request(self, scope: Scope, receive: Receive, send: Send) -> None:
        response_started, received_bytes = False, 0

        async def receive_limited() -> Message:
            nonlocal received_bytes
            message = await receive()
            received_bytes += len(message.get("body", b""))
            if received_bytes > self._max_bytes:
                raise HTTPException(413, self._too_large())
            return message

        async def send_with_headers(message: Message) -> None:
            nonlocal response_started
            if message["type"] == "http.response.start":
                response_started = True
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        async def send_without_details(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] == 500:
                raise HTTPException(500, SERVER_FAULT)  # replaces pages that print the exception, such as NiceGUI's
            await send_with_headers(message)

        refusal = self._refusal(scope)
        try:
            await (refusal or self._app)(scope, receive_limited, send_without_details)
        except Exception as problem:
            reply = JSONResponse({"detail": problem.detail}, problem.status_code) \
                if isinstance(problem, HTTPException) else fault_response(problem)
            if not response_started:
                await reply(scope, receive, send_with_headers)

    def _refusal(self, scope: Scope) -> JSONResponse | None:
        """Return the reply to a request that exceeds a limit, else None."""
        wait_s = self._wait_s(scope)
        if wait_s:
            return JSONResponse({"detail": f"too many requests; try again in {wait_s:.1f} s."}, 429,
                                {"Retry-After": str(int(wait_s) + 1)})
        if scope["method"] not in SAFE_METHODS and not self._same_origin(scope):
            return JSONResponse({"detail": "requests from pages of other sites are not allowed."}, 403)
        length = Headers(scope=scope).get("content-length", "0")
        if length.isdecimal() and int(length) > self._max_bytes:
            return JSONResponse({"detail": self._too_large()}, 413)
        return None

    def _too_large(self) -> str:
        return f"the request is too large; at most {self._max_bytes // 1024} KiB are allowed."

    def _wait_s(self, scope: Scope) -> float:
        """Return 0 if the client's address may send a request now, else the time to wait [s]."""
        return self._rate_limiter.take(scope["client"][0] if scope.get("client") else "")

    def _same_origin(self, scope: Scope) -> bool:
        """Whether the request comes from no page of another site. Programs send no Origin header."""
        headers = Headers(scope=scope)
        origin = headers.get("origin")
        return origin is None or origin in self._origins or urlsplit(origin).netloc == headers.get("host")
