"""The race data source and the clock as Dagster resources."""
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
from pydantic import Field

from f1_pipelines.sources.base import RaceDataSource
from f1_pipelines.sources.factory import open_source


class Clock(dg.ConfigurableResource[None]):
    """The current time; tests and replays set it."""

    fixed: str | None = Field(default=None, description="Fixed ISO time with offset; empty: real time.")

    def now(self) -> datetime:
        if self.fixed is None:
            return datetime.now(UTC)
        instant = datetime.fromisoformat(self.fixed)
        if instant.tzinfo is None:
            raise ValueError(f"clock {self.fixed!r} has no offset; wanted for example 2026-07-19T15:00:00+00:00")
        return instant.astimezone(UTC)


class RaceData(dg.ConfigurableResource[None]):
    """The source of race weekends."""

    source: str = Field(description="sample, f1db or fastf1.")
    f1db_path: str | None = Field(default=None,
                                  description="Folder or zip of an f1db CSV release; downloaded if empty.")
    calendar: str | None = Field(default=None, description="File of the refreshed calendar; optional.")
    laps_archive: str | None = Field(default=None, description="Folder of real laps, which f1db lacks; optional.")
    f1db_url: str = Field(default="", description="URL of the newest release's CSV zip.")
    f1db_folder: str = Field(description="Folder of the downloaded release.")
    fastf1_cache: str = Field(description="FastF1's cache folder.")

    def open(self, clock: Clock, timeout_s: float | None = None) -> RaceDataSource:
        """Open the source. `timeout_s` limits all its requests together [s]; None sets no limit."""
        return open_source(
            self.source, clock.now, f1db_path=Path(self.f1db_path) if self.f1db_path else None, f1db_url=self.f1db_url,
            f1db_folder=Path(self.f1db_folder), laps_archive=Path(self.laps_archive) if self.laps_archive else None,
            calendar_path=Path(self.calendar) if self.calendar else None,
            fastf1_cache=Path(self.fastf1_cache), timeout_s=timeout_s)
