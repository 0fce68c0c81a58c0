"""Cached answers of the sources, so that no tick asks again too soon. Losing them costs one request each."""
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
    """The sensor's cursor. It is only a cache: past runs are in Dagster's run records."""

    calendar_fetched_at: datetime | None = None
    updates: dict[str, tuple[datetime, SourceUpdate]] = field(default_factory=dict)
    outage: str | None = None

    @staticmethod
    def of(cursor: str | None) -> SensorCursor:
        """Parse a Dagster cursor; an absent or unreadable one gives an empty cursor."""
        try:
            stored = json.loads(cursor or "{}")
            fetched_at = stored.get("calendar_asked_at")
            return SensorCursor(datetime.fromisoformat(fetched_at) if fetched_at else None,
                                {name: (datetime.fromisoformat(at), SourceUpdate(version, lacks))
                                 for name, (at, version, lacks) in stored.get("updates", {}).items()})
        except (ValueError, TypeError, AttributeError):
            return SensorCursor()

    def to_json(self) -> str:
        """Serialize for Dagster."""
        return json.dumps({
            "calendar_asked_at": self.calendar_fetched_at and self.calendar_fetched_at.isoformat(),
            "updates": {name: (fetched_at.isoformat(), update.version, update.lacks)
                        for name, (fetched_at, update) in self.updates.items()}})

    def latest_update(self, name: str, now: datetime, urgent: bool,
                      fetch: Callable[[], SourceUpdate]) -> SourceUpdate:
        """Get the cached update of this name, and fetch a new one if it is too old.

        Args:
            name: Weekend and phase.
            now: Current time, timezone-aware.
            urgent: The update may come any moment: fetch every few minutes, not every hour.
            fetch: Asks the source. After a failure, nothing more is fetched in this tick.
        """
        fetched_at, cached = self.updates.get(name, (None, SourceUpdate(None, "not asked yet")))
        # abs: a time in the future means that the clock was set back.
        max_age = SOON if urgent and cached.version is None else LATER
        if self.outage or (fetched_at and abs(now - fetched_at) < max_age):
            return cached
        try:
            self.updates[name] = now, fetch()
        except SourceError as problem:
            self.outage = str(problem)
            return cached
        return self.updates[name][1]

    def calendar_is_old(self, now: datetime) -> bool:
        """Whether to fetch the calendar again."""
        return self.calendar_fetched_at is None or abs(now - self.calendar_fetched_at) >= LATER

    def forget_all_but(self, names: Collection[str]) -> None:
        """Drop the updates of all other names."""
        self.updates = {name: update for name, update in self.updates.items() if name in names}
