"""What the sources said when they were last asked, so that no tick asks again too soon. Losing it costs a question."""
from __future__ import annotations

import json
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from f1_pipelines.sources.base import SourceError
from f1_pipelines.sources.updates import SourceUpdate

SOON, LATER = timedelta(minutes=5), timedelta(hours=1)


@dataclass
class SensorCursor:
    """The sensor's cursor. Nothing is decided by it alone: what ran is in Dagster's run records."""

    calendar_asked_at: datetime | None = None
    updates: dict[str, tuple[datetime, SourceUpdate]] = field(default_factory=dict)
    outage: str | None = None

    @staticmethod
    def of(cursor: str | None) -> SensorCursor:
        """The memory in a cursor; an empty one where there is none, or one that can't be read."""
        try:
            stored = json.loads(cursor or "{}")
            asked_at = stored.get("calendar_asked_at")
            return SensorCursor(datetime.fromisoformat(asked_at) if asked_at else None,
                                {name: (datetime.fromisoformat(at), SourceUpdate(version, lacks))
                                 for name, (at, version, lacks) in stored.get("updates", {}).items()})
        except (ValueError, TypeError, AttributeError):
            return SensorCursor()

    def cursor(self) -> str:
        """As Dagster keeps it."""
        return json.dumps({
            "calendar_asked_at": self.calendar_asked_at and self.calendar_asked_at.isoformat(),
            "updates": {name: (at.isoformat(), news.version, news.lacks) for name, (at, news) in self.updates.items()}})

    def news(self, name: str, now: datetime, urgent: bool, ask: Callable[[], SourceUpdate]) -> SourceUpdate:
        """What is known under this name, asked anew where that is old.

        Args:
            name: Weekend and phase.
            now: The present instant, timezone-aware.
            urgent: Something may come any moment: ask every few minutes, not every hour.
            ask: Puts the question to the source. After one that it could not answer, none is put in this tick.
        """
        at, known = self.updates.get(name, (None, SourceUpdate(None, "not asked yet")))
        # Either way round: an instant in the future is one of a clock that has been set back.
        if self.outage or (at and abs(now - at) < (SOON if urgent and known.version is None else LATER)):
            return known
        try:
            self.updates[name] = now, ask()
        except SourceError as problem:
            self.outage = str(problem)
            return known
        return self.updates[name][1]

    def calendar_is_old(self, now: datetime) -> bool:
        """Whether it is time to ask for the calendar."""
        return self.calendar_asked_at is None or abs(now - self.calendar_asked_at) >= LATER

    def forget_all_but(self, names: Collection[str]) -> None:
        """Drop what is no longer looked at."""
        self.updates = {name: updates for name, updates in self.updates.items() if name in names}
