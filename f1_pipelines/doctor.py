"""`f1 doctor`: is everything there that a run needs, and what to do where it is not."""
from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from f1_pipelines import integrity
from f1_pipelines.features.history import unlearnable_weekends
from f1_pipelines.identity.weekends import known_weekends
from f1_pipelines.settings import Settings, settings
from f1_pipelines.tracking.store import TrackingStore
from f1_pipelines.warehouse.database import WarehouseError, WarehouseFile, WrongSchema

if TYPE_CHECKING:
    from dagster import DagsterInstance


@dataclass(frozen=True)
class Finding:
    """One thing looked at."""

    what: str
    well: bool
    told: str


def examine(deep: bool = False) -> list[Finding]:
    """Look at settings, calendar, source, warehouse and Dagster's home. Never raises for what it finds.

    Args:
        deep: Read every block and row of the warehouse and its copies, and every checkpoint.
    """
    told = settings()
    looks: dict[str, Callable[[Settings], str]] = {
        "calendar": _calendar, "source": _source, "warehouse": _warehouse, "races": _races,
        "tracking": _tracking, "dagster": _dagster_home}
    if deep:
        looks |= integrity.CHECKS
    findings = []
    for what, look in looks.items():
        try:
            findings.append(Finding(what, True, look(told)))
        except Exception as problem:  # noqa: BLE001  a doctor reports whatever is wrong
            findings.append(Finding(what, False, " ".join(str(problem).split())))
    return findings


def free_pool_slots() -> str:
    """End runs whose processes are gone and free the pool slots that they hold. What was done, in one sentence."""
    from dagster import DagsterInstance, DagsterRunStatus, RunsFilter

    if not os.environ.get("DAGSTER_HOME"):
        raise RuntimeError("DAGSTER_HOME is not set, so there are no pools to free; `make free-pools` sets it")
    with DagsterInstance.from_config(_existing_home()) as instance:
        at_work = RunsFilter(statuses=[DagsterRunStatus.STARTED, DagsterRunStatus.CANCELING])
        orphans = [run for run in instance.get_runs(at_work) if not _may_be_alive(instance, run.run_id)]
        for run in orphans:
            instance.report_run_canceled(run, message="its process is gone (f1 doctor --free-pools)")
            instance.event_log_storage.free_concurrency_slots_for_run(run.run_id)
    return f"{len(orphans)} runs without a process ended, their pool slots freed"


def _may_be_alive(instance: DagsterInstance, run_id: str) -> bool:
    """Whether a process of the run exists, or none has told its pid yet: a run that just starts is not to be ended.

    A step's own process counts too. It outlives the run's process when only that is killed, and still has the GPU.
    """
    from dagster import DagsterEventType

    tellers = {DagsterEventType.ENGINE_EVENT, DagsterEventType.STEP_WORKER_STARTED}
    pids = {int(record.dagster_event.engine_event_data.metadata["pid"].value)
            for record in instance.all_logs(run_id, of_type=tellers)
            if record.dagster_event and "pid" in record.dagster_event.engine_event_data.metadata}
    return not pids or any(_exists(pid) for pid in pids)


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)  # asks whether it exists, sends nothing
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    try:
        # Dead, but not collected by its parent: in a container, for as long as that has no init.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return True  # no /proc on this system


def _calendar(told: Settings) -> str:
    weekends = known_weekends(told.calendar_path)
    to_come = [weekend for weekend in weekends if weekend.race_start > datetime.now(UTC)]
    after = f"next race {to_come[0].key} on {to_come[0].race_start:%Y-%m-%d}" if to_come else \
        "no race to come: materialize race_calendar for the newest season, or install a newer release"
    return f"{len(weekends)} weekends, {after}"


def _source(told: Settings) -> str:
    if told.f1_source == "f1db" and told.f1_f1db_path:
        from f1_pipelines.sources.f1db_release import F1dbRelease

        return f"{F1dbRelease(told.f1_f1db_path).version} at {told.f1_f1db_path}"
    if told.f1_source == "sample":
        return "sample, embedded: seasons that this project made up, no network needed"
    return f"{told.f1_source}, asked over the network when a run needs it"


def _warehouse(told: Settings) -> str:
    warehouse = WarehouseFile(told.f1_warehouse)
    path, copy = warehouse.path, warehouse.published_path
    with warehouse.read() as connection:
        ((races,),) = connection.execute("SELECT count(DISTINCT weekend) FROM race.results").fetchall()
    warehouse.check()
    if warehouse.unpublished():
        raise RuntimeError(f"{path.name} holds more than {copy.name} shows: a run was killed before it published, or "
                           "somebody changed the file by hand; the next write publishes it")
    return f"{races} races in {copy}"


def _races(told: Settings) -> str:
    warehouse = WarehouseFile(told.f1_warehouse)
    if not warehouse.published_path.exists():
        return "none is stored yet"
    try:
        with warehouse.read() as connection:
            marked = unlearnable_weekends(connection)
    except (WarehouseError, WrongSchema):
        return "can't be read, as said of the warehouse"
    if marked.empty:
        return "all that are stored can be learnt from"
    weekends = list(marked["weekend"].unique())
    first = "; ".join(marked.loc[marked["weekend"] == weekends[0], "detail"])
    more = f" and {len(weekends) - 1} more" if len(weekends) > 1 else ""
    raise RuntimeError(f"nothing is learnt from {weekends[0]} ({first}){more}: load it again once the source is right; "
                       '`f1 query "SELECT * FROM race.unlearnable_weekends"` shows all')


def _tracking(told: Settings) -> str:
    if told.tracking_uri is None:
        return "off: MLFLOW_TRACKING_URI=off"
    return TrackingStore(told.tracking_uri, told.f1_warehouse.parent).examine()


def _dagster_home(_: Settings) -> str:
    if not os.environ.get("DAGSTER_HOME"):
        return "DAGSTER_HOME is not set: runs work, but leave no history and know no pools; `make dev` sets it"
    return _existing_home()


def _existing_home() -> str:
    home = os.environ["DAGSTER_HOME"]
    if not Path(home).is_absolute() or not Path(home).is_dir():
        raise RuntimeError(f"DAGSTER_HOME={home} must be an absolute path of an existing folder; mkdir it")
    if not (Path(home) / "dagster.yaml").exists():
        raise RuntimeError(f"{home} holds no dagster.yaml, so pools have no limit; run `make setup`")
    return home
