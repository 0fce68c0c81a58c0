"""The boundary to FastF1: everything that calls it to load a session, and nothing that judges what came.

FastF1's `load` never says that a part is missing: it warns and leaves a hole. So a hole is an explicit None here.
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
_configured: str | None = None  # the cache folder that we gave FastF1 in this process


class NotComplete(Exception):
    """A session of which a part is missing. The message names it. `retry`: it may come soon after the session."""

    def __init__(self, reason: str, retry: bool = True):
        super().__init__(reason)
        self.retry = retry


@dataclass(frozen=True)
class Loaded:
    """One session as FastF1 loaded it; what it could not load is None.

    `entries` is FastF1's results frame by car number (the driver list, with the official sheet where there is one),
    `status` the words of SessionStatus in order, `type` the live timing's own Practice, Qualifying or Race, `distance`
    the scheduled laps of a race.
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
    """Give FastF1 its cache folder, unless it has one already from somebody else (a replay, a notebook)."""
    global _configured
    from fastf1.req import Cache
    if cache_dir is None or Cache._CACHE_DIR not in (None, _configured) or str(cache_dir) == Cache._CACHE_DIR:
        return
    cache_dir.mkdir(parents=True, exist_ok=True)
    Cache.configure(cache_dir=str(cache_dir))
    _configured = str(cache_dir)


def load_schedule(season: int) -> EventSchedule:
    """FastF1's schedule of a season, without tests."""
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
        meter: Knows which requests failed.
        fresh: Pass over cached answers, which for a recent session may be from before it was complete.

    Raises:
        SourceUnavailable: A server could not be asked; nothing is known about the session.
        NotComplete: FastF1 gave up on it.
    """
    import requests
    from fastf1.exceptions import RateLimitExceededError
    what = f"{event.year} {event.EventName} {name}"
    meter.reset()
    with _boundary(what), _uncached() if fresh else nullcontext():
        try:
            session = event.get_session(name)
            session.load(laps=True, telemetry=False, weather=True, messages=True)
        except (RateLimitExceededError, requests.RequestException):
            raise
        except (SystemExit, Exception) as problem:  # its cache wrapper ends the process when an answer holds nothing
            meter.raise_failures(what)
            raise NotComplete(f"FastF1 gave up on it ({type(problem).__name__}: {problem}){meter.hint()}") from problem
    meter.raise_failures(what)
    return _loaded(session)


def ask(question: Callable[[], _Answer], what: str, meter: Meter, fresh: bool) -> _Answer:
    """The answer of jolpica to a question put through FastF1's client.

    Raises:
        SourceUnavailable: It could not be asked, or answered with an error.
        NotComplete: It has no such answer.
    """
    import requests
    meter.reset()
    with _boundary(what), _uncached() if fresh else nullcontext():
        try:
            return question()
        except requests.RequestException as problem:
            meter.raise_failures(what)
            # Only a replay gets here: what was not recorded is not there.
            raise NotComplete(f"the {what} is not to be had ({type(problem).__name__})") from problem


def forget_session(event: Event, name: str) -> None:
    """Delete what FastF1 parsed of a session: its pickles never expire, and it came too early."""
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
def _boundary(what: str) -> Iterator[None]:
    """FastF1's noise becomes one line of ours, its limit and the network's errors become `SourceUnavailable`."""
    import requests
    from fastf1.exceptions import RateLimitExceededError
    collector = _Collector()
    logger = logging.getLogger("fastf1")
    before = logger.handlers, logger.propagate
    logger.handlers, logger.propagate = [collector], False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # pandas' advice to FastF1 is nothing that we can follow
            yield
    except RateLimitExceededError as problem:
        raise SourceUnavailable(f"{what}: rate limit: {problem}") from problem
    except requests.RequestException as problem:
        raise SourceUnavailable(f"{what}: the network failed ({type(problem).__name__}); run again later") from problem
    finally:
        logger.handlers, logger.propagate = before
        if collector.messages:
            _LOG.info("%s: FastF1 warned %d times: %s", what, len(collector.messages),
                      "; ".join(dict.fromkeys(collector.messages)))


class _Collector(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage().splitlines()[0])
