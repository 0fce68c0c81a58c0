"""The newest release is downloaded once and stored, and a call with a timeout does not wait for it."""
import os
import threading
import time
from datetime import UTC, datetime
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from f1_pipelines.identity.weekends import weekend
from f1_pipelines.sources.base import SourceUnavailable
from f1_pipelines.sources.f1db import download
from f1_pipelines.sources.f1db.download import MAX_AGE_S, latest_release
from f1_pipelines.sources.f1db.release import F1dbRelease
from f1_pipelines.sources.factory import open_source

NOW = datetime(2026, 8, 22, 6, 0, tzinfo=UTC)


class Answers(list):
    """The next answers of a page: (status, bytes). Each waits up to 10 s for the lock `hold`."""

    def __init__(self):
        super().__init__()
        self.hold, self.sent = threading.Lock(), 0


class Page(BaseHTTPRequestHandler):
    """A release page that gives these answers, one per request."""

    def __init__(self, answers: Answers, *args):
        self.answers = answers
        super().__init__(*args)

    def do_GET(self) -> None:
        if self.answers.hold.acquire(timeout=10):
            self.answers.hold.release()
        status, body = self.answers.pop(0)
        self.answers.sent += 1
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args) -> None:
        pass


@pytest.fixture
def page():
    answers = Answers()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Page, answers))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield answers, f"http://127.0.0.1:{server.server_port}/f1db-csv.zip"
    server.shutdown()
    thread.join()
    server.server_close()


def age(folder: Path, seconds: float = 2 * MAX_AGE_S) -> None:
    for file in folder.iterdir():
        os.utime(file, (time.time() - seconds,) * 2)


def test_a_release_is_downloaded_once_and_survives_every_later_failure(page, f1db_folder, tmp_path, zip_release):
    answers, url = page
    release = zip_release(f1db_folder, tmp_path / "release.zip").read_bytes()
    folder = tmp_path / "stored"
    answers += [(200, release), (504, b"<html>"), (200, b"<html>maintenance</html>"), (200, release[:-3000]),
                (200, release)]
    version = latest_release(url, folder).version
    assert latest_release(url, folder).version == version  # fresh: no second request
    for _ in range(4):
        age(folder)
        assert latest_release(url, folder).version == version
    assert answers == []
    assert [file.name for file in folder.iterdir()] == ["f1db-csv.zip"]


def test_a_server_that_failed_is_not_called_at_every_opening(page, f1db_folder, tmp_path, caplog, zip_release):
    answers, url = page
    zip_release(f1db_folder, tmp_path / "f1db-csv.zip")
    age(tmp_path)
    answers += [(503, b"")] * 2
    for timeout_s in (None, 60.0, None):
        latest_release(url, tmp_path, timeout_s)
    assert len(answers) == 1
    assert len(caplog.messages) == 3
    assert all("HTTPError" in line and "using the copy of" in line for line in caplog.messages)
    age(tmp_path)
    latest_release(url, tmp_path, 60.0)
    assert answers == []


def test_without_a_copy_a_run_retries_at_once_and_a_sensor_does_not(page, tmp_path):
    answers, url = page
    answers += [(503, b"")] * 3
    for timeout_s, left in ((60.0, 2), (60.0, 2), (None, 1), (None, 0)):
        with pytest.raises(SourceUnavailable, match=r"could not be downloaded .* \(HTTPError\)"):
            latest_release(url, tmp_path, timeout_s)
        assert len(answers) == left


def test_a_call_with_a_timeout_gets_the_stored_copy_and_the_download_continues(
        page, f1db_folder, copy, tmp_path, zip_release):
    answers, url = page
    answers.append((200, zip_release(f1db_folder, tmp_path / "new.zip").read_bytes()))
    folder = tmp_path / "stored"
    folder.mkdir()
    with (copy / "f1db-races.csv").open("a") as file:
        file.write("\n")
    zip_release(copy, folder / "f1db-csv.zip")
    age(folder)
    old, new = F1dbRelease(copy).version, F1dbRelease(f1db_folder).version

    def version() -> str:
        source = open_source("f1db", lambda: NOW, f1db_url=url, f1db_folder=folder, fastf1_cache=tmp_path,
                             timeout_s=0.2)
        return source.results([weekend("2026-monaco")]).tables["race.results"]["source_version"].iloc[0]

    with answers.hold:
        assert [version(), version()] == [old, old]
        assert not answers.sent
    for thread in threading.enumerate():
        if thread.name == "f1db download":
            thread.join(20)
    assert (version(), answers.sent) == (new, 1)


def test_a_call_with_a_timeout_and_no_copy_reports_the_download_in_progress(page, f1db_folder, tmp_path, zip_release):
    answers, url = page
    answers.append((200, zip_release(f1db_folder, tmp_path / "new.zip").read_bytes()))
    with answers.hold:
        for message in ("the download of f1db from .* takes longer than 0.2 s",
                        "a download of f1db from .* has been in progress since"):
            with pytest.raises(SourceUnavailable, match=message):
                latest_release(url, tmp_path / "stored", timeout_s=0.2)


def test_an_endless_download_is_aborted(page, tmp_path, monkeypatch):
    monkeypatch.setattr(download, "_MAX_S", 0.0)
    answers, url = page
    answers.append((200, bytes(100_000)))
    with pytest.raises(SourceUnavailable, match=r"sent 4,096 bytes in 0 s without an end; try again later"):
        latest_release(url, tmp_path)


def test_no_network_and_no_copy_is_one_sentence(tmp_path):
    with pytest.raises(SourceUnavailable, match=r"could not be downloaded .* set F1_F1DB_PATH"):
        latest_release("http://127.0.0.1:9/f1db-csv.zip", tmp_path)
