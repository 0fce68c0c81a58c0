"""Limits and headers that hold for every request."""
from __future__ import annotations

import pytest
import requests
from fastapi.responses import HTMLResponse
from starlette.testclient import TestClient
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from f1_pipelines.serve.errors import SERVER_FAULT
from f1_pipelines.serve.middleware import SECURITY_HEADERS, RequestLimits
from f1_pipelines.serve.openenv.environment import F1Environment
from f1_pipelines.serve.rate_limit import MAX_ADDRESSES, RateLimiter, TokenBucket
from f1_pipelines.serve.settings import ServeSettings

ELSEWHERE = {"Origin": "https://elsewhere.example"}


def test_security_headers_on_every_reply(url):
    for answer in (requests.get(f"{url}/health", timeout=30), requests.get(f"{url}/no-such-page", timeout=30),
                   requests.post(f"{url}/step", json={}, timeout=30), requests.post(f"{url}/reset", timeout=30)):
        assert {name: answer.headers.get(name) for name in SECURITY_HEADERS} == SECURITY_HEADERS
        assert "server" not in answer.headers


def test_pages_of_other_sites_may_not_ask(url):
    answer = requests.get(f"{url}/health", headers=ELSEWHERE, timeout=30)
    assert "access-control-allow-origin" not in answer.headers
    assert requests.post(f"{url}/reset", headers=ELSEWHERE, timeout=30).status_code == 403
    assert requests.post(f"{url}/reset", headers={"Origin": url}, timeout=30).status_code == 200
    with pytest.raises(InvalidStatus, match="403"):
        connect(url.replace("http", "ws") + "/ws", origin=ELSEWHERE["Origin"])


def test_a_site_that_is_allowed_may(serve):
    address = serve(origins=[ELSEWHERE["Origin"]])
    answer = requests.post(f"{address}/reset", headers=ELSEWHERE, timeout=30)
    assert answer.status_code == 200 and answer.headers["access-control-allow-origin"] == ELSEWHERE["Origin"]


def test_bodies_have_a_limit_whether_they_say_how_long_they_are_or_not(serve):
    address = serve(body_kib=1)
    large = b'{"family": "' + b"x" * 2000 + b'"}'
    headers = {"Content-Type": "application/json"}
    for data in (large, iter([large])):  # the second one comes in chunks
        answer = requests.post(f"{address}/reset", data=data, headers=headers, timeout=30)
        assert answer.status_code == 413 and answer.json()["detail"] == "a request has at most 1 KiB."
    assert requests.post(f"{address}/reset", json={"seed": 1}, timeout=30).status_code == 200


def test_too_many_requests(serve):
    address = serve(requests_per_s=0.01, burst=3)
    answers = [requests.get(f"{address}/health", timeout=30) for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert int(answers[-1].headers["Retry-After"]) > 1 and "too many requests" in answers[-1].json()["detail"]


def test_a_bucket_fills_again():
    bucket = TokenBucket(per_s=2.0, burst=2.0, now_s=0.0)
    assert [bucket.take(0.0) for _ in range(3)] == [0.0, 0.0, 0.5]
    assert bucket.take(0.5) == 0.0 and bucket.take(0.5) == 0.5
    assert [bucket.take(100.0) for _ in range(3)] == [0.0, 0.0, 0.5]


def test_addresses_have_a_bucket_each_and_not_without_end():
    buckets = RateLimiter(per_s=1.0, burst=1.0, clock=lambda: 0.0)
    assert [buckets.take(who) for who in ("a", "b", "a")] == [0.0, 0.0, 1.0]
    for k in range(MAX_ADDRESSES):
        buckets.take(str(k))
    assert buckets.take("a") == 0.0  # forgotten


def test_a_fault_of_ours_names_nothing(url, monkeypatch, caplog):
    def broken(*_: object, **__: object) -> None:
        raise OSError("can't read /secret/path with key abc")

    monkeypatch.setattr(F1Environment, "reset_async", broken)
    answer = requests.post(f"{url}/reset", timeout=30)
    assert answer.status_code == 500 and answer.json() == {"detail": SERVER_FAULT}
    assert {name: answer.headers.get(name) for name in SECURITY_HEADERS} == SECURITY_HEADERS
    assert "/secret/path" in caplog.text


def test_what_others_say_of_a_fault_is_withheld():
    """NiceGUI shows the words of an exception on its error page."""
    async def page(scope, receive, send):
        await HTMLResponse("OSError: can't read /secret/path", 500)(scope, receive, send)

    answer = TestClient(RequestLimits(page, ServeSettings())).get("/")
    assert answer.status_code == 500 and answer.json() == {"detail": SERVER_FAULT}
    assert {name: answer.headers.get(name) for name in SECURITY_HEADERS} == SECURITY_HEADERS
