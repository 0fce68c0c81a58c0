"""Sessions of clients that speak plain HTTP: an id, an environment, and an end when nobody asks for long."""
from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from f1_pipelines.serve.openenv.environment import F1Environment


class NoSession(LookupError):
    """There is no such session, or no longer."""


class TooManySessions(RuntimeError):
    """All sessions are taken."""


@dataclass
class Session:
    """One client's environment. Its requests are carried out one after the other."""

    id: str
    begun_s: float
    asked_s: float  # when it was asked last
    environment: F1Environment = field(default_factory=F1Environment)
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


class Sessions:
    """At most `most` sessions; each ends after `idle_s` without a request, and after `longest_s` in any case."""

    def __init__(self, most: int, idle_s: float, longest_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._idle_s, self._longest_s, self._clock = most, idle_s, longest_s, clock
        self._held: dict[str, Session] = {}

    def __len__(self) -> int:
        self.sweep()
        return len(self._held)

    def open(self) -> Session:
        """A new session.

        Raises:
            TooManySessions: All are taken.
        """
        self.sweep()
        if len(self._held) >= self._most:
            raise TooManySessions(f"all {self._most} sessions are taken; idle ones end after {self._idle_s:.0f} s.")
        now = self._clock()
        session = Session(secrets.token_urlsafe(18), now, now)
        self._held[session.id] = session
        return session

    def get(self, key: str | None) -> Session:
        """The session of that id.

        Raises:
            NoSession: There is none: never begun, closed, or ended while idle.
        """
        self.sweep()
        session = self._held.get(key or "")
        if session is None:
            raise NoSession("no such session: POST /reset begins one; send its id as X-Session-Id. Idle ones end "
                            f"after {self._idle_s:.0f} s.")
        session.asked_s = self._clock()
        return session

    def close(self, key: str | None) -> None:
        """End a session.

        Raises:
            NoSession: There is none of that id.
        """
        self._end(self.get(key))

    def sweep(self) -> None:
        """End what is idle or too old, except in the middle of a request."""
        now = self._clock()
        for session in list(self._held.values()):
            idle = now - session.asked_s > self._idle_s or now - session.begun_s > self._longest_s
            if idle and not session.turn.locked():
                self._end(session)

    def _end(self, session: Session) -> None:
        self._held.pop(session.id, None)
        session.environment.close()
