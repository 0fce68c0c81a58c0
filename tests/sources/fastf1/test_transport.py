"""Failing servers, simulated on loopback: none of their answers is taken for data."""
import json
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import requests

from f1_pipelines.identity.weekends import weekend
from f1_pipelines.sources.base import SourceUnavailable
from f1_pipelines.sources.fastf1_source.transport import retry_after_s

pytestmark = pytest.mark.xdist_group("fastf1-1")
SCHEDULE = "https://raw.githubusercontent.com/theOehrly/f1schedule/master/schedule_{}.json"
EMPTY_SHEET = (b'{"MRData": {"limit": "30", "offset": "0", "total": "0", "RaceTable": {"season": "2023", '
               b'"round": "1", "Races": []}}}')


@contextmanager
def loopback(answers):
    """A server that gives `answers[part of the path]` as (status, headers, body), else 404, and its requested paths."""
    paths = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            paths.append(self.path)
            status, headers, body = next((answer for part, answer in answers.items() if part in self.path),
                                         (404, {}, b""))
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", paths
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


POINT_FASTF1_AT = """
import fastf1.events, fastf1._api, fastf1.ergast.interface
fastf1.events._SCHEDULE_BASE_URL = f"{url}/schedule/"
fastf1._api.base_url = fastf1._api.base_url_mirror = f"{url}/timing"
fastf1.ergast.interface.BASE_URL = f"{url}/ergast"
"""


@pytest.fixture
def fastf1_at(fastf1_restored, monkeypatch):
    """Point all of FastF1's servers at one URL."""
    import fastf1._api
    import fastf1.ergast.interface
    import fastf1.events
    for module, name in ((fastf1.events, "_SCHEDULE_BASE_URL"), (fastf1._api, "base_url"),
                         (fastf1._api, "base_url_mirror"), (fastf1.ergast.interface, "BASE_URL")):
        monkeypatch.setattr(module, name, getattr(module, name))
    return lambda url: exec(POINT_FASTF1_AT, {"url": url})


@pytest.fixture(scope="module")
def recorded_schedule(replay_tool):
    adapter = replay_tool.ReplayAdapter()
    return lambda season: adapter.send(requests.Request("GET", SCHEDULE.format(season)).prepare())


@pytest.fixture(scope="module")
def schedule_2023(recorded_schedule):
    return 200, {}, recorded_schedule(2023).content


@pytest.fixture
def source(source_at, tmp_path):
    return source_at(cache_dir=tmp_path / "cache", min_interval_s=0.0)


@pytest.mark.parametrize(("status", "headers", "reason"), [
    (429, {"Retry-After": "77"}, "answered 429 .* blocked for 77 s"),
    (504, {"Content-Type": "text/html"}, "504|Gateway"), (500, {}, "500|Server Error")])
def test_an_error_of_jolpica_is_no_empty_sheet(fastf1_at, source, schedule_2023, status, headers, reason):
    with loopback({"schedule_2023": schedule_2023, "/ergast/": (status, headers, b"<html>")}) as (url, paths):
        fastf1_at(url)
        with pytest.raises(SourceUnavailable, match=reason):
            source.results([weekend("2023-bahrain")])
        if status == 429:  # no request before the wait is over
            before = len(paths)
            with pytest.raises(SourceUnavailable, match="is spent"):
                source.results([weekend("2023-bahrain")])
            assert len(paths) == before


@pytest.mark.parametrize("status", [429, 503])
def test_an_outage_of_the_timing_is_not_taken_for_a_missing_feed(fastf1_at, source, schedule_2023, status):
    with loopback({"schedule_2023": schedule_2023, "/timing/": (status, {}, b""),
                   "/ergast/": (200, {}, EMPTY_SHEET)}) as (url, _):
        fastf1_at(url)
        with pytest.raises(SourceUnavailable, match=str(status)):
            source.laps([weekend("2023-bahrain")])


@pytest.mark.parametrize(("status", "hint"), [(403, True), (404, False)])
def test_a_session_without_timing_is_refused(fastf1_at, source, schedule_2023, status, hint, monkeypatch):
    monkeypatch.setenv("F1_PASSWORD", "secret password")
    with loopback({"schedule_2023": schedule_2023, "/timing/": (status, {}, b""),
                   "/ergast/": (200, {}, EMPTY_SHEET)}) as (url, _):
        fastf1_at(url)
        [refusal] = source.laps([weekend("2023-bahrain")]).refused
    assert "TimingData missing" in refusal.reason
    assert ("F1_USERNAME and F1_PASSWORD" in refusal.reason) == hint
    assert "secret password" not in refusal.reason


def test_a_sheet_that_is_not_out_is_requested_again(fastf1_at, source_at, tmp_path, schedule_2023):
    """FastF1 caches an answer for twelve hours; an empty one of race day must not hide the official one."""
    source = source_at(now=datetime(2023, 3, 5, 20, tzinfo=UTC), cache_dir=tmp_path / "cache", min_interval_s=0.0)
    with loopback({"schedule_2023": schedule_2023, "/ergast/": (200, {}, EMPTY_SHEET)}) as (url, paths):
        fastf1_at(url)
        for _ in range(2):
            [refusal] = source.results([weekend("2023-bahrain")]).refused
            assert "not out yet" in refusal.reason
            assert refusal.retry
        assert sum("results" in path for path in paths) == 2
        assert sum("schedule" in path for path in paths) == 1


def test_sessions_moved_overnight_are_read_from_the_next_schedule(fastf1_at, source, recorded_schedule):
    """2024 São Paulo, published on Saturday at 22:16 UTC: qualifying moves from that day to Sunday morning, the race is
    90 minutes earlier. FastF1 caches a schedule as long as its server says, which is five minutes."""
    answer = recorded_schedule(2024)
    assert answer.headers["Cache-Control"] == "max-age=300"
    before = answer.json()
    [at] = [row for row, name in before["event_name"].items() if name == "São Paulo Grand Prix"]
    before["session4_date"][at], before["session5_date"][at] = "2024-11-02T15:00:00", "2024-11-03T14:00:00"

    def starts():
        row = source.calendar([2024]).set_index("weekend").loc["2024-sao-paulo"]
        return f"{row['qualifying_start']:%a %H:%M}", f"{row['race_start']:%a %H:%M}"

    answers = {"schedule_2024": (200, {"Cache-Control": "max-age=1"}, json.dumps(before).encode())}
    with loopback(answers) as (url, _):
        fastf1_at(url)
        assert starts() == ("Sat 18:00", "Sun 17:00")
        answers["schedule_2024"] = (200, {"Cache-Control": "max-age=300"}, answer.content)
        time.sleep(1.1)
        assert starts() == ("Sun 10:30", "Sun 15:30")


def test_no_network_is_an_outage(fastf1_at, source):
    fastf1_at("http://127.0.0.1:9")
    with pytest.raises(SourceUnavailable, match="schedule of 2023"):
        source.results([weekend("2023-bahrain")])


def test_no_network_after_the_schedule_is_an_outage(fastf1_at, source, schedule_2023):
    with loopback({"schedule_2023": schedule_2023}) as (url, _):
        fastf1_at(url)
        source.calendar([2023])
    with pytest.raises(SourceUnavailable, match=r"could not be reached \(ConnectionError\)"):
        source.laps([weekend("2023-bahrain")])


def test_processes_that_meet_a_429_stop_together(schedule_2023, tmp_path):
    code = """
import sys
from datetime import UTC, datetime
from pathlib import Path
url = sys.argv[1]
""" + POINT_FASTF1_AT + """
from f1_pipelines.identity.weekends import season_weekends
from f1_pipelines.sources.base import SourceUnavailable
from f1_pipelines.sources.fastf1_source import FastF1Source
from f1_pipelines.sources.rate_limit import RateBudget
budget = RateBudget(Path(sys.argv[2]) / "requests.sqlite", max_wait_s=2)
source = FastF1Source(Path(sys.argv[2]) / sys.argv[3], lambda: datetime(2026, 11, 29, tzinfo=UTC), budget)
for weekend in season_weekends(2023)[:3]:
    try:
        print(source.results([weekend]))
    except SourceUnavailable as reason:
        print("unavailable")
"""
    with loopback({"schedule_2023": schedule_2023, "/ergast/": (429, {"Retry-After": "3600"}, b"")}) as (url, paths):
        processes = [subprocess.Popen([sys.executable, "-c", code, url, str(tmp_path), name], stdout=subprocess.PIPE,
                                      text=True) for name in ("one", "two")]
        outcomes = [process.communicate(timeout=120)[0].split() for process in processes]
    assert outcomes == [["unavailable"] * 3] * 2
    assert sum("ergast" in path for path in paths) <= 2  # at most one call in progress per process


def test_retry_after():
    def wait_s(**headers):
        response = requests.Response()
        response.headers.update({name.replace("_", "-"): value for name, value in headers.items()})
        return retry_after_s(response)

    assert wait_s(Retry_After="12") == 12
    assert wait_s(Retry_After="Sun, 05 Mar 2023 15:01:30 GMT", Date="Sun, 05 Mar 2023 15:00:00 GMT") == 90
    assert wait_s() == wait_s(Retry_After="soon") == 300


def test_a_timeout_ends_the_wait_for_a_silent_server(fastf1_at, tmp_path):
    """A sensor's tick must end even if a server hangs."""
    from f1_pipelines.sources.fastf1_source import FastF1Source

    with socket.create_server(("127.0.0.1", 0)) as silent:
        fastf1_at(f"http://127.0.0.1:{silent.getsockname()[1]}")
        source = FastF1Source(tmp_path / "cache", lambda: datetime(2023, 3, 5, 20, tzinfo=UTC), timeout_s=0.5)
        with pytest.raises(SourceUnavailable):
            source.news(weekend("2023-bahrain"), "post_race")


def test_an_update_requests_one_sheet_and_no_timing(fastf1_at, source_at, tmp_path, schedule_2023):
    source = source_at(now=datetime(2023, 3, 5, 20, tzinfo=UTC), cache_dir=tmp_path / "cache", min_interval_s=0.0)
    with loopback({"schedule_2023": schedule_2023, "/ergast/": (200, {}, EMPTY_SHEET)}) as (url, paths):
        fastf1_at(url)
        update = source.news(weekend("2023-bahrain"), "post_race")
        assert update.version is None and "not out yet" in update.lacks
        assert [("results" in path, "timing" in path) for path in paths if "schedule" not in path] == [(True, False)]
