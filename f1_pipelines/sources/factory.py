"""Open the source that the settings name."""
from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from f1_pipelines.sources.base import RaceDataSource, SourceError

NAMES = ("sample", "f1db", "fastf1")


def open_source(name: str, now: Callable[[], datetime], *, f1db_path: Path | None = None, f1db_url: str = "",
                f1db_folder: Path, laps_archive: Path | None = None, fastf1_cache: Path,
                calendar_path: Path | None = None, timeout_s: float | None = None) -> RaceDataSource:
    """Open a source by name. Its modules are imported only here, so that definitions load without FastF1.

    Args:
        name: One of `NAMES`.
        now: Returns the current time, timezone-aware.
        f1db_path: Folder or zip of a release; None downloads the newest one from `f1db_url` into `f1db_folder`.
        f1db_url: Address of the newest release's CSV zip.
        f1db_folder: Folder of a downloaded release.
        laps_archive: Folder of real laps for f1db, which has none.
        fastf1_cache: FastF1's cache folder.
        calendar_path: The refreshed calendar, if any; the sample always uses the embedded one.
        timeout_s: Time limit of all requests together [s], for a sensor. A download of f1db continues in the
            background.
    """
    if name == "sample":
        from f1_pipelines.sources.sample import SampleSource

        return SampleSource(now)
    if name == "f1db":
        from f1_pipelines.sources.f1db.download import latest_release
        from f1_pipelines.sources.f1db.release import F1dbRelease
        from f1_pipelines.sources.f1db.source import F1dbSource
        from f1_pipelines.sources.laps_archive import LapsArchive

        release = F1dbRelease(f1db_path) if f1db_path else latest_release(f1db_url, f1db_folder, timeout_s)
        return F1dbSource(release, now, LapsArchive(laps_archive, now) if laps_archive else None, calendar_path)
    if name == "fastf1":
        from f1_pipelines.sources.fastf1_source import FastF1Source

        return FastF1Source(cache_dir=fastf1_cache, now=now, calendar_path=calendar_path, timeout_s=timeout_s)
    raise SourceError(f"{name!r} is no source; set F1_SOURCE to one of {', '.join(NAMES)}")
