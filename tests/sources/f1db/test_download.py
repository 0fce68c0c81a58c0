"""The newest release is fetched once, kept, and never waited for by who is in a hurry."""
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
    """What a page is going to answer: (status, bytes). It waits for `held` before each, though not for ever."""

    def __init__(self):
        super().__init__()
        self.held, self.sent = threading.Lock(), 0


class Page(BaseHTTPRequestHandler):
    """A release page that answers with `status` and the bytes of a file."""

    def __init__(self, answers: Answers, *args):
        self.answers = answers
        super().__init__(*args)

    def do_GET(self) -> None:
        if self.answers.held.acquire(timeout=10):
            self.answers.held.release()
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


def test_a_release_is_downloaded_once_and_survives_every_later_failure(page, f1db_folder, tmp_path, zipped):
    answers, url = page
    whole = zipped(f1db_folder, tmp_path / "whole.zip").read_bytes()
    folder = tmp_path / "kept"
    answers += [(200, whole), (504, b"<html>"), (200, b"<html>maintenance</html>"), (200, whole[:-3000]), (200, whole)]
    version = latest_release(url, folder).version
    assert latest_release(url, folder).version == version  # fresh: not asked again
    for _ in range(4):
        age(folder)
        assert latest_release(url, folder).version == version
    assert answers == []
    assert [file.name for file in folder.iterdir()] == ["f1db-csv.zip"]


def test_a_server_that_failed_is_not_asked_at_every_opening(page, f1db_folder, tmp_path, caplog, zipped):
    answers, url = page
    zipped(f1db_folder, tmp_path / "f1db-csv.zip")
    age(tmp_path)
    answers += [(503, b"")] * 2
    for timeout_s in (None, 60.0, None):
        latest_release(url, tmp_path, timeout_s)
    assert len(answers) == 1
    assert len(caplog.messages) == 3
    assert all("HTTPError" in line and "going on with the copy of" in line for line in caplog.messages)
    age(tmp_path)
    latest_release(url, tmp_path, 60.0)
    assert answers == []


def test_without_a_copy_a_run_asks_again_at_once_and_a_sensor_does_not(page, tmp_path):
    answers, url = page
    answers += [(503, b"")] * 3
    for timeout_s, left in ((60.0, 2), (60.0, 2), (None, 1), (None, 0)):
        with pytest.raises(SourceUnavailable, match=r"could not be downloaded .* \(HTTPError\)"):
            latest_release(url, tmp_path, timeout_s)
        assert len(answers) == left


def test_who_is_in_a_hurry_gets_the_kept_copy_and_the_download_goes_on_behind(
        page, f1db_folder, copy, tmp_path, zipped):
    answers, url = page
    answers.append((200, zipped(f1db_folder, tmp_path / "new.zip").read_bytes()))
    kept = tmp_path / "kept"
    kept.mkdir()
    with (copy / "f1db-races.csv").open("a") as file:
        file.write("\n")
    zipped(copy, kept / "f1db-csv.zip")
    age(kept)
    old, new = F1dbRelease(copy).version, F1dbRelease(f1db_folder).version

    def version() -> str:
        source = open_source("f1db", lambda: NOW, f1db_url=url, f1db_folder=kept, fastf1_cache=tmp_path, timeout_s=0.2)
        return source.results([weekend("2026-monaco")]).tables["race.results"]["source_version"].iloc[0]

    with answers.held:
        assert [version(), version()] == [old, old]
        assert not answers.sent
    for thread in threading.enumerate():
        if thread.name == "f1db download":
            thread.join(20)
    assert (version(), answers.sent) == (new, 1)


def test_who_is_in_a_hurry_without_a_copy_is_told_that_it_is_under_way(page, f1db_folder, tmp_path, zipped):
    answers, url = page
    answers.append((200, zipped(f1db_folder, tmp_path / "new.zip").read_bytes()))
    with answers.held:
        for told in ("is still being downloaded", "is being downloaded from .* since"):
            with pytest.raises(SourceUnavailable, match=told):
                latest_release(url, tmp_path / "kept", timeout_s=0.2)


def test_a_download_that_goes_on_for_ever_is_given_up(page, tmp_path, monkeypatch):
    monkeypatch.setattr(download, "_MOST_S", 0.0)
    answers, url = page
    answers.append((200, bytes(100_000)))
    with pytest.raises(SourceUnavailable, match=r"sent 4,096 bytes in 0 s and no end; try again later"):
        latest_release(url, tmp_path)


def test_without_network_and_without_a_copy_one_sentence_says_so(tmp_path):
    with pytest.raises(SourceUnavailable, match=r"could not be downloaded .* set F1_F1DB_PATH"):
        latest_release("http://127.0.0.1:9/f1db-csv.zip", tmp_path)
