"""Past runs of a weekend's phase, and its resulting status: ready, running, waiting, given up or done."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

MAX_ATTEMPTS = 3
# Delays after the first and second failure, from the time the failed run was requested. A run tries an unreachable
# source five times within half an hour itself; a later failure needs time or an operator.
WAITS = (timedelta(minutes=15), timedelta(hours=2))
# A run listed as running for longer has lost its process; its retries of a source end before. The sensor ends runs that
# died on its own machine at its next tick (`dead_runs`); this limit is for the others.
LOST_AFTER = timedelta(hours=3)

Outcome = Literal["succeeded", "failed", "running"]


@dataclass(frozen=True)
class Attempt:
    """One run of a weekend's phase. `version` is that of the requested data; None for a manual run."""

    run_id: str
    weekend: str
    phase: str
    version: str | None
    requested_at: datetime
    outcome: Outcome


@dataclass(frozen=True)
class PhaseStatus:
    """State of a weekend's phase, and why, as text for people. `waiting` means that it is retried automatically."""

    state: Literal["done", "ready", "running", "waiting", "given_up"]
    why: str = ""


def phase_status(attempts: Sequence[Attempt], version: str, stored: str | None, now: datetime) -> PhaseStatus:
    """Get the status of a weekend's phase for one version of its data.

    It is done if the last success was for this version, or if this version is stored without a run of these jobs
    (loaded by hand or in a range). Data stored by a failed run are not done: the later steps are missing.

    Args:
        attempts: Runs of the phase of this weekend, newest first.
        version: Version that the source has now.
        stored: Version in the warehouse, if any.
        now: Current time, timezone-aware.
    """
    if running := [attempt for attempt in attempts if is_running(attempt, now)]:
        return PhaseStatus("running", f"run {short_id(running[0])} is running since {_utc(running[0].requested_at)}")
    success = next((at for at, attempt in enumerate(attempts) if attempt.outcome == "succeeded"), len(attempts))
    failed = attempts[:success]
    if not failed and (stored == version or (attempts and attempts[0].version == version)):
        return PhaseStatus("done")
    failures = [attempt for attempt in failed if attempt.version in (version, None)]
    if not failures:
        return PhaseStatus("ready")
    last, count = failures[0], len(failures)
    how = "was lost (its process is gone)" if last.outcome == "running" else "failed"
    if count >= MAX_ATTEMPTS:
        return PhaseStatus("given_up", f"GIVEN UP after {count} attempts, run {short_id(last)} {how}: fix its error "
                           "and re-execute it; other versions of this weekend's data are still tried")
    retry_at = last.requested_at + WAITS[count - 1]
    if now < retry_at:
        return PhaseStatus("waiting", f"run {short_id(last)} {how}, attempt {count + 1} of {MAX_ATTEMPTS} at "
                                      f"{_utc(retry_at)}")
    return PhaseStatus("ready")


def is_running(attempt: Attempt, now: datetime) -> bool:
    """Whether a run is still running, judged by its age."""
    return attempt.outcome == "running" and now - attempt.requested_at < LOST_AFTER


def short_id(attempt: Attempt) -> str:
    """The run id as Dagster's pages show it."""
    return attempt.run_id[:8]


def _utc(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M} UTC"
