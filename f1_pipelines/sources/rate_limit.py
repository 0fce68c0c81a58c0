"""One request budget for all processes that call the same servers.

FastF1 counts its calls per process, so six parallel partitions would spend six budgets. Here every call is first booked
in a ledger on disk: a booking is one SQLite transaction, and the wait for its time happens outside it.
"""
from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from f1_pipelines.sources.base import SourceUnavailable


@dataclass(frozen=True)
class Limit:
    """At most `calls` within any `per_s` seconds to `host` and its subdomains ("" covers every host)."""

    host: str
    calls: int
    per_s: float = 3600.0

    def covers(self, host: str) -> bool:
        return host == self.host or host.endswith("." + self.host) or not self.host


# FastF1's own limits per process; jolpica-f1 documents lower ones.
DEFAULT_LIMITS = (Limit("", 500), Limit("jolpi.ca", 200))


@dataclass(frozen=True)
class RateBudget:
    """A request budget, shared by all processes that use the same `path`.

    Args:
        path: The ledger file; created with its folder on first use.
        limits: All must hold.
        min_interval_s: Minimum time between two calls to one host [s].
        max_wait_s: A call that would wait longer is refused [s].
        clock: Returns the current time as a POSIX timestamp.
        sleep: Waits for the given number of seconds.
    """

    path: Path
    limits: tuple[Limit, ...] = DEFAULT_LIMITS
    min_interval_s: float = 0.25
    max_wait_s: float = 60.0
    clock: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep

    def acquire(self, host: str) -> None:
        """Book one call to `host` and wait for its time.

        Raises:
            SourceUnavailable: The wait would be longer than `max_wait_s`; nothing is booked.
        """
        with self._transaction() as ledger:
            now = self.clock()
            free_at = self._free_at(ledger, host, now)
            if free_at - now > self.max_wait_s:
                raise SourceUnavailable(
                    f"the request budget of {host} is spent (all processes share it): the next call is free at "
                    f"{datetime.fromtimestamp(free_at, UTC):%Y-%m-%d %H:%M:%S} UTC; run again then, fetched data are "
                    "in the cache")
            ledger.execute("insert into calls values (?, ?)", (host, free_at))
        if free_at > now:
            self.sleep(free_at - now)

    def close_for(self, host: str, seconds: float) -> None:
        """Block calls to `host` for a time, after it answered 429."""
        with self._transaction() as ledger:
            ledger.execute("insert into closed values (?, ?) on conflict (host) do update set until = max(until, "
                           "excluded.until)", (host, self.clock() + seconds))

    def _free_at(self, ledger: sqlite3.Connection, host: str, now: float) -> float:
        """The earliest time at which another call to `host` breaks no limit."""
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

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Open an exclusive transaction on the ledger. An error in it closes the connection, which rolls it back."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(self.path, timeout=30, isolation_level=None)) as ledger:
            ledger.execute("begin immediate")
            ledger.execute("create table if not exists calls (host text, at real)")
            ledger.execute("create table if not exists closed (host text primary key, until real)")
            yield ledger
            ledger.execute("commit")
