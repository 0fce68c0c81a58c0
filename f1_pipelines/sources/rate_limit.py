"""One budget of requests for all processes that ask the same servers.

FastF1 counts its calls inside a process, so six parallel partitions would spend six budgets. Here every call is booked
in a ledger on disk first: a reservation is one SQLite transaction, and the wait until its instant happens outside it.
"""
from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from f1_pipelines.sources.base import SourceUnavailable


@dataclass(frozen=True)
class Limit:
    """At most `calls` within any `per_s` seconds to hosts that end in `host` ("" is every host)."""

    host: str
    calls: int
    per_s: float = 3600.0

    def covers(self, host: str) -> bool:
        return host == self.host or host.endswith("." + self.host) or not self.host


# What FastF1 itself keeps per process; jolpica-f1 announces lower ones (see the rate limits in its documentation).
DEFAULT_LIMITS = (Limit("", 500), Limit("jolpi.ca", 200))


@dataclass(frozen=True)
class RateBudget:
    """The ledger at `path`, shared by every process that names the same file.

    Args:
        path: The ledger file; made with its folder when first needed.
        limits: Which calls are allowed.
        min_interval_s: Least time between two calls to one host [s].
        max_wait_s: A call that would have to wait longer is refused [s].
        clock: Gives the present instant as a POSIX timestamp.
        sleep: Waits that many seconds.
    """

    path: Path
    limits: tuple[Limit, ...] = DEFAULT_LIMITS
    min_interval_s: float = 0.25
    max_wait_s: float = 60.0
    clock: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep

    def acquire(self, host: str) -> None:
        """Book one call to `host` and wait for its instant.

        Raises:
            SourceUnavailable: It would have to wait longer than `max_wait_s`; nothing is booked.
        """
        with self._transaction() as ledger:
            now = self.clock()
            free_at = self._free_at(ledger, host, now)
            if free_at - now > self.max_wait_s:
                raise SourceUnavailable(
                    f"the request budget of {host} is spent (all processes share it): the next call is free at "
                    f"{datetime.fromtimestamp(free_at, UTC):%Y-%m-%d %H:%M:%S} UTC; run again then, what was fetched "
                    "is in the cache")
            ledger.execute("insert into calls values (?, ?)", (host, free_at))
        if free_at > now:
            self.sleep(free_at - now)

    def close_for(self, host: str, seconds: float) -> None:
        """Let nobody ask `host` for that long: it answered 429."""
        with self._transaction() as ledger:
            ledger.execute("insert into closed values (?, ?) on conflict (host) do update set until = max(until, "
                           "excluded.until)", (host, self.clock() + seconds))

    def _free_at(self, ledger: sqlite3.Connection, host: str, now: float) -> float:
        """The first instant at which no limit is broken by one more call to `host`."""
        ledger.execute("delete from calls where at < ?", (now - max(limit.per_s for limit in self.limits),))
        booked = ledger.execute("select host, at from calls order by at").fetchall()
        closed = ledger.execute("select until from closed where host = ?", (host,)).fetchone()
        free_at = max(now, closed[0] if closed else now)
        free_at = max([free_at, *(at + self.min_interval_s for booked_host, at in booked if booked_host == host)])
        for limit in self.limits:
            counted = [at for booked_host, at in booked if limit.covers(booked_host)]
            if limit.covers(host) and len(counted) >= limit.calls:
                free_at = max(free_at, counted[-limit.calls] + limit.per_s)
        return free_at

    def _transaction(self) -> _Transaction:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        return _Transaction(self.path)


class _Transaction:
    """An exclusive transaction on the ledger; whoever dies inside leaves it as it was."""

    def __init__(self, path: Path):
        self._db = sqlite3.connect(path, timeout=30, isolation_level=None)

    def __enter__(self) -> sqlite3.Connection:
        self._db.execute("begin immediate")
        self._db.execute("create table if not exists calls (host text, at real)")
        self._db.execute("create table if not exists closed (host text primary key, until real)")
        return self._db

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with closing(self._db):
            self._db.execute("commit" if kind is None else "rollback")
