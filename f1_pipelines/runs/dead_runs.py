"""Find and end runs whose processes died, and free what they hold.

Dagster still counts a killed run (kill -9, a restart, out of memory) as running: for hours its pool slots stay taken
and its backfill waits. Each run records its process as host, id and start time (`runs.host`), so a run on another
machine, in another container or at an unknown place is never ended automatically.
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

# Dagster's daemon fails runs that have not started after 5 minutes (dagster.yaml); this is for homes without a daemon.
NEVER_STARTED_AFTER = timedelta(minutes=10)
# On these file systems other machines may use the same run storage.
_NETWORK_FILE_SYSTEMS = ("nfs", "cifs", "smb", "fuse.sshfs", "lustre", "ceph", "fuse.ceph", "fuse.gluster", "glusterfs",
                         "gpfs", "afs", "beegfs", "9p", "virtiofs")
END = "`f1 doctor --free-pools`"

State = Literal["alive", "dead", "never started", "ended", "unknown", "elsewhere"]


@dataclass(frozen=True)
class RunState:
    """A run that is unfinished by its record, or holds a pool slot.

    Attributes:
        run_id: Id of the run.
        subject: Its job, or the assets that it materializes.
        status: Dagster's status of the run.
        since: When it started, or was created.
        state: "alive" on this machine; "dead": its processes are gone; "never started"; "ended" but holding slots;
            "unknown": its machine was not recorded; "elsewhere": on another machine or in another container.
        host: Name of the recorded machine.
        pools: Pools in which it holds slots.
    """

    run_id: str
    subject: str
    status: str
    since: datetime
    state: State
    host: str = ""
    pools: tuple[str, ...] = ()

    @property
    def lost(self) -> bool:
        """Whether the run should be ended, or its slots freed."""
        return self.state in ("dead", "never started", "ended")

    def __str__(self) -> str:
        held = f" and holds pool {', '.join(self.pools)}" if self.pools else ""
        description = {
            "alive": "is running",
            "dead": "has lost its process",
            "never started": "never started",
            "ended": "has ended",
            "unknown": "may be on any machine; if its process died there, end it with "
                       f"{END[:-1]} --run {self.run_id}`",
            "elsewhere": f"is on {self.host}; run f1 doctor there to see whether it is alive, or, if that machine is "
                         f"gone for good, end it with {END[:-1]} --run {self.run_id}`",
        }[self.state]
        return (f"run {self.run_id[:8]} ({self.subject}, {self.status} since {self.since:%Y-%m-%d %H:%M} UTC) "
                f"{description}{held}")


def run_states(instance: DagsterInstance, guess_host: bool = True) -> list[RunState]:
    """The states of all unfinished runs, and of those that hold pool slots.

    Args:
        instance: The Dagster instance.
        guess_host: Assume that a run without a recorded host is on this machine, if no other machine can write to the
            run storage.
    """
    from dagster import DagsterRunStatus, RunsFilter

    held, states = _held_pools(instance), {}
    unfinished = [DagsterRunStatus.NOT_STARTED, DagsterRunStatus.STARTING, DagsterRunStatus.STARTED,
                  DagsterRunStatus.CANCELING]
    guess = guess_host and _is_this_machines(instance)
    records = instance.get_run_records(RunsFilter(statuses=unfinished))
    ids = {record.dagster_run.run_id for record in records}
    if finished := [run_id for run_id in held if run_id not in ids]:
        records = [*records, *instance.get_run_records(RunsFilter(run_ids=finished))]
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
    """End lost runs and free their pool slots. Return their states.

    Args:
        instance: The Dagster instance.
        guess_host: As for `run_states`; False in automation.
    """
    # A run that has not started may be about to: automation leaves it to Dagster's daemon.
    return [state for state in run_states(instance, guess_host)
            if state.lost and (guess_host or state.state != "never started") and _end(instance, state)]


def free_pool_slots(run_id: str | None = None) -> str:
    """End lost runs and free their pool slots.

    Args:
        run_id: End only this run, on whatever machine it is, unless its process is alive on this machine.

    Returns:
        A sentence about the ended runs.

    Raises:
        RuntimeError: DAGSTER_HOME is missing or invalid, there is no such run, or it is running here.
    """
    from dagster import DagsterInstance

    if not os.environ.get("DAGSTER_HOME"):
        raise RuntimeError("DAGSTER_HOME is not set, so there are no pools to free; `make free-pools` sets it")
    with DagsterInstance.from_config(existing_home()) as instance:
        ended = end_lost_runs(instance) if run_id is None else [_end_by_hand(instance, run_id)]
    return f"{len(ended)} runs without a process ended, their pool slots freed" + "".join(
        f"; {state}" for state in ended)


def find_lost_runs() -> str:
    """Describe the unfinished runs, queued runs and backfills for `f1 doctor`.

    Raises:
        RuntimeError: Runs are lost; the message names each and the command to end them.
    """
    from dagster import DagsterInstance, DagsterRunStatus, RunsFilter

    home = os.environ.get("DAGSTER_HOME", "")
    if not home or not (Path(home) / "dagster.yaml").exists():
        return "not recorded without a Dagster home"
    with DagsterInstance.from_config(home) as instance:
        states = run_states(instance)
        waiting = {"queued runs": instance.get_runs_count(RunsFilter(statuses=[DagsterRunStatus.QUEUED])),
                   "unfinished backfills": _unfinished_backfills(instance)}
    notes = [str(state) for state in states] + [
        f"{kind}: {count} (`make dev` continues them)" for kind, count in waiting.items() if count]
    if any(state.lost for state in states):
        raise RuntimeError(f"{'; '.join(notes)}; {END} ends lost runs and frees their pools")
    return "; ".join(notes) or "none running"


def _state_of(instance: DagsterInstance, record: RunRecord, since: datetime, guess: bool) -> tuple[State, str]:
    from dagster import DagsterRunStatus

    run, here = record.dagster_run, Host.here()
    process, pids = RunProcess.of(run), _reported_pids(instance, record.dagster_run.run_id)
    place = process.host.seen_from(here) if process else "here" if guess else None
    host = process.host.name if process else ""
    lives = place in ("here", None) and ((process and process.lives()) or any(
        may_be(pid, at) for pid, at in pids.items() if process is None or pid != process.pid))
    if run.is_finished:  # a step's process may outlive its run and hold the GPU
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
    """Process ids named by a run's events, with the time of the last such event [s since the epoch]."""
    from dagster import DagsterEventType

    pids = {}
    for entry in instance.all_logs(run_id, of_type={DagsterEventType.ENGINE_EVENT,
                                                    DagsterEventType.STEP_WORKER_STARTED}):
        metadata = entry.dagster_event.engine_event_data.metadata if entry.dagster_event else {}
        if "pid" in metadata:
            pids[int(str(metadata["pid"].value))] = entry.timestamp
    return pids


def _held_pools(instance: DagsterInstance) -> dict[str, tuple[str, ...]]:
    """Pools in which each run holds a slot or waits for one, by run id."""
    storage = instance.event_log_storage
    held: dict[str, tuple[str, ...]] = {}
    if not storage.supports_global_concurrency_limits:
        return {}
    for pool in sorted(storage.get_concurrency_keys()):
        info = storage.get_concurrency_info(pool)
        for run_id in {slot.run_id for slot in info.claimed_slots} | info.assigned_run_ids:
            held[run_id] = (*held.get(run_id, ()), pool)
    return held


def _end(instance: DagsterInstance, state: RunState) -> bool:
    """End a run, unless it ended by itself in the meantime. Return whether it was ended here."""
    run = instance.get_run_by_id(state.run_id)
    if run is not None and run.is_finished != (state.state == "ended"):
        return False
    if run is not None and not run.is_finished:
        instance.report_run_canceled(run, message=f"{state} (f1 doctor)")
    instance.event_log_storage.free_concurrency_slots_for_run(state.run_id)
    return True


def _end_by_hand(instance: DagsterInstance, run_id: str) -> RunState:
    state = next((state for state in run_states(instance) if state.run_id == run_id), None)
    if state is None:
        raise RuntimeError(f"{run_id} is not an unfinished run and holds no pool; `f1 doctor` lists such runs by id")
    if state.state == "alive":
        raise RuntimeError(f"{state} on this machine; stop it in the UI, or end its process")
    state = replace(state, state="ended" if state.state == "ended" else "dead")
    _end(instance, state)
    return state


def _is_this_machines(instance: DagsterInstance) -> bool:
    """Whether only this machine can have recorded runs: the run storage is a file on a local disk."""
    import psutil

    if instance.is_ephemeral:
        return True
    storage = instance.get_ref().run_storage_data
    if storage is None or storage.class_name != "SqliteRunStorage":
        return False
    folder = Path(storage.config_dict["base_dir"]).resolve()
    disks = [disk for disk in psutil.disk_partitions(all=True) if folder.is_relative_to(disk.mountpoint)]
    file_system = max(disks, key=lambda disk: len(disk.mountpoint)).fstype if disks else ""
    return not file_system.startswith(_NETWORK_FILE_SYSTEMS)


def _unfinished_backfills(instance: DagsterInstance) -> int:
    from dagster._core.execution.backfill import BulkActionsFilter, BulkActionStatus

    return len(instance.get_backfills(BulkActionsFilter(statuses=[BulkActionStatus.REQUESTED])))


def _subject(run: DagsterRun) -> str:
    assets = sorted(key.to_user_string() for key in run.asset_selection or ())
    return ", ".join(assets[:3]) + (f" and {len(assets) - 3} more" if len(assets) > 3 else "") or run.job_name
