"""Fetching the newest f1db release when no path is given; the last good copy survives every failure."""
from __future__ import annotations

import logging
import os
import tempfile
import threading
import time
from pathlib import Path

from f1_pipelines.sources.base import SourceError, SourceUnavailable
from f1_pipelines.sources.f1db.release import F1dbRelease

_log = logging.getLogger(__name__)

# f1db releases once per race weekend; a day-old copy is fresh enough.
MAX_AGE_S = 24 * 3600.0
# A server that failed is left alone for so long: a run opens its source at every step, a sensor at every tick.
RETRY_AFTER_S = 900.0
_TIMEOUT_S = (10.0, 60.0)
_MOST_S = 600.0  # in all, and less than RETRY_AFTER_S: no two downloads of a sensor run side by side
_MOST_BYTES = 500_000_000


def latest_release(url: str, folder: Path, timeout_s: float | None = None) -> F1dbRelease:
    """The newest release, from `folder` when the copy there is fresh, else downloaded.

    A try that failed or is under way is remembered in `folder`, and none follows too soon: there is the kept copy, or
    for those in a hurry the reason. A run without a copy tries at once, since it can't do without.

    Args:
        url: Address of `f1db-csv.zip` on the release page.
        folder: Where the zip is kept; made if it is not there.
        timeout_s: Wait no longer than this [s]: the download goes on in the background and serves who asks next.

    Raises:
        SourceUnavailable: The download failed, or takes longer, and there is no kept copy.
    """
    archive, tried = folder / "f1db-csv.zip", folder / "f1db-csv.zip.tried"
    if archive.exists() and time.time() - archive.stat().st_mtime < MAX_AGE_S:
        return F1dbRelease(archive)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        if (why := _just_tried(tried)) and (archive.exists() or timeout_s is not None):
            raise SourceUnavailable(why)
        if timeout_s is None:
            _try(url, archive, tried)
        else:
            _try_behind(url, archive, tried, timeout_s)
    except SourceError as problem:
        if not archive.exists():
            raise
        _log.warning("%s; going on with the copy of %s", problem, time.ctime(archive.stat().st_mtime))
    return F1dbRelease(archive)


def _just_tried(tried: Path) -> str | None:
    """What came of the last try, if that was just now; the thread of another tick may be done with it any moment."""
    try:
        return tried.read_text() if time.time() - tried.stat().st_mtime < RETRY_AFTER_S else None
    except FileNotFoundError:
        return None


def _try(url: str, archive: Path, tried: Path) -> None:
    """Download; `tried` is there from the beginning, says at last what went wrong, and goes if nothing did."""
    tried.write_text(f"f1db is being downloaded from {url} since {time.ctime()}")
    try:
        _download(url, archive)
    except SourceError as problem:
        tried.write_text(str(problem))
        raise
    tried.unlink(missing_ok=True)


def _try_behind(url: str, archive: Path, tried: Path, timeout_s: float) -> None:
    """The same in a thread of its own that outlives the wait."""
    problems: list[SourceError] = []

    def attempt() -> None:
        try:
            _try(url, archive, tried)
        except SourceError as problem:
            problems.append(problem)

    # A daemon: it keeps no process from ending.
    thread = threading.Thread(target=attempt, name="f1db download", daemon=True)
    thread.start()
    thread.join(timeout_s)
    if problems:
        raise problems[0]
    if thread.is_alive():
        raise SourceUnavailable(f"f1db is still being downloaded from {url}; ask again in some minutes")


def _download(url: str, target: Path) -> None:
    import requests

    until = time.monotonic() + _MOST_S
    handle, part = tempfile.mkstemp(dir=target.parent, prefix=".f1db-", suffix=".zip")
    try:
        with os.fdopen(handle, "wb") as file:
            try:
                with requests.get(url, stream=True, timeout=_TIMEOUT_S) as answer:
                    answer.raise_for_status()
                    for chunk in answer.iter_content(1 << 12):
                        file.write(chunk)
                        if file.tell() > _MOST_BYTES:
                            raise SourceError(f"{url} sends more than {_MOST_BYTES:,} bytes: no f1db release is that "
                                              "large; check F1_F1DB_URL")
                        if time.monotonic() > until:
                            raise SourceUnavailable(f"{url} sent {file.tell():,} bytes in {_MOST_S:.0f} s and no end; "
                                                    "try again later, or set F1_F1DB_PATH to a release on disk")
            except requests.RequestException as problem:
                raise SourceUnavailable(f"f1db could not be downloaded from {url} ({type(problem).__name__}); try "
                                        "again later, or set F1_F1DB_PATH to a release on disk") from problem
        F1dbRelease(part)  # refuses a truncated zip or an HTML page before it replaces the good copy
        os.replace(part, target)
    finally:
        Path(part).unlink(missing_ok=True)
