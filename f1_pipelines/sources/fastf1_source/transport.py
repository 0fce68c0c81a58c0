"""Transport of FastF1's requests: each is booked in the shared budget, and failures are recorded.

FastF1 swallows almost every error while it loads a session. The adapter below sees each request as it leaves the
process: a session that lacks a part because a server was down is retried, one that lacks it because the server does not
have it is refused. A replay answers in place of the adapter, which is then unused.
"""
from __future__ import annotations

import time
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

import requests
from requests.adapters import BaseAdapter

from f1_pipelines.sources.base import SourceUnavailable
from f1_pipelines.sources.rate_limit import RateBudget

# jolpica-f1 counts by the hour, so after a 429 without Retry-After wait minutes, not seconds.
_DEFAULT_RETRY_AFTER_S = 300.0


@dataclass
class Meter:
    """Books calls and records which failed since `reset`.

    Failures are recorded by path, not by URL: an answer of FastF1's mirror cancels the failure of the main host.

    `deadline`: The time (of `time.monotonic`) after which no request is sent or waited for.
    """

    budget: RateBudget
    deadline: float | None = None
    failed: dict[str, str] = field(default_factory=dict)
    denied: set[str] = field(default_factory=set)

    def reset(self) -> None:
        self.failed.clear()
        self.denied.clear()

    def raise_failures(self, label: str) -> None:
        """Raise `SourceUnavailable` if a request failed that a retry may answer."""
        if self.failed:
            raise SourceUnavailable(f"{label}: {next(iter(self.failed.values()))} ({len(self.failed)} requests "
                                    "failed); nothing of it is stored, run again later")

    def hint(self) -> str:
        """What to do if a server refused access, else empty."""
        if not self.denied:
            return ""
        return (f"; {', '.join(sorted(self.denied))} refused access: the timing feed may need an F1TV account, "
                "set F1_USERNAME and F1_PASSWORD")


class MeteredAdapter(BaseAdapter):
    """A requests adapter around FastF1's own."""

    def __init__(self, inner: BaseAdapter, meter: Meter):
        super().__init__()
        self.inner, self.meter = inner, meter

    def send(self, request: requests.PreparedRequest, *args: Any, **kwargs: Any) -> requests.Response:
        url = urlsplit(str(request.url))
        host, path = url.hostname or "", url.path
        try:
            if self.meter.deadline is not None:
                if (left_s := self.meter.deadline - time.monotonic()) <= 0:
                    raise requests.ConnectTimeout("no time left")
                kwargs["timeout"] = left_s
            self.meter.budget.acquire(host)
            response = self.inner.send(request, *args, **kwargs)
        except SourceUnavailable as problem:
            raise self._limited(path, str(problem)) from problem
        except requests.RequestException as problem:
            self.meter.failed[path] = f"{host} could not be reached ({type(problem).__name__})"
            raise
        if response.status_code == 429:
            wait_s = retry_after_s(response)
            self.meter.budget.close_for(host, wait_s)
            response.close()
            raise self._limited(path, f"{host} answered 429 (too many requests); its calls are blocked for "
                                f"{wait_s:.0f} s")
        if response.status_code >= 500:
            self.meter.failed[path] = f"{host} answered {response.status_code}"
        elif response.status_code in (401, 403):
            self.meter.denied.add(host)
        elif response.ok:
            self.meter.failed.pop(path, None)
        return response

    def close(self) -> None:
        self.inner.close()

    def _limited(self, path: str, reason: str) -> Exception:
        # The only error that FastF1 does not swallow while it loads.
        from fastf1.exceptions import RateLimitExceededError
        self.meter.failed[path] = reason
        return RateLimitExceededError(reason)


def retry_after_s(response: requests.Response) -> float:
    """The wait that the server asks for [s]: `Retry-After` in seconds or as a date."""
    header = response.headers.get("Retry-After", "").strip()
    if header.isdigit():
        return float(header)
    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - parsedate_to_datetime(
            response.headers["Date"]).timestamp())
    except (KeyError, TypeError, ValueError):
        return _DEFAULT_RETRY_AFTER_S


def meter_fastf1(meter: Meter) -> None:
    """Put the meter in front of every adapter of FastF1's sessions, in place of an earlier meter."""
    from fastf1.req import Cache
    Cache._ensure_caching()  # else FastF1 creates its session at the first request, without the meter
    for session in (Cache._requests_session, Cache._requests_session_cached):
        for prefix, adapter in (session.adapters if session is not None else {}).items():
            inner = adapter.inner if isinstance(adapter, MeteredAdapter) else adapter
            session.adapters[prefix] = MeteredAdapter(inner, meter)
