"""The operations API with a real Dagster webserver and daemon in a temporary home, and one real run of a job."""
from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import pytest
import requests
from fastapi import FastAPI
from fastapi.testclient import TestClient

from f1_pipelines.serve.routes import operations
from f1_pipelines.serve.run import listen
from f1_pipelines.serve.settings import ServeSettings
from f1_pipelines.settings import PROJECT_ROOT
from f1_pipelines.warehouse.database import WarehouseFile

pytestmark = [pytest.mark.xdist_group("serve-stored"), pytest.mark.timeout(500)]
KEY = "correct horse"
WRITES = (("/ingest", {"weekend": "2026-japan"}), ("/ingest/finish", {"weekend": "2026-japan"}), ("/finetune", None))
NO_SERVER = "http://127.0.0.1:9"
TIMEOUT_S = 200.0  # long, because the machine may be busy


def client_with(api_key: str | None, dagster_url: str = NO_SERVER) -> TestClient:
    app = FastAPI()
    app.include_router(operations.router(ServeSettings(api_key=api_key, dagster_url=dagster_url)))
    return TestClient(app)


def until(condition: Callable[[], object]) -> object:
    end = time.monotonic() + TIMEOUT_S
    while not (result := condition()):
        assert time.monotonic() < end
        time.sleep(0.3)
    return result


@contextmanager
def process(home: Path, *command: str) -> Iterator[None]:
    """Run a Dagster process; end it and its children with the body."""
    environment = {**os.environ, "DAGSTER_HOME": str(home), "F1_WAREHOUSE": str(home / "f1.duckdb"),
                   "F1_SOURCE": "sample", "F1_SIMULATED_RACES": "0", "PYTHONWARNINGS": "ignore::FutureWarning"}
    with (home / "log").open("a") as log, subprocess.Popen(
            [sys.executable, "-m", *command, "-m", "f1_pipelines.definitions"], cwd=home, env=environment, stdout=log,
            stderr=subprocess.STDOUT, start_new_session=True) as running:
        try:
            yield
        finally:
            os.killpg(running.pid, signal.SIGTERM)
            try:
                running.wait(5)
            except subprocess.TimeoutExpired:
                os.killpg(running.pid, signal.SIGKILL)


@pytest.fixture(scope="module")
def home(sample_seasons, tmp_path_factory) -> Path:
    """Dagster's home, with a copy of the warehouse."""
    folder = shutil.copytree(sample_seasons, tmp_path_factory.mktemp("dagster") / "home")
    (folder / "dagster.yaml").write_text((PROJECT_ROOT / "dagster.yaml").read_text())
    return folder


@pytest.fixture(scope="module")
def webserver(home) -> Iterator[str]:
    """The address of a webserver without a daemon."""
    with listen("127.0.0.1", 0) as free:
        port = free.getsockname()[1]

    def answers() -> bool:
        try:
            return requests.get(f"http://127.0.0.1:{port}/server_info", timeout=5).ok
        except requests.RequestException:
            return False

    with process(home, "dagster_webserver", "-h", "127.0.0.1", "-p", str(port)):
        until(answers)
        yield f"http://127.0.0.1:{port}"


@pytest.mark.parametrize("path, body", WRITES)
def test_without_a_key_on_the_server_nothing_is_started(path, body):
    for headers in ({}, {"X-API-KEY": ""}, {"X-API-KEY": "None"}):
        reply = client_with(None).post(path, json=body, headers=headers)
        assert reply.status_code == 403
        assert "F1_API_KEY" in reply.json()["detail"]


@pytest.mark.parametrize("path, body", WRITES)
@pytest.mark.parametrize("key", [None, "", "wrong", KEY[:-1], KEY + " x", "ключ"])
def test_without_the_right_key_nothing_is_started(path, body, key):
    headers = {} if key is None else {"X-API-KEY": key.encode()}
    reply = client_with(KEY).post(path, json=body, headers=headers)
    assert reply.status_code == 401
    assert KEY not in reply.text


def test_with_the_key_an_invalid_request_is_refused():
    client = client_with(KEY)
    for body, status in (({"weekend": "2026-monco"}, 404), ({}, 422), ({"weekend": "x" * 61}, 422)):
        assert client.post("/ingest", json=body, headers={"X-API-KEY": KEY}).status_code == status


def test_without_dagster_the_reply_says_what_to_do():
    client = client_with(KEY)
    for reply in (client.post("/ingest", json={"weekend": "2026-japan"}, headers={"X-API-KEY": KEY}),
                  client.get("/jobs/00000000-0000-0000-0000-000000000000")):
        assert reply.status_code == 503
        assert "make dev" in reply.json()["detail"]
        assert NO_SERVER not in reply.text


def test_without_a_daemon_nothing_is_queued(webserver):
    client = client_with(KEY, webserver)
    reply = client.post("/ingest", json={"weekend": "2026-japan"}, headers={"X-API-KEY": KEY})
    assert reply.status_code == 503
    assert "daemon is not running" in reply.json()["detail"]
    assert operations.DagsterApi(webserver).runs(5) == []
    assert client.get("/jobs/00000000-0000-0000-0000-000000000000").status_code == 404
    assert client.get("/jobs/not-an-id").status_code == 422


def test_dagster_runs_a_job_and_the_api_reports_its_status(webserver, home):
    client, headers = client_with(KEY, webserver), {"X-API-KEY": KEY}
    with process(home, "dagster._daemon", "run"):
        started = until(lambda: (reply := client.post("/ingest", json={"weekend": "2026-japan"}, headers=headers))
                        .status_code == 202 and reply).json()
        assert (started["job"], started["weekend"]) == ("pre_race", "2026-japan")
        repeated = client.post("/ingest", json={"weekend": "2026-japan"}, headers=headers).json()
        assert repeated["id"] == started["id"], "an unfinished run must not be started twice"
        states = set()

        def ended() -> dict | None:
            job = client.get(f"/jobs/{started['id']}").json()
            states.add(job["state"])
            return job if job["ended_at"] else None

        job = until(ended)
    assert job["state"] == "SUCCESS", (home / "log").read_text()[-3000:]
    assert states & {"QUEUED", "STARTING", "STARTED"}
    assert job["created_at"] <= job["started_at"] < job["ended_at"]
    with WarehouseFile(home / "f1.duckdb").read() as connection:
        [(fetched_at,)] = connection.execute("SELECT max(fetched_at) FROM race.qualifying WHERE weekend = '2026-japan'"
                                             ).fetchall()
    assert fetched_at >= datetime.fromisoformat(job["started_at"])
    weekends = {row.asset: row.weekend for row in operations.DagsterApi(webserver).asset_freshness()}
    assert (weekends["race_predictions"], weekends["race_results"]) == ("2026-japan", None)
