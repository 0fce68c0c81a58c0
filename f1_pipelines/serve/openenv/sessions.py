"""Sessions for plain HTTP clients: each has an id and an environment, and ends when it is idle or too old."""
from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from f1_pipelines.serve.openenv.environment import F1Environment


class NoSession(LookupError):
    """The session does not exist, or has ended."""


class TooManySessions(RuntimeError):
    """All sessions are in use."""


@dataclass
class Session:
    """One client's environment. `lock` makes its requests run one after the other."""

    id: str
    started_s: float
    last_request_s: float
    environment: F1Environment = field(default_factory=F1Environment)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Sessions:
    """At most `max_sessions` sessions; each ends after `idle_s` without a request, at the latest after `max_age_s`."""

    def __init__(self, max_sessions: int, idle_s: float, max_age_s: float,
                 clock: Callable[[], float] = time.monotonic) -> None:
        self._max_sessions, self._idle_s, self._max_age_s, self._clock = max_sessions, idle_s, max_age_s, clock
        self._sessions: dict[str, Session] = {}

    def __len__(self) -> int:
        self.sweep()
        return len(self._sessions)

    def open(self) -> Session:
        """Open a session.

        Raises:
            TooManySessions: All sessions are in use.
        """
        self.sweep()
        if len(self._sessions) >= self._max_sessions:
            raise TooManySessions(f"all {self._max_sessions} sessions are in use; idle sessions end after "
                                  f"{self._idle_s:.0f} s.")
        now_s = self._clock()
        session = Session(secrets.token_urlsafe(18), now_s, now_s)
        self._sessions[session.id] = session
        return session

    def get(self, session_id: str | None) -> Session:
        """Return the session with that id.

        Raises:
            NoSession: It does not exist, was closed, or ended.
        """
        self.sweep()
        session = self._sessions.get(session_id or "")
        if session is None:
            raise NoSession("no such session: start one with POST /reset and send its id as X-Session-Id. Idle "
                            f"sessions end after {self._idle_s:.0f} s.")
        session.last_request_s = self._clock()
        return session

    def close(self, session_id: str | None) -> None:
        """End a session.

        Raises:
            NoSession: There is no session with that id.
        """
        self._end(self.get(session_id))

    def sweep(self) -> None:
        """End sessions that are idle or too old, except during a request."""
        now_s = self._clock()
        for session in list(self._sessions.values()):
            expired = now_s - session.last_request_s > self._idle_s or now_s - session.started_s > self._max_age_s
            if expired and not session.lock.locked():
                self._end(session)

    def _end(self, session: Session) -> None:
        self._sessions.pop(session.id, None)
        session.environment.close()
