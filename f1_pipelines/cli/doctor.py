"""`f1 doctor`: check everything that a run needs, and say how to fix problems."""
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
    """Result of one check."""

    what: str
    well: bool
    text: str


def diagnose(deep: bool = False) -> list[Finding]:
    """Check settings, calendar, source, warehouse and Dagster's home. Reports every problem, raises none.

    Args:
        deep: Also read every block and row of the warehouse and its copies, and every checkpoint.
    """
    current = settings()
    checks: dict[str, Callable[[Settings], str]] = {
        "calendar": _calendar, "source": _source, "warehouse": _warehouse, "races": _races,
        "tracking": _tracking, "dagster": _dagster_home, "runs": lambda _: find_lost_runs()}
    if deep:
        checks |= integrity.CHECKS
    findings = []
    for name, check in checks.items():
        try:
            findings.append(Finding(name, True, check(current)))
        except Exception as problem:  # noqa: BLE001  the doctor reports every problem
            findings.append(Finding(name, False, " ".join(str(problem).split())))
    return findings


def _calendar(current: Settings) -> str:
    weekends = known_weekends(current.calendar_path)
    upcoming = next((weekend for weekend in weekends if weekend.race_start > datetime.now(UTC)), None)
    next_race = f"next race {upcoming.key} on {upcoming.race_start:%Y-%m-%d}" if upcoming else \
        "no future race: materialize race_calendar for the newest season, or install a newer release"
    return f"{len(weekends)} weekends, {next_race}"


def _source(current: Settings) -> str:
    if current.f1_source == "f1db" and current.f1_f1db_path:
        from f1_pipelines.sources.f1db.release import F1dbRelease

        return f"{F1dbRelease(current.f1_f1db_path).version} at {current.f1_f1db_path}"
    if current.f1_source == "sample":
        return "sample, embedded: simulated seasons, no network needed"
    return f"{current.f1_source}, downloaded when a run needs it"


def _warehouse(current: Settings) -> str:
    warehouse = WarehouseFile(current.f1_warehouse)
    path, copy = warehouse.path, warehouse.published_path
    with warehouse.read() as connection:
        ((races,),) = connection.execute("SELECT count(DISTINCT weekend) FROM race.results").fetchall()
    warehouse.check()
    if warehouse.unpublished():
        raise RuntimeError(f"{path.name} has changes that {copy.name} lacks: a run was killed before publishing, or "
                           "the file was changed by hand; the next write publishes them")
    return f"{races} races in {copy}"


def _races(current: Settings) -> str:
    warehouse = WarehouseFile(current.f1_warehouse)
    if not warehouse.published_path.exists():
        return "none stored yet"
    try:
        with warehouse.read() as connection:
            unlearnable = unlearnable_weekends(connection)
    except (WarehouseError, WrongSchema):
        return "not checked: the warehouse can't be read, see above"
    if unlearnable.empty:
        return "all stored races can be learnt from"
    weekends = list(unlearnable["weekend"].unique())
    first = "; ".join(unlearnable.loc[unlearnable["weekend"] == weekends[0], "detail"])
    more = f" and {len(weekends) - 1} more" if len(weekends) > 1 else ""
    raise RuntimeError(f"nothing is learnt from {weekends[0]} ({first}){more}: reload once the source is corrected; "
                       '`f1 query "SELECT * FROM race.unlearnable_weekends"` shows all')


def _tracking(current: Settings) -> str:
    if current.tracking_uri is None:
        return "off: MLFLOW_TRACKING_URI=off"
    return TrackingStore(current.tracking_uri, current.f1_warehouse.parent).describe()


def _dagster_home(_: Settings) -> str:
    if not os.environ.get("DAGSTER_HOME"):
        return "DAGSTER_HOME is not set: runs work, but without history and pools; `make dev` sets it"
    return existing_home()
