"""The boundary to FastF1: calls that load schedules and sessions. `validation` judges what they return.

FastF1's `load` does not fail if a part is missing, it only warns. A missing part is an explicit None here.
"""
from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pandas as pd

from f1_pipelines.sources.base import SourceUnavailable
from f1_pipelines.sources.fastf1_source.transport import Meter

if TYPE_CHECKING:
    from fastf1.core import Session
    from fastf1.events import Event, EventSchedule

_Answer = TypeVar("_Answer")
_LOG = logging.getLogger(__name__)
_configured: str | None = None  # the cache folder that this process set in FastF1


class NotComplete(Exception):
    """A part of a session is missing; the message names it. `retry`: it may appear soon after the session."""

    def __init__(self, reason: str, retry: bool = True):
        super().__init__(reason)
        self.retry = retry


@dataclass(frozen=True)
class Loaded:
    """One session as FastF1 loaded it; a part that it could not load is None.

    `entries` is FastF1's results frame by car number (the driver list, with the official sheet if there is one),
    `status` the values of SessionStatus in order, `type` the live timing's Practice, Qualifying or Race, `distance` the
    scheduled laps of a race.
    """

    entries: pd.DataFrame
    laps: pd.DataFrame | None = None
    status: tuple[str, ...] | None = None
    track_status: pd.DataFrame | None = None
    weather: pd.DataFrame | None = None
    messages: pd.DataFrame | None = None
    type: str | None = None
    distance: int | None = None

    def timed_laps(self) -> pd.DataFrame:
        """The laps.

        Raises:
            NotComplete: FastF1 loaded the session without them.
        """
        if self.laps is None:
            raise NotComplete("TimingData missing: FastF1 loaded the session without laps; FASTF1_DEBUG=1 shows why")
        return self.laps


def configure_cache(cache_dir: Path | None) -> None:
    """Set FastF1's cache folder, unless other code (a replay, a notebook) has set one."""
    global _configured
    from fastf1.req import Cache
    if cache_dir is None or Cache._CACHE_DIR not in (None, _configured) or str(cache_dir) == Cache._CACHE_DIR:
        return
    cache_dir.mkdir(parents=True, exist_ok=True)
    Cache.configure(cache_dir=str(cache_dir))
    _configured = str(cache_dir)


def load_schedule(season: int) -> EventSchedule:
    """Load FastF1's schedule of a season, without tests."""
    import fastf1
    with _boundary(f"schedule of {season}"):
        try:
            return fastf1.get_event_schedule(season, include_testing=False)
        except ValueError as problem:
            raise SourceUnavailable(f"schedule of {season}: FastF1 got none from any of its three servers ({problem}); "
                                    "check the network and run again, the stored calendar stays") from problem


def load_session(event: Event, name: str, meter: Meter, fresh: bool) -> Loaded:
    """Load a session without telemetry.

    Args:
        event: FastF1's event.
        name: FastF1's full session name.
        meter: Records which requests failed.
        fresh: Ignore cached answers, which for a recent session may be from before it was complete.

    Raises:
        SourceUnavailable: A server could not be reached; nothing is known about the session.
        NotComplete: FastF1 could not load the session.
    """
    import requests
    from fastf1.exceptions import RateLimitExceededError
    label = f"{event.year} {event.EventName} {name}"
    meter.reset()
    with _boundary(label), _uncached() if fresh else nullcontext():
        try:
            session = event.get_session(name)
            session.load(laps=True, telemetry=False, weather=True, messages=True)
        except (RateLimitExceededError, requests.RequestException):
            raise
        except (SystemExit, Exception) as problem:  # its cache wrapper exits the process on an empty answer
            meter.raise_failures(label)
            raise NotComplete(f"FastF1 could not load it ({type(problem).__name__}: {problem}){meter.hint()}"
                              ) from problem
    meter.raise_failures(label)
    return _loaded(session)


def query_jolpica(query: Callable[[], _Answer], label: str, meter: Meter, fresh: bool) -> _Answer:
    """Run a query of jolpica through FastF1's client.

    Raises:
        SourceUnavailable: Jolpica could not be reached, or answered with an error.
        NotComplete: There is no answer.
    """
    import requests
    meter.reset()
    with _boundary(label), _uncached() if fresh else nullcontext():
        try:
            return query()
        except requests.RequestException as problem:
            meter.raise_failures(label)
            # Only in a replay: the answer was not recorded.
            raise NotComplete(f"the {label} is not available ({type(problem).__name__})") from problem


def forget_session(event: Event, name: str) -> None:
    """Delete FastF1's pickles of a session that was loaded too early: they never expire."""
    from fastf1.req import Cache
    path = getattr(event.get_session(name), "api_path", None)
    if Cache._CACHE_DIR and path:
        for pickle in (Path(Cache._CACHE_DIR) / path.removeprefix("/static/")).glob("*.ff1pkl"):
            pickle.unlink(missing_ok=True)


def _loaded(session: Session) -> Loaded:
    laps, status = _part(session, "laps"), _part(session, "session_status")
    return Loaded(
        entries=pd.DataFrame(_part(session, "results")), laps=None if laps is None else pd.DataFrame(laps),
        status=None if status is None else tuple(status["Status"]), track_status=_part(session, "track_status"),
        weather=_part(session, "weather_data"), messages=_part(session, "race_control_messages"),
        type=(_part(session, "session_info") or {}).get("Type"), distance=_part(session, "total_laps"))


def _part(session: Session, name: str) -> Any:
    from fastf1.exceptions import DataNotLoadedError
    try:
        return getattr(session, name)
    except DataNotLoadedError:
        return None


def _uncached() -> Any:
    from fastf1.req import Cache
    return Cache.disabled(disable_func_cache=False)


@contextmanager
def _boundary(label: str) -> Iterator[None]:
    """Log FastF1's warnings as one line, and turn its rate limit and network errors into `SourceUnavailable`."""
    import requests
    from fastf1.exceptions import RateLimitExceededError
    collector = _Collector()
    logger = logging.getLogger("fastf1")
    before = logger.handlers, logger.propagate
    logger.handlers, logger.propagate = [collector], False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # pandas' warnings about FastF1's code
            yield
    except RateLimitExceededError as problem:
        raise SourceUnavailable(f"{label}: rate limit: {problem}") from problem
    except requests.RequestException as problem:
        raise SourceUnavailable(f"{label}: the network failed ({type(problem).__name__}); run again later") from problem
    finally:
        logger.handlers, logger.propagate = before
        if collector.messages:
            _LOG.info("%s: FastF1 warned %d times: %s", label, len(collector.messages),
                      "; ".join(dict.fromkeys(collector.messages)))


class _Collector(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage().splitlines()[0])
