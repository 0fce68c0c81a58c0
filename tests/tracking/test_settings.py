"""The setting of the tracking store, and what `f1 doctor` finds about it."""
import http.server
import threading

import pytest

from f1_pipelines.cli.doctor import diagnose
from f1_pipelines.settings import settings


@pytest.fixture(autouse=True)
def warehouse(tmp_path, monkeypatch):
    monkeypatch.setenv("F1_WAREHOUSE", str(tmp_path / "f1.duckdb"))


def doctor_finding() -> tuple[bool, str]:
    [finding] = [finding for finding in diagnose() if finding.what == "tracking"]
    return finding.well, finding.text


@pytest.mark.parametrize("unset", [None, ""])
def test_the_default_is_a_file_beside_the_warehouse(tmp_path, monkeypatch, unset):
    monkeypatch.delenv("MLFLOW_TRACKING_URI")
    if unset is not None:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", unset)
    assert settings().tracking_uri == f"sqlite:///{tmp_path}/mlflow.db"
    assert doctor_finding() == (True, f"sqlite:///{tmp_path}/mlflow.db, created by the first tracked run")
    assert list(tmp_path.iterdir()) == [], "the check creates nothing"


def test_tracking_can_be_switched_off(monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "off")
    assert settings().tracking_uri is None
    assert doctor_finding() == (True, "off: MLFLOW_TRACKING_URI=off")


def test_the_doctor_counts_the_runs_of_a_file(store, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", store.uri)
    with store.open() as opened:
        opened.client.create_run(opened.experiment)
    assert doctor_finding() == (True, f"1 runs in {store.uri}")


def test_the_doctor_accepts_a_server_that_answers(monkeypatch):
    class Health(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/health" else 404)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Silent."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Health) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        uri = f"http://127.0.0.1:{server.server_port}/"
        monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
        assert doctor_finding() == (True, f"{uri} answers")
        server.shutdown()


@pytest.mark.parametrize(("uri", "message"), [
    ("http://127.0.0.1:9", "refused"), ("file:///somewhere", "is not supported"), ("mlflow.db", "is not supported"),
])
def test_the_doctor_refuses_an_unreachable_or_unsupported_uri(monkeypatch, uri, message):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    well, text = doctor_finding()
    assert not well and message in text


def test_the_doctor_refuses_a_file_that_is_not_a_store(tmp_path, monkeypatch):
    (tmp_path / "text.db").write_text("no database " * 100)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'text.db'}")
    well, text = doctor_finding()
    assert not well and "not a database" in text
