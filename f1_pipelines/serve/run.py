"""The server process: `run("127.0.0.1", 8000)` until it is interrupted."""
from __future__ import annotations

import socket

import uvicorn
from fastapi import FastAPI

from f1_pipelines.serve.app import create_app
from f1_pipelines.serve.settings import ServeSettings, serve_settings

MAX_CONNECTIONS = 1000  # at once, whatever they are for: 64 agents, as many pages, and room


class PortTaken(RuntimeError):
    """Nothing can listen there."""


def run(host: str, port: int) -> None:
    """Serve until interrupted.

    Raises:
        PortTaken: The address can't be listened on.
        BadSetting: A limit that can't be used.
    """
    limits = serve_settings()
    listener = listen(host, port)
    print(f"The pit wall opens on http://{host}:{port} (Ctrl+C closes it)", flush=True)
    uvicorn.Server(config_of(create_app(limits), limits)).run(sockets=[listener])


def config_of(app: FastAPI, limits: ServeSettings) -> uvicorn.Config:
    """How it is served: limits on connections, and nothing said of the server."""
    return uvicorn.Config(
        app, log_level="warning", access_log=False, server_header=False, proxy_headers=False,
        ws_max_size=limits.body_kib * 1024, ws_per_message_deflate=False, limit_concurrency=MAX_CONNECTIONS,
        timeout_graceful_shutdown=5)


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes a free one.

    Raises:
        PortTaken: It can't be had.
    """
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as problem:
        raise PortTaken(f"can't listen on {host} port {port} ({problem.strerror or problem}); stop what holds it, or "
                        f"take another: f1 serve --port {min(port + 1, 65535)}") from None
