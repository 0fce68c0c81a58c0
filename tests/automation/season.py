"""Run the sensor and its jobs through a season, in this process."""
import importlib
import sys
from datetime import datetime, timedelta
from pathlib import Path

import dagster as dg
from dagster._core.events import DagsterEvent, DagsterEventType

from f1_pipelines.definitions import defs
from f1_pipelines.identity.line_ups import embedded_weekends
from f1_pipelines.promotion.champion import promote
from f1_pipelines.resources.checkpoints import Checkpoints
from f1_pipelines.resources.compute import Compute
from f1_pipelines.resources.tracking import Tracking
from f1_pipelines.resources.warehouse import Warehouse
from tests.automation.season_source import SeasonData, SetClock, World

CODE = ("f1_pipelines.assets", "f1_pipelines.definitions")  # modules that a reload of the code location imports again
# Assets of each job that the sensor's decisions and the forecasts need; only `all_assets` runs the others. The calendar
# was loaded before the season, and is loaded again after changes.
NEEDED = {"pre_race": ("qualifying_results", "ranking_features", "race_predictions"),
          "post_race": ("race_results",), "next_prediction": ("race_calendar",)}


def resources_in(folder: Path) -> dict[str, object]:
    """The project's resources, over the folder's warehouse and the current world."""
    return {**defs.resources,
            "warehouse": Warehouse(path=str(folder / "f1.duckdb"), wait_s=5),
            "race_data": SeasonData(source="f1db", f1db_folder=str(folder), fastf1_cache=str(folder / "fastf1")),
            "clock": SetClock(), "compute": Compute(device="cpu"),
            "checkpoints": Checkpoints(path=str(folder / "checkpoints")), "tracking": Tracking()}


def range_tags(first: str, last: str) -> dict[str, str]:
    return {"dagster/asset_partition_range_start": first, "dagster/asset_partition_range_end": last}


class Season:
    """The sensor's ticks, runs and their results."""

    def __init__(self, folder: Path, instance: dg.DagsterInstance):
        self.folder, self.instance = folder, instance
        self.cursor: str | None = None
        self.requests: list[tuple[str, str]] = []
        self.why = ""
        self.defs = defs

    @property
    def world(self) -> World:
        return SeasonData.world

    def at(self, time: str | datetime) -> "Season":
        """Set the clock."""
        SetClock.at = datetime.fromisoformat(time) if isinstance(time, str) else time
        return self

    def reload(self) -> None:
        """Reload the code location, like the button in the UI."""
        for name in [name for name in sys.modules if name.startswith(CODE)]:
            del sys.modules[name]
        self.defs = importlib.import_module("f1_pipelines.definitions").defs

    def tick(self) -> dg.RunRequest | None:
        """Run one tick of the sensor; record its request in `requests` and its skip reason in `why`."""
        resources = {name: resources_in(self.folder)[name] for name in ("warehouse", "race_data", "clock")}
        with dg.build_sensor_context(instance=self.instance, cursor=self.cursor, resources=resources) as context:
            [sensor] = self.defs.sensors
            result = sensor(context)
        self.cursor, self.why = result.cursor, result.skip_reason.skip_message if result.skip_reason else ""
        if not result.run_requests:
            assert self.why, "a skip without a reason"
            return None
        [request] = result.run_requests
        self.requests.append((request.partition_key, request.job_name))
        return request

    def run(self, request: dg.RunRequest, all_assets: bool = False, only: str | None = None,
            checked: bool = False) -> bool:
        """Execute a request in this process, like the daemon; return whether the run succeeded.

        Args:
            request: Request of the sensor.
            all_assets: Run all assets and checks of the job, not only `NEEDED`.
            only: Run only this asset.
            checked: Also run the checks of the selected assets.
        """
        changed = self.world.weekends[request.partition_key] != embedded_weekends().get(request.partition_key)
        selected = [only] if only else [*(["race_calendar"] if changed else []), *NEEDED[request.job_name]]
        code = dg.Definitions(assets=self.defs.assets, jobs=self.defs.jobs, resources=resources_in(self.folder),
                              asset_checks=self.defs.asset_checks if all_assets or checked else [],
                              executor=dg.in_process_executor)
        return code.resolve_job_def(request.job_name).execute_in_process(
            partition_key=request.partition_key, tags=request.tags, instance=self.instance, raise_on_error=False,
            asset_selection=None if all_assets else [dg.AssetKey(name) for name in selected]).success

    def load_by_hand(self, first: str, last: str, *assets: str) -> None:
        """Materialize a range of weekends in one run, as a person does."""
        assert dg.materialize(self.defs.assets, selection=dg.AssetSelection.assets(*assets), instance=self.instance,
                              resources=resources_in(self.folder), tags=range_tags(first, last)).success

    def promote(self, checkpoint: str) -> None:
        """Promote a checkpoint, like `f1 promote`."""
        with resources_in(self.folder)["warehouse"].write("promote") as connection:
            promote(connection, checkpoint, "to see", SetClock.at, self.folder / "checkpoints")

    def start_and_die(self, request: dg.RunRequest) -> None:
        """Start a run whose process is killed: it stays STARTED."""
        job = self.defs.resolve_job_def(request.job_name)
        run = self.instance.create_run_for_job(
            job, tags={**request.tags, "dagster/partition": request.partition_key},
            status=dg.DagsterRunStatus.NOT_STARTED)
        self.instance.report_dagster_event(
            DagsterEvent(DagsterEventType.RUN_START.value, job.name), run_id=run.run_id)
        assert self.instance.get_run_by_id(run.run_id).status == dg.DagsterRunStatus.STARTED

    def settle(self) -> list[tuple[str, str]]:
        """Tick and run until the sensor requests nothing more; return the requests."""
        before = len(self.requests)
        while request := self.tick():
            self.run(request)
            assert len(self.requests) - before < 12, self.requests[before:]
        return self.requests[before:]

    def weekend(self, key: str) -> list[tuple[str, str]]:
        """Settle after qualifying and after the race of a weekend; return the requests."""
        starts = self.world.weekends[key].sessions
        return [*self.at(starts["qualifying"] + timedelta(hours=2)).settle(),
                *self.at(starts["race"] + timedelta(hours=4)).settle()]

    def runs(self) -> list[tuple[str, str, str, str]]:
        """(weekend, phase, version, status) of all runs requested by the sensor, oldest first."""
        return [(run.tags["dagster/partition"], run.job_name, run.tags["f1/data_version"], run.status.value)
                for run in reversed(self.instance.get_runs()) if "f1/data_version" in run.tags]

    def rows(self, sql: str) -> list[tuple]:
        with Warehouse(path=str(self.folder / "f1.duckdb")).read() as connection:
            return connection.execute(sql).fetchall()
