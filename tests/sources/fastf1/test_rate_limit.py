"""One request budget for all processes."""
import subprocess
import sys

import pytest

from f1_pipelines.sources.base import SourceUnavailable
from f1_pipelines.sources.rate_limit import Limit, RateBudget


class Clock:
    """Time that passes only in `sleep`."""

    def __init__(self):
        self.now = 1_000_000.0

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def budget(tmp_path, clock):
    def make(**options):
        return RateBudget(tmp_path / "new folder" / "requests.sqlite", clock=clock, sleep=clock.sleep, **options)
    return make


def test_calls_to_one_host_keep_their_distance(budget, clock):
    shared = budget(min_interval_s=0.25)
    start = clock.now
    for _ in range(5):
        shared.acquire("api.jolpi.ca")
    assert clock.now == start + 4 * 0.25
    shared.acquire("raw.githubusercontent.com")
    assert clock.now == start + 4 * 0.25


def test_the_window_slides(budget, clock):
    shared = budget(limits=(Limit("", 3, per_s=60),), min_interval_s=10)
    start = clock.now
    for _ in range(4):
        shared.acquire("a")
    assert clock.now == start + 60


def test_a_host_has_a_limit_of_its_own_and_counts_for_all(budget):
    shared = budget(limits=(Limit("", 4), Limit("jolpi.ca", 2)), min_interval_s=0)
    shared.acquire("api.jolpi.ca")
    shared.acquire("jolpi.ca")
    with pytest.raises(SourceUnavailable, match=r"budget of api.jolpi.ca is spent .* free at 1970-01-12 14:46:40 UTC"):
        shared.acquire("api.jolpi.ca")
    shared.acquire("notjolpi.ca")
    shared.acquire("livetiming.formula1.com")
    with pytest.raises(SourceUnavailable):
        shared.acquire("livetiming.formula1.com")


def test_a_refused_call_is_not_booked(budget, clock):
    shared = budget(limits=(Limit("", 1, per_s=100),), max_wait_s=10)
    shared.acquire("a")
    for _ in range(3):
        with pytest.raises(SourceUnavailable):
            shared.acquire("a")
    clock.sleep(95)
    shared.acquire("a")
    assert clock.now == 1_000_100.0


def test_a_blocked_host_is_not_called(budget, clock):
    shared = budget(max_wait_s=10)
    shared.close_for("a", 100)
    shared.close_for("a", 20)  # does not shorten the block
    with pytest.raises(SourceUnavailable):
        shared.acquire("a")
    shared.acquire("b")
    clock.sleep(95)
    shared.acquire("a")


def test_processes_share_one_budget(tmp_path):
    """Three processes try six calls each; five calls are allowed in total."""
    code = """
import sys
from pathlib import Path
from f1_pipelines.sources.base import SourceUnavailable
from f1_pipelines.sources.rate_limit import Limit, RateBudget
budget = RateBudget(Path(sys.argv[1]), limits=(Limit("", 5, per_s=3600),), min_interval_s=0.01, max_wait_s=5)
for _ in range(6):
    try:
        budget.acquire("api.jolpi.ca")
        print("allowed")
    except SourceUnavailable:
        print("refused")
"""
    command = [sys.executable, "-c", code, str(tmp_path / "requests.sqlite")]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    outcomes = "".join(process.communicate(timeout=60)[0] for process in processes).split()
    assert (outcomes.count("allowed"), outcomes.count("refused")) == (5, 13)
