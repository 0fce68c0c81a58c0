"""The command `f1 serve` with pages, in its own process."""
from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest
import requests

from f1_pipelines.serve.run import PortTaken, listen

HEAVY = {"fastapi", "nicegui", "openenv", "torch", "uvicorn"}


def free_port() -> int:
    with listen("127.0.0.1", 0) as listener:
        return listener.getsockname()[1]


def test_serve_opens_the_pages_and_ends_when_interrupted(tmp_path):
    port = free_port()
    environment = {**os.environ, "F1_WAREHOUSE": str(tmp_path / "f1.duckdb")}
    with subprocess.Popen([sys.executable, "-m", "f1_pipelines", "serve", "--port", str(port)], env=environment,
                          stdout=subprocess.PIPE, text=True) as server:
        try:
            assert f"http://127.0.0.1:{port}" in server.stdout.readline()
            for _ in range(300):
                try:
                    home = requests.get(f"http://127.0.0.1:{port}/", timeout=30)
                    break
                except requests.ConnectionError:
                    time.sleep(0.1)
            assert home.status_code == 200 and "text/html" in home.headers["Content-Type"]
            assert requests.get(f"http://127.0.0.1:{port}/health", timeout=30).json() == {"status": "healthy"}
        finally:
            server.send_signal(signal.SIGINT)
        assert server.wait(timeout=60) in (0, 130, -signal.SIGINT)


def test_a_taken_port_is_an_error_with_an_alternative():
    with listen("127.0.0.1", 0) as listener, pytest.raises(PortTaken, match="f1 serve --port"):
        listen("127.0.0.1", listener.getsockname()[1])


def test_neither_the_command_nor_the_definitions_load_the_web():
    code = ("import sys, f1_pipelines.cli.main, f1_pipelines.definitions, f1_pipelines.serve; "
            f"print(sorted({HEAVY!r} & set(sys.modules)))")
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
