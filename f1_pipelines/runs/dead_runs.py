"""Runs whose processes are gone: what they are, what they hold, and how they are ended.

A run that was killed (kill -9, a restart, no memory) goes on for Dagster: its pool slots stay taken and its backfill
waits, for hours. Its process is known by host, id and start (`run_host`), so a run on another machine or in another
container is never ended from here, nor one of which nobody knows where it is.
"""
from __future__ import annotations

import os
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from f1_pipelines.runs.home import existing_home
from f1_pipelines.runs.host import Host, RunProcess
from f1_pipelines.runs.processes import may_be

if TYPE_CHECKING:
    from dagster import DagsterInstance, DagsterRun, RunRecord

# Dagster's daemon fails what has not started after 5 minutes (dagster.yaml); without one nobody does.
NEVER_STARTED_AFTER = timedelta(minutes=10)
# On such a file system other machines may be at work on the same run storage.
_NETWORK_FILE_SYSTEMS = ("nfs", "cifs", "smb", "fuse.sshfs", "lustre", "ceph", "fuse.ceph", "fuse.gluster", "glusterfs",
                         "gpfs", "afs", "beegfs", "9p", "virtiofs")
END = "`f1 doctor --free-pools`"

State = Literal["alive", "dead", "never started", "ended", "unknown", "elsewhere"]


@dataclass(frozen=True)
class RunState:
    """A run that says it is under way, or one that holds a slot of a pool.

    Attributes:
        run_id: Of the run.
        what: Its job, or the assets that it materializes.
        status: As Dagster has it, in words.
        since: When it started, or was made.
        state: "alive" on this machine; "dead": its processes are gone; "never started"; "ended" but holding slots;
            "unknown": nobody recorded where it is; "elsewhere": on another machine or in another container.
        host: Where, as recorded.
        pools: That it holds slots of.
    """

    run_id: str
    what: str
    status: str
    since: datetime
    state: State
    host: str = ""
    pools: tuple[str, ...] = ()

    @property
    def lost(self) -> bool:
        """Whether it is to be ended, or its slots freed."""
        return self.state in ("dead", "never started", "ended")

    def __str__(self) -> str:
        held = f" and holds pool {', '.join(self.pools)}" if self.pools else ""
        why = {
            "alive": "is at work",
            "dead": "has lost its process",
            "never started": "never started",
            "ended": "is over",
            "unknown": f"may be on any machine; if its process is gone there, {END[:-1]} --run {self.run_id}` ends it",
            "elsewhere": f"is on {self.host}, where f1 doctor can tell whether it lives; if that is gone for good, "
                         f"{END[:-1]} --run {self.run_id}` ends it",
        }[self.state]
        return f"run {self.run_id[:8]} ({self.what}, {self.status} since {self.since:%Y-%m-%d %H:%M} UTC) {why}{held}"


def run_states(instance: DagsterInstance, guess_host: bool = True) -> list[RunState]:
    """All runs that say they are under way, and those that hold pool slots.

    Args:
        instance: Of Dagster.
        guess_host: Take a run without a recorded host for one of this machine, where no other can have written to the
            run storage.
    """
    from dagster import DagsterRunStatus, RunsFilter

    held, states = _held_pools(instance), {}
    under_way = [DagsterRunStatus.NOT_STARTED, DagsterRunStatus.STARTING, DagsterRunStatus.STARTED,
                 DagsterRunStatus.CANCELING]
    guess = guess_host and _is_this_machines(instance)
    records = instance.get_run_records(RunsFilter(statuses=under_way))
    ids = {record.dagster_run.run_id for record in records}
    if others := [run_id for run_id in held if run_id not in ids]:
        records = [*records, *instance.get_run_records(RunsFilter(run_ids=others))]
    for record in records:
        run = record.dagster_run
        since = datetime.fromtimestamp(record.start_time, UTC) if record.start_time else record.create_timestamp
        state, host = _state_of(instance, record, since, guess)
        states[run.run_id] = RunState(run.run_id, _subject(run), run.status.value, since, state, host,
                                      held.get(run.run_id, ()))
    for run_id in held.keys() - states.keys():  # its record was deleted
        states[run_id] = RunState(run_id, "deleted", "DELETED", datetime.now(UTC), "ended", "", held[run_id])
    return [state for state in states.values() if state.status != "QUEUED"]


def end_lost_runs(instance: DagsterInstance, guess_host: bool = True) -> list[RunState]:
    """End the runs that are lost, free the pool slots that they hold, and say which.

    Args:
        instance: Of Dagster.
        guess_host: See `run_states`; what runs by itself does not guess.
    """
    # A run that has not started may be about to: where nobody watches, that is left to Dagster's daemon.
    return [state for state in run_states(instance, guess_host)
            if state.lost and (guess_host or state.state != "never started") and _end(instance, state)]


def free_pool_slots(run_id: str | None = None) -> str:
    """End lost runs and free their pool slots.

    Args:
        run_id: End this run instead, wherever it is, unless its process is at work on this machine.

    Returns:
        What was done, in one sentence.

    Raises:
        RuntimeError: There is no home to look in, or no such run, or it is at work here.
    """
    from dagster import DagsterInstance

    if not os.environ.get("DAGSTER_HOME"):
        raise RuntimeError("DAGSTER_HOME is not set, so there are no pools to free; `make free-pools` sets it")
    with DagsterInstance.from_config(existing_home()) as instance:
        ended = end_lost_runs(instance) if run_id is None else [_end_by_hand(instance, run_id)]
    return f"{len(ended)} runs without a process ended, their pool slots freed" + "".join(
        f"; {state}" for state in ended)


def find_lost_runs() -> str:
    """What `f1 doctor` says of runs.

    Raises:
        RuntimeError: Some are lost; the message names each and the command that ends them.
    """
    from dagster import DagsterInstance, DagsterRunStatus, RunsFilter

    home = os.environ.get("DAGSTER_HOME", "")
    if not home or not (Path(home) / "dagster.yaml").exists():
        return "none recorded without a Dagster home"
    with DagsterInstance.from_config(home) as instance:
        states = run_states(instance)
        waiting = {"queued runs": instance.get_runs_count(RunsFilter(statuses=[DagsterRunStatus.QUEUED])),
                   "backfills under way": _backfills_under_way(instance)}
    notes = [str(state) for state in states] + [
        f"{what}: {count} (`make dev` goes on with them)" for what, count in waiting.items() if count]
    lost = [state for state in states if state.lost]
    if lost:
        raise RuntimeError(f"{'; '.join(notes)}; {END} ends what is lost and frees its pools")
    return "; ".join(notes) or "none under way"


def _state_of(instance: DagsterInstance, record: RunRecord, since: datetime, guess: bool) -> tuple[State, str]:
    from dagster import DagsterRunStatus

    run, here = record.dagster_run, Host.here()
    process, pids = RunProcess.of(run), _reported_pids(instance, record.dagster_run.run_id)
    place = process.host.seen_from(here) if process else "here" if guess else None
    host = process.host.name if process else ""
    lives = place in ("here", None) and ((process and process.lives()) or any(
        may_be(pid, at) for pid, at in pids.items() if process is None or pid != process.pid))
    if run.is_finished:  # a step's process may outlive its run, and have the GPU
        return ("alive" if lives else "elsewhere" if place == "elsewhere" else "ended"), host
    if process is None and not pids:
        if run.status in (DagsterRunStatus.STARTING, DagsterRunStatus.NOT_STARTED):
            return ("never started" if datetime.now(UTC) - since > NEVER_STARTED_AFTER else "alive"), host
        return "unknown", host
    if place is None:
        return "unknown", host
    if place == "elsewhere":
        return "elsewhere", host
    return ("alive" if lives else "dead"), host


def _reported_pids(instance: DagsterInstance, run_id: str) -> dict[int, float]:
    """Process ids that a run's events name, and when one last did [s since the epoch]."""
    from dagster import DagsterEventType

    named = {}
    for entry in instance.all_logs(run_id, of_type={DagsterEventType.ENGINE_EVENT,
                                                    DagsterEventType.STEP_WORKER_STARTED}):
        metadata = entry.dagster_event.engine_event_data.metadata if entry.dagster_event else {}
        if "pid" in metadata:
            named[int(str(metadata["pid"].value))] = entry.timestamp
    return named


def _held_pools(instance: DagsterInstance) -> dict[str, tuple[str, ...]]:
    """Pools by the runs that hold a slot of them, or wait for one."""
    storage = instance.event_log_storage
    held: dict[str, tuple[str, ...]] = {}
    if not storage.supports_global_concurrency_limits:
        return {}
    for pool in sorted(storage.get_concurrency_keys()):
        information = storage.get_concurrency_info(pool)
        for run_id in {slot.run_id for slot in information.claimed_slots} | information.assigned_run_ids:
            held[run_id] = (*held.get(run_id, ()), pool)
    return held


def _end(instance: DagsterInstance, state: RunState) -> bool:
    """End a run, if it has not ended by itself since it was looked at."""
    run = instance.get_run_by_id(state.run_id)
    if run is not None and run.is_finished != (state.state == "ended"):
        return False
    if run is not None and not run.is_finished:
        instance.report_run_canceled(run, message=f"{state} (f1 doctor)")
    instance.event_log_storage.free_concurrency_slots_for_run(state.run_id)
    return True


def _end_by_hand(instance: DagsterInstance, run_id: str) -> RunState:
    known = {state.run_id: state for state in run_states(instance)}
    if run_id not in known:
        raise RuntimeError(f"{run_id} is no run that is under way or holds a pool; `f1 doctor` names those by their id")
    state = known[run_id]
    if state.state == "alive":
        raise RuntimeError(f"{state} on this machine; stop it in the UI, or end its process")
    state = replace(state, state="ended" if state.state == "ended" else "dead")
    _end(instance, state)
    return state


def _is_this_machines(instance: DagsterInstance) -> bool:
    """Whether runs can only have been recorded from this machine: the run storage is a file on a disk of its own."""
    import psutil

    if instance.is_ephemeral:
        return True
    storage = instance.get_ref().run_storage_data
    if storage is None or storage.class_name != "SqliteRunStorage":
        return False
    folder = Path(storage.config_dict["base_dir"]).resolve()
    on = [disk for disk in psutil.disk_partitions(all=True) if folder.is_relative_to(disk.mountpoint)]
    kind = max(on, key=lambda disk: len(disk.mountpoint)).fstype if on else ""
    return not kind.startswith(_NETWORK_FILE_SYSTEMS)


def _backfills_under_way(instance: DagsterInstance) -> int:
    from dagster._core.execution.backfill import BulkActionsFilter, BulkActionStatus

    return len(instance.get_backfills(BulkActionsFilter(statuses=[BulkActionStatus.REQUESTED])))


def _subject(run: DagsterRun) -> str:
    assets = sorted(key.to_user_string() for key in run.asset_selection or ())
    shown = ", ".join(assets[:3]) + (f" and {len(assets) - 3} more" if len(assets) > 3 else "")
    return shown or run.job_name
