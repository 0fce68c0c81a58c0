"""The operations API on a real Dagster: its webserver and its daemon in a home of their own, and one job really run."""
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
NOBODY = "http://127.0.0.1:9"
PATIENCE_S = 200.0  # the machine has other things to do


def asking(api_key: str | None, dagster_url: str = NOBODY) -> TestClient:
    app = FastAPI()
    app.include_router(operations.router(ServeSettings(api_key=api_key, dagster_url=dagster_url)))
    return TestClient(app)


def until(there: Callable[[], object]) -> object:
    end = time.monotonic() + PATIENCE_S
    while not (found := there()):
        assert time.monotonic() < end
        time.sleep(0.3)
    return found


@contextmanager
def process(home: Path, *command: str) -> Iterator[None]:
    """One of Dagster's processes and all that it starts, until the body ends."""
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
    """Dagster's home, with a warehouse of its own."""
    folder = shutil.copytree(sample_seasons, tmp_path_factory.mktemp("dagster") / "home")
    (folder / "dagster.yaml").write_text((PROJECT_ROOT / "dagster.yaml").read_text())
    return folder


@pytest.fixture(scope="module")
def webserver(home) -> Iterator[str]:
    """The address of a webserver with no daemon."""
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


@pytest.mark.parametrize("path, order", WRITES)
def test_nothing_is_started_where_no_key_is_set(path, order):
    for headers in ({}, {"X-API-KEY": ""}, {"X-API-KEY": "None"}):
        reply = asking(None).post(path, json=order, headers=headers)
        assert reply.status_code == 403
        assert "F1_API_KEY" in reply.json()["detail"]


@pytest.mark.parametrize("path, order", WRITES)
@pytest.mark.parametrize("given", [None, "", "wrong", KEY[:-1], KEY + " x", "ключ"])
def test_nothing_is_started_without_the_key(path, order, given):
    headers = {} if given is None else {"X-API-KEY": given.encode()}
    reply = asking(KEY).post(path, json=order, headers=headers)
    assert reply.status_code == 401
    assert KEY not in reply.text


def test_who_has_the_key_is_told_what_is_wrong_with_the_order():
    client = asking(KEY)
    for order, status in (({"weekend": "2026-monco"}, 404), ({}, 422), ({"weekend": "x" * 61}, 422)):
        assert client.post("/ingest", json=order, headers={"X-API-KEY": KEY}).status_code == status


def test_without_dagster_it_says_what_to_do():
    client = asking(KEY)
    for reply in (client.post("/ingest", json={"weekend": "2026-japan"}, headers={"X-API-KEY": KEY}),
                  client.get("/jobs/00000000-0000-0000-0000-000000000000")):
        assert reply.status_code == 503
        assert "make dev" in reply.json()["detail"]
        assert NOBODY not in reply.text


def test_without_its_daemon_nothing_is_queued_for_nobody(webserver):
    client = asking(KEY, webserver)
    reply = client.post("/ingest", json={"weekend": "2026-japan"}, headers={"X-API-KEY": KEY})
    assert reply.status_code == 503
    assert "daemon is not running" in reply.json()["detail"]
    assert operations.DagsterApi(webserver).runs(5) == []
    assert client.get("/jobs/00000000-0000-0000-0000-000000000000").status_code == 404
    assert client.get("/jobs/not-an-id").status_code == 422


def test_a_job_is_run_by_dagster_and_its_state_is_dagsters(webserver, home):
    client, headers = asking(KEY, webserver), {"X-API-KEY": KEY}
    with process(home, "dagster._daemon", "run"):
        begun = until(lambda: (reply := client.post("/ingest", json={"weekend": "2026-japan"}, headers=headers))
                      .status_code == 202 and reply).json()
        assert (begun["job"], begun["weekend"]) == ("pre_race", "2026-japan")
        again = client.post("/ingest", json={"weekend": "2026-japan"}, headers=headers).json()
        assert again["id"] == begun["id"], "what is at work is not started twice"
        seen = set()

        def ended() -> dict | None:
            job = client.get(f"/jobs/{begun['id']}").json()
            seen.add(job["state"])
            return job if job["ended_at"] else None

        job = until(ended)
    assert job["state"] == "SUCCESS", (home / "log").read_text()[-3000:]
    assert seen & {"QUEUED", "STARTING", "STARTED"}
    assert job["created_at"] <= job["started_at"] < job["ended_at"]
    with WarehouseFile(home / "f1.duckdb").read() as connection:
        [(fetched_at,)] = connection.execute("SELECT max(fetched_at) FROM race.qualifying WHERE weekend = '2026-japan'"
                                             ).fetchall()
    assert fetched_at >= datetime.fromisoformat(job["started_at"])
    made = {made.asset: made.weekend for made in operations.DagsterApi(webserver).materialized()}
    assert (made["race_predictions"], made["race_results"]) == ("2026-japan", None)
