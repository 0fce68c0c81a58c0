"""Limits and security headers of all requests."""
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
    for reply in (requests.get(f"{url}/health", timeout=30), requests.get(f"{url}/no-such-page", timeout=30),
                   requests.post(f"{url}/step", json={}, timeout=30), requests.post(f"{url}/reset", timeout=30)):
        assert {name: reply.headers.get(name) for name in SECURITY_HEADERS} == SECURITY_HEADERS
        assert "server" not in reply.headers


def test_requests_from_pages_of_other_sites_are_refused(url):
    reply = requests.get(f"{url}/health", headers=ELSEWHERE, timeout=30)
    assert "access-control-allow-origin" not in reply.headers
    assert requests.post(f"{url}/reset", headers=ELSEWHERE, timeout=30).status_code == 403
    assert requests.post(f"{url}/reset", headers={"Origin": url}, timeout=30).status_code == 200
    with pytest.raises(InvalidStatus, match="403"):
        connect(url.replace("http", "ws") + "/ws", origin=ELSEWHERE["Origin"])


def test_requests_from_an_allowed_origin_are_accepted(serve):
    address = serve(origins=[ELSEWHERE["Origin"]])
    reply = requests.post(f"{address}/reset", headers=ELSEWHERE, timeout=30)
    assert reply.status_code == 200 and reply.headers["access-control-allow-origin"] == ELSEWHERE["Origin"]


def test_large_bodies_are_refused_with_and_without_content_length(serve):
    address = serve(body_kib=1)
    large = b'{"family": "' + b"x" * 2000 + b'"}'
    headers = {"Content-Type": "application/json"}
    for data in (large, iter([large])):  # the second is sent in chunks
        reply = requests.post(f"{address}/reset", data=data, headers=headers, timeout=30)
        assert reply.status_code == 413
        assert reply.json()["detail"] == "the request is too large; at most 1 KiB are allowed."
    assert requests.post(f"{address}/reset", json={"seed": 1}, timeout=30).status_code == 200


def test_too_many_requests(serve):
    address = serve(requests_per_s=0.01, burst=3)
    replies = [requests.get(f"{address}/health", timeout=30) for _ in range(4)]
    assert [reply.status_code for reply in replies] == [200, 200, 200, 429]
    assert int(replies[-1].headers["Retry-After"]) > 1 and "too many requests" in replies[-1].json()["detail"]


def test_a_token_bucket_refills():
    bucket = TokenBucket(per_s=2.0, burst=2.0, now_s=0.0)
    assert [bucket.take(0.0) for _ in range(3)] == [0.0, 0.0, 0.5]
    assert bucket.take(0.5) == 0.0 and bucket.take(0.5) == 0.5
    assert [bucket.take(100.0) for _ in range(3)] == [0.0, 0.0, 0.5]


def test_each_address_has_a_bucket_and_the_number_of_addresses_is_bounded():
    limiter = RateLimiter(per_s=1.0, burst=1.0, clock=lambda: 0.0)
    assert [limiter.take(address) for address in ("a", "b", "a")] == [0.0, 0.0, 1.0]
    for k in range(MAX_ADDRESSES):
        limiter.take(str(k))
    assert limiter.take("a") == 0.0  # its old bucket was dropped


def test_an_internal_error_is_logged_and_reveals_nothing(url, monkeypatch, caplog):
    def broken(*_: object, **__: object) -> None:
        raise OSError("can't read /secret/path with key abc")

    monkeypatch.setattr(F1Environment, "reset_async", broken)
    reply = requests.post(f"{url}/reset", timeout=30)
    assert reply.status_code == 500 and reply.json() == {"detail": SERVER_FAULT}
    assert {name: reply.headers.get(name) for name in SECURITY_HEADERS} == SECURITY_HEADERS
    assert "/secret/path" in caplog.text


def test_error_pages_of_other_middleware_are_replaced():
    """NiceGUI's error page contains the message of the exception."""
    async def page(scope, receive, send):
        await HTMLResponse("OSError: can't read /secret/path", 500)(scope, receive, send)

    reply = TestClient(RequestLimits(page, ServeSettings())).get("/")
    assert reply.status_code == 500 and reply.json() == {"detail": SERVER_FAULT}
    assert {name: reply.headers.get(name) for name in SECURITY_HEADERS} == SECURITY_HEADERS
