"""The runs so far of a phase of a weekend, and what follows from them: run it, wait, give up, or leave it alone."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

MAX_ATTEMPTS = 3
# After the first failure and after the second, from the instant the failed try was asked for. A run that can't reach
# its source has asked five times within half an hour itself; what fails after that needs time, or a person.
WAITS = (timedelta(minutes=15), timedelta(hours=2))
# A run that says for that long that it is running has lost its process. Its own patience with a source ends before.
# The sensor ends one that died on its machine at its next tick (`dead_runs`); this is for those it can't judge.
LOST_AFTER = timedelta(hours=3)


Outcome = Literal["succeeded", "failed", "running"]


@dataclass(frozen=True)
class Attempt:
    """One run of a phase of a weekend. `version`: of the data it was asked for; None where a person started it."""

    run_id: str
    weekend: str
    phase: str
    version: str | None
    asked_at: datetime
    outcome: Outcome


@dataclass(frozen=True)
class PhaseStatus:
    """Where a phase of a weekend stands, and the sentence for people. A `waiting` one is tried again by itself."""

    state: Literal["done", "ready", "running", "waiting", "given_up"]
    why: str = ""


def phase_status(tries: Sequence[Attempt], version: str, stored: str | None, now: datetime) -> PhaseStatus:
    """What to do about one version of a weekend's data.

    Done is what the last success was asked for, or what is stored without a run of ours: a weekend that was loaded by
    hand or in a range. What a failed run has stored is not done: the steps after the storing are lacking.

    Args:
        tries: Runs of that phase of that weekend, the newest first.
        version: What the source tells now.
        stored: Version in the warehouse, if any.
        now: The present instant, timezone-aware.
    """
    if running := [one for one in tries if is_running(one, now)]:
        return PhaseStatus("running", f"run {short(running[0])} is on it since {_at(running[0].asked_at)}")
    success = next((at for at, one in enumerate(tries) if one.outcome == "succeeded"), len(tries))
    failed = tries[:success]
    if not failed and (stored == version or (tries and tries[0].version == version)):
        return PhaseStatus("done")
    failures = [one for one in failed if one.version in (version, None)]
    if not failures:
        return PhaseStatus("ready")
    last, count = failures[0], len(failures)
    how = "was lost (its process is gone)" if last.outcome == "running" else "failed"
    if count >= MAX_ATTEMPTS:
        return PhaseStatus("given_up", f"GIVEN UP after {count} tries, run {short(last)} {how}: mend what it says and "
                           "re-execute it; other data of this weekend are tried by themselves")
    again_at = last.asked_at + WAITS[count - 1]
    if now < again_at:
        return PhaseStatus("waiting", f"run {short(last)} {how}, try {count + 1} of {MAX_ATTEMPTS} at {_at(again_at)}")
    return PhaseStatus("ready")


def is_running(one: Attempt, now: datetime) -> bool:
    """Whether a run is really on it, as far as one can tell."""
    return one.outcome == "running" and now - one.asked_at < LOST_AFTER


def short(one: Attempt) -> str:
    """A run id as Dagster's pages show it."""
    return one.run_id[:8]


def _at(instant: datetime) -> str:
    return f"{instant:%Y-%m-%d %H:%M} UTC"
