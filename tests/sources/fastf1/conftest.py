"""FastF1 answers from the recordings in `shared/`, without the network."""
import sys
from datetime import UTC, datetime

import pytest

from f1_pipelines.sources.fastf1_source import FastF1Source, loading
from f1_pipelines.sources.rate_limit import RateBudget

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)


@pytest.fixture(scope="session")
def source_at(tmp_path_factory):
    """Make a source at a given time, by default with the cache that a replay configured in FastF1."""
    def make(now=NOW, cache_dir=None, **budget):
        ledger = tmp_path_factory.mktemp("budget") / "requests.sqlite"
        return FastF1Source(cache_dir, lambda: now, RateBudget(ledger, **budget))

    return make


@pytest.fixture(scope="module")
def replay_tool(shared, shared_data):
    shared_data("fastf1-http")
    sys.path.insert(0, str(shared / "tools"))
    yield pytest.importorskip("fastf1_replay")
    sys.path.remove(str(shared / "tools"))


@pytest.fixture(scope="module")
def replay(replay_tool, tmp_path_factory):
    with replay_tool.install(tmp_path_factory.mktemp("fastf1")) as installed:
        yield installed


@pytest.fixture(scope="module")
def source(replay, source_at):
    return source_at()


@pytest.fixture
def fastf1_restored(monkeypatch):
    """For tests without a replay: undo what they configure in FastF1."""
    from fastf1.req import Cache
    for name in ("_CACHE_DIR", "_requests_session_cached"):
        monkeypatch.setattr(Cache, name, None)
    sessions = type(Cache._requests_session)
    monkeypatch.setattr(Cache, "_requests_session", sessions())
    monkeypatch.setattr(sessions, "_RATE_LIMITS", {})  # else 0.25 s per request to loopback
    monkeypatch.setattr(loading, "_configured", None)
