"""Fetching the newest f1db release when no path is given; the last good copy survives every failure."""
from __future__ import annotations

import logging
import os
import tempfile
import time
from pathlib import Path

from f1_pipelines.sources.base import SourceError, SourceUnavailable
from f1_pipelines.sources.f1db_release import F1dbRelease

_log = logging.getLogger(__name__)

# f1db releases once per race weekend; a day-old copy is fresh enough.
MAX_AGE_S = 24 * 3600.0
_TIMEOUT_S = (10.0, 60.0)
_MOST_BYTES = 500_000_000


def latest_release(url: str, folder: Path, max_age_s: float = MAX_AGE_S) -> F1dbRelease:
    """The newest release, from `folder` when the copy there is fresh, else downloaded.

    Args:
        url: Address of `f1db-csv.zip` on the release page.
        folder: Where the zip is kept; made if it is not there.
        max_age_s: Use a kept copy without asking while it is younger than this [s].

    Raises:
        SourceUnavailable: The download failed and there is no kept copy.
    """
    kept = folder / "f1db-csv.zip"
    if kept.exists() and time.time() - kept.stat().st_mtime < max_age_s:
        return F1dbRelease(kept)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        _download(url, kept)
    except SourceError as problem:
        if not kept.exists():
            raise
        _log.warning("%s; going on with the copy of %s", problem, time.ctime(kept.stat().st_mtime))
    return F1dbRelease(kept)


def _download(url: str, target: Path) -> None:
    import requests

    handle, part = tempfile.mkstemp(dir=target.parent, prefix=".f1db-", suffix=".zip")
    try:
        with os.fdopen(handle, "wb") as file:
            try:
                with requests.get(url, stream=True, timeout=_TIMEOUT_S) as answer:
                    answer.raise_for_status()
                    for chunk in answer.iter_content(1 << 16):
                        file.write(chunk)
                        if file.tell() > _MOST_BYTES:
                            raise SourceError(f"{url} sends more than {_MOST_BYTES:,} bytes: no f1db release is that "
                                              "large; check F1_F1DB_URL")
            except requests.RequestException as problem:
                raise SourceUnavailable(f"f1db could not be downloaded from {url} ({type(problem).__name__}); try "
                                        "again later, or set F1_F1DB_PATH to a release on disk") from problem
        F1dbRelease(part)  # refuses a truncated zip or an HTML page before it replaces the good copy
        os.replace(part, target)
    finally:
        Path(part).unlink(missing_ok=True)
