"""The server process: `run("127.0.0.1", 8000)` serves until interrupted."""
from __future__ import annotations

import socket

import uvicorn
from fastapi import FastAPI

from f1_pipelines.serve.app import create_app
from f1_pipelines.serve.settings import ServeSettings, serve_settings

MAX_CONNECTIONS = 1000  # at once, of all kinds: leaves room for the WebSockets, the HTTP sessions and the pages


class PortTaken(RuntimeError):
    """The address can't be listened on."""


def run(host: str, port: int) -> None:
    """Serve until interrupted.

    Raises:
        PortTaken: The address can't be listened on.
        BadSetting: A setting has an invalid value.
    """
    settings = serve_settings()
    listener = listen(host, port)
    print(f"Serving on http://{host}:{port} (Ctrl+C to stop)", flush=True)
    uvicorn.Server(config_of(create_app(settings), settings)).run(sockets=[listener])


def config_of(app: FastAPI, settings: ServeSettings) -> uvicorn.Config:
    """Configure uvicorn: limits on connections and messages, no access log, no Server header."""
    return uvicorn.Config(
        app, log_level="warning", access_log=False, server_header=False, proxy_headers=False,
        ws_max_size=settings.body_kib * 1024, ws_per_message_deflate=False, limit_concurrency=MAX_CONNECTIONS,
        timeout_graceful_shutdown=5)


def listen(host: str, port: int) -> socket.socket:
    """Open a listening socket; port 0 takes a free port.

    Raises:
        PortTaken: The address can't be listened on.
    """
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as problem:
        raise PortTaken(f"can't listen on {host} port {port} ({problem.strerror or problem}); stop the process that "
                        f"uses it, or try another port: f1 serve --port {min(port + 1, 65535)}") from None
