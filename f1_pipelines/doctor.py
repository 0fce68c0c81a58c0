"""`f1 doctor`: is everything there that a run needs, and what to do where it is not."""
from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from f1_pipelines.identity.weekends import known_weekends
from f1_pipelines.settings import Settings, settings
from f1_pipelines.warehouse.database import WarehouseFile


@dataclass(frozen=True)
class Finding:
    """One thing looked at."""

    what: str
    well: bool
    told: str


def examine() -> list[Finding]:
    """Look at settings, calendar, source, warehouse and Dagster's home. Never raises for what it finds."""
    told = settings()
    looks: dict[str, Callable[[Settings], str]] = {
        "calendar": _calendar, "source": _source, "warehouse": _warehouse, "dagster": _dagster_home}
    findings = []
    for what, look in looks.items():
        try:
            findings.append(Finding(what, True, look(told)))
        except Exception as problem:  # noqa: BLE001  a doctor reports whatever is wrong
            findings.append(Finding(what, False, " ".join(str(problem).split())))
    return findings


def free_pool_slots() -> str:
    """End runs whose process is gone and free the pool slots that they hold. What was done, in one sentence."""
    from dagster import DagsterInstance, DagsterRunStatus, RunsFilter

    with DagsterInstance.get() as instance:
        orphans = [run for run in instance.get_runs(RunsFilter(statuses=[DagsterRunStatus.STARTED]))
                   if not _is_alive(instance, run.run_id)]
        for run in orphans:
            instance.report_run_canceled(run, message="its process is gone (f1 doctor --free-pools)")
            instance.event_log_storage.free_concurrency_slots_for_run(run.run_id)
    return f"{len(orphans)} runs without a process ended, their pool slots freed"


def _is_alive(instance: object, run_id: str) -> bool:
    """Whether a process still works on the run: the last engine event with a pid names it."""
    pids = [int(value.value) for record in instance.all_logs(run_id)  # type: ignore[attr-defined]
            if record.dagster_event and record.dagster_event.engine_event_data
            for label, value in record.dagster_event.engine_event_data.metadata.items() if label == "pid"]
    if not pids:
        return False
    try:
        os.kill(pids[-1], 0)  # asks whether it exists, sends nothing
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


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
    return f"{told.f1_source}, asked over the network when a run needs it"


def _warehouse(told: Settings) -> str:
    warehouse = WarehouseFile(told.f1_warehouse)
    warehouse.check()
    with warehouse.read() as connection:
        ((races,),) = connection.execute("SELECT count(DISTINCT weekend) FROM race.results").fetchall()
    if warehouse.path.exists() and warehouse.path.stat().st_mtime - warehouse.published_path.stat().st_mtime > 60:
        raise RuntimeError(f"{warehouse.published_path.name} is older than {warehouse.path.name}: a run was killed "
                           "before it published; the next write does it")
    return f"{races} races in {warehouse.published_path}"


def _dagster_home(_: Settings) -> str:
    home = os.environ.get("DAGSTER_HOME")
    if not home:
        return "DAGSTER_HOME is not set: runs work, but leave no history and know no pools; `make dev` sets it"
    if not Path(home).is_absolute() or not Path(home).is_dir():
        raise RuntimeError(f"DAGSTER_HOME={home} must be an absolute path of an existing folder; mkdir it")
    if not (Path(home) / "dagster.yaml").exists():
        raise RuntimeError(f"{home} holds no dagster.yaml, so pools have no limit; run `make setup`")
    return home
