"""`f1 doctor`: is everything there that a run needs, and what to do where it is not."""
from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from f1_pipelines.cli import integrity
from f1_pipelines.features.history import unlearnable_weekends
from f1_pipelines.identity.weekends import known_weekends
from f1_pipelines.runs.dead_runs import find_lost_runs, free_pool_slots
from f1_pipelines.runs.home import existing_home
from f1_pipelines.settings import Settings, settings
from f1_pipelines.tracking.store import TrackingStore
from f1_pipelines.warehouse.database import WarehouseError, WarehouseFile, WrongSchema

__all__ = ["Finding", "diagnose", "free_pool_slots"]


@dataclass(frozen=True)
class Finding:
    """One thing looked at."""

    what: str
    well: bool
    text: str


def diagnose(deep: bool = False) -> list[Finding]:
    """Look at settings, calendar, source, warehouse and Dagster's home. Never raises for what it finds.

    Args:
        deep: Read every block and row of the warehouse and its copies, and every checkpoint.
    """
    current = settings()
    looks: dict[str, Callable[[Settings], str]] = {
        "calendar": _calendar, "source": _source, "warehouse": _warehouse, "races": _races,
        "tracking": _tracking, "dagster": _dagster_home, "runs": lambda _: find_lost_runs()}
    if deep:
        looks |= integrity.CHECKS
    findings = []
    for what, look in looks.items():
        try:
            findings.append(Finding(what, True, look(current)))
        except Exception as problem:  # noqa: BLE001  a doctor reports whatever is wrong
            findings.append(Finding(what, False, " ".join(str(problem).split())))
    return findings


def _calendar(current: Settings) -> str:
    weekends = known_weekends(current.calendar_path)
    to_come = [weekend for weekend in weekends if weekend.race_start > datetime.now(UTC)]
    after = f"next race {to_come[0].key} on {to_come[0].race_start:%Y-%m-%d}" if to_come else \
        "no race to come: materialize race_calendar for the newest season, or install a newer release"
    return f"{len(weekends)} weekends, {after}"


def _source(current: Settings) -> str:
    if current.f1_source == "f1db" and current.f1_f1db_path:
        from f1_pipelines.sources.f1db.release import F1dbRelease

        return f"{F1dbRelease(current.f1_f1db_path).version} at {current.f1_f1db_path}"
    if current.f1_source == "sample":
        return "sample, embedded: seasons that this project made up, no network needed"
    return f"{current.f1_source}, asked over the network when a run needs it"


def _warehouse(current: Settings) -> str:
    warehouse = WarehouseFile(current.f1_warehouse)
    path, copy = warehouse.path, warehouse.published_path
    with warehouse.read() as connection:
        ((races,),) = connection.execute("SELECT count(DISTINCT weekend) FROM race.results").fetchall()
    warehouse.check()
    if warehouse.unpublished():
        raise RuntimeError(f"{path.name} holds more than {copy.name} shows: a run was killed before it published, or "
                           "somebody changed the file by hand; the next write publishes it")
    return f"{races} races in {copy}"


def _races(current: Settings) -> str:
    warehouse = WarehouseFile(current.f1_warehouse)
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


def _tracking(current: Settings) -> str:
    if current.tracking_uri is None:
        return "off: MLFLOW_TRACKING_URI=off"
    return TrackingStore(current.tracking_uri, current.f1_warehouse.parent).describe()


def _dagster_home(_: Settings) -> str:
    if not os.environ.get("DAGSTER_HOME"):
        return "DAGSTER_HOME is not set: runs work, but leave no history and know no pools; `make dev` sets it"
    return existing_home()
