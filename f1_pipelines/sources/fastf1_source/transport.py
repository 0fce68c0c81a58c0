"""What FastF1 sends over the network: booked in the shared budget, and its failures remembered.

FastF1 swallows almost every error while it loads a session. The adapter below sits where a request leaves the process,
so it sees what really happened: a session that lacks a part because a server was down is asked for again, one that
lacks it because the server never had it is refused. Under a replay, which answers in the adapter's stead, it is idle.
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

# jolpica-f1 counts by the hour, so a bare 429 tells to come back in minutes, not seconds.
_DEFAULT_RETRY_AFTER_S = 300.0


@dataclass
class Meter:
    """Books calls and keeps what failed since `reset`.

    By path, not by URL: an answer of FastF1's mirror makes good the failure of the main host.

    `answer_by`: For somebody in a hurry, the instant (of `time.monotonic`) after which nothing is waited for.
    """

    budget: RateBudget
    answer_by: float | None = None
    failed: dict[str, str] = field(default_factory=dict)
    denied: set[str] = field(default_factory=set)

    def reset(self) -> None:
        self.failed.clear()
        self.denied.clear()

    def raise_failures(self, wanted: str) -> None:
        """`SourceUnavailable` when a request failed that a later try may answer."""
        if self.failed:
            raise SourceUnavailable(f"{wanted}: {next(iter(self.failed.values()))} ({len(self.failed)} requests "
                                    "failed); nothing of it is stored, run it again later")

    def hint(self) -> str:
        """What may help where a server refused, else nothing."""
        if not self.denied:
            return ""
        return (f"; {', '.join(sorted(self.denied))} refused access: the timing feed may want an F1TV account, "
                "set F1_USERNAME and F1_PASSWORD")


class MeteredAdapter(BaseAdapter):
    """A requests transport around FastF1's own one."""

    def __init__(self, inner: BaseAdapter, meter: Meter):
        super().__init__()
        self.inner, self.meter = inner, meter

    def send(self, request: requests.PreparedRequest, *args: Any, **kwargs: Any) -> requests.Response:
        url = urlsplit(str(request.url))
        host, path = url.hostname or "", url.path
        try:
            if self.meter.answer_by is not None:
                if (left_s := self.meter.answer_by - time.monotonic()) <= 0:
                    raise requests.ConnectTimeout("no time left")
                kwargs["timeout"] = left_s
            self.meter.budget.acquire(host)
            response = self.inner.send(request, *args, **kwargs)
        except SourceUnavailable as spent:
            raise self._limited(path, str(spent)) from spent
        except requests.RequestException as problem:
            self.meter.failed[path] = f"{host} could not be reached ({type(problem).__name__})"
            raise
        if response.status_code == 429:
            wait_s = retry_after_s(response)
            self.meter.budget.close_for(host, wait_s)
            response.close()
            raise self._limited(path, f"{host} answered 429 (too many requests) and is left alone for {wait_s:.0f} s")
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
        # The one kind of error that FastF1 lets through while it loads.
        from fastf1.exceptions import RateLimitExceededError
        self.meter.failed[path] = reason
        return RateLimitExceededError(reason)


def retry_after_s(response: requests.Response) -> float:
    """How long the server asks to be left alone [s]: `Retry-After` in seconds or as a date."""
    header = response.headers.get("Retry-After", "").strip()
    if header.isdigit():
        return float(header)
    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - parsedate_to_datetime(
            response.headers["Date"]).timestamp())
    except (KeyError, TypeError, ValueError):
        return _DEFAULT_RETRY_AFTER_S


def meter_fastf1(meter: Meter) -> None:
    """Put the meter in front of every transport of FastF1's sessions, in place of an earlier meter."""
    from fastf1.req import Cache
    Cache._ensure_caching()  # else FastF1 makes its session with the first request, past the meter
    for session in (Cache._requests_session, Cache._requests_session_cached):
        for prefix, adapter in (session.adapters if session is not None else {}).items():
            inner = adapter.inner if isinstance(adapter, MeteredAdapter) else adapter
            session.adapters[prefix] = MeteredAdapter(inner, meter)
