"""Download the newest f1db release if no path is set; the last good copy survives every failure."""
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
# Wait this long after a failure: a run opens its source at every step, a sensor at every tick.
RETRY_AFTER_S = 900.0
_TIMEOUT_S = (10.0, 60.0)
_MAX_S = 600.0  # in total, and less than RETRY_AFTER_S: no two downloads of a sensor run at once
_MAX_BYTES = 500_000_000


def latest_release(url: str, folder: Path, timeout_s: float | None = None) -> F1dbRelease:
    """Get the newest release: the copy in `folder` if it is fresh, else a download.

    An attempt that failed or is in progress is recorded in `folder`. Within `RETRY_AFTER_S` no other starts, but the
    stored copy is used; if there is none, a call with a timeout fails and one without tries again.

    Args:
        url: Address of `f1db-csv.zip` on the release page.
        folder: Folder of the zip; created if missing.
        timeout_s: Longest wait [s]; the download continues in the background for later calls.

    Raises:
        SourceUnavailable: The download failed or takes longer, and there is no stored copy.
    """
    archive, record = folder / "f1db-csv.zip", folder / "f1db-csv.zip.tried"
    if archive.exists() and time.time() - archive.stat().st_mtime < MAX_AGE_S:
        return F1dbRelease(archive)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        if (reason := _recent_attempt(record)) and (archive.exists() or timeout_s is not None):
            raise SourceUnavailable(reason)
        if timeout_s is None:
            _attempt(url, archive, record)
        else:
            _attempt_in_background(url, archive, record, timeout_s)
    except SourceError as problem:
        if not archive.exists():
            raise
        _log.warning("%s; using the copy of %s", problem, time.ctime(archive.stat().st_mtime))
    return F1dbRelease(archive)


def _recent_attempt(record: Path) -> str | None:
    """The state of the last attempt, if recent. A thread of another tick may delete the record at any time."""
    try:
        return record.read_text() if time.time() - record.stat().st_mtime < RETRY_AFTER_S else None
    except FileNotFoundError:
        return None


def _attempt(url: str, archive: Path, record: Path) -> None:
    """Download. The record exists meanwhile, then holds the reason of a failure; success deletes it."""
    record.write_text(f"a download of f1db from {url} has been in progress since {time.ctime()}")
    try:
        _download(url, archive)
    except SourceError as problem:
        record.write_text(str(problem))
        raise
    record.unlink(missing_ok=True)


def _attempt_in_background(url: str, archive: Path, record: Path, timeout_s: float) -> None:
    """Download in a thread that outlives the wait."""
    problems: list[SourceError] = []

    def attempt() -> None:
        try:
            _attempt(url, archive, record)
        except SourceError as problem:
            problems.append(problem)

    # A daemon thread does not keep the process alive.
    thread = threading.Thread(target=attempt, name="f1db download", daemon=True)
    thread.start()
    thread.join(timeout_s)
    if problems:
        raise problems[0]
    if thread.is_alive():
        raise SourceUnavailable(f"the download of f1db from {url} takes longer than {timeout_s:g} s; try again in a "
                                "few minutes")


def _download(url: str, target: Path) -> None:
    import requests

    deadline = time.monotonic() + _MAX_S
    handle, part = tempfile.mkstemp(dir=target.parent, prefix=".f1db-", suffix=".zip")
    try:
        with os.fdopen(handle, "wb") as file:
            try:
                with requests.get(url, stream=True, timeout=_TIMEOUT_S) as response:
                    response.raise_for_status()
                    for chunk in response.iter_content(1 << 12):
                        file.write(chunk)
                        if file.tell() > _MAX_BYTES:
                            raise SourceError(f"{url} sent more than {_MAX_BYTES:,} bytes: no f1db release is that "
                                              "large; check F1_F1DB_URL")
                        if time.monotonic() > deadline:
                            raise SourceUnavailable(f"{url} sent {file.tell():,} bytes in {_MAX_S:.0f} s without an "
                                                    "end; try again later, or set F1_F1DB_PATH to a release on disk")
            except requests.RequestException as problem:
                raise SourceUnavailable(f"f1db could not be downloaded from {url} ({type(problem).__name__}); try "
                                        "again later, or set F1_F1DB_PATH to a release on disk") from problem
        F1dbRelease(part)  # rejects a truncated zip or an HTML page before it replaces the good copy
        os.replace(part, target)
    finally:
        Path(part).unlink(missing_ok=True)
