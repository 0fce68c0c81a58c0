"""A season that can be lived through: a source whose world changes, a clock that is set, and a real Dagster instance.

What happens on track comes from the sample's engine, for all of 2026 and not only the part that users get.
"""
import importlib
import shutil
import sys
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import ClassVar

import dagster as dg
import pandas as pd
import pytest
from dagster._core.events import DagsterEvent, DagsterEventType
from sqlalchemy import event
from sqlalchemy.engine import Engine

from f1_pipelines.definitions import defs
from f1_pipelines.identity.line_ups import embedded_weekends
from f1_pipelines.identity.weekends import Weekend
from f1_pipelines.promotion.champion import promote
from f1_pipelines.resources.checkpoints import Checkpoints
from f1_pipelines.resources.compute import Compute
from f1_pipelines.resources.race_data import Clock, RaceData
from f1_pipelines.resources.tracking import Tracking
from f1_pipelines.resources.warehouse import Warehouse
from f1_pipelines.settings import settings
from f1_pipelines.sources.base import Fetched, Refusal, SourceUnavailable
from f1_pipelines.sources.calendar import calendar_rows
from f1_pipelines.sources.classification import classification_hash
from f1_pipelines.sources.sample import SampleSource
from f1_pipelines.sources.sample import source as sample_module
from f1_pipelines.sources.updates import SourceUpdate, update_in
from f1_pipelines.tables.race import CALENDAR

SHEET_AFTER = timedelta(hours=3)  # from the start of a race to its official sheet
OVER_AFTER = timedelta(hours=1)
CODE = ("f1_pipelines.assets", "f1_pipelines.definitions")  # what a reload of the code location loads anew
# What of each job the sensor's memory and the forecasts need; the rest, and the checks, are run by `whole` alone. The
# calendar was loaded in winter, and is again where it has changed.
LEAN = {"pre_race": ("qualifying_results", "ranking_features", "race_predictions"),
        "post_race": ("race_results",), "next_prediction": ("race_calendar",)}


@dataclass
class World:
    """What the source knows, and how it behaves."""

    weekends: dict[str, Weekend] = field(default_factory=lambda: dict(embedded_weekends()))
    down: bool = False
    amended: set[str] = field(default_factory=set)  # weekends whose winner was put behind the second
    provisional: set[str] = field(default_factory=set)  # weekends whose sheet is not official yet
    torn: set[str] = field(default_factory=set)  # weekends whose results can't be read by any run
    gridless: set[str] = field(default_factory=set)  # weekends whose sheets have no grid
    untimed: set[str] = field(default_factory=set)  # weekends whose timing is kept from us
    stand_ins: dict[str, str] = field(default_factory=dict)  # added weekend -> the one whose sessions it gets
    questions: list[str] = field(default_factory=list)

    def change(self, key: str, **said: object) -> None:
        self.weekends[key] = replace(self.weekends[key], **said)

    def move(self, key: str, by: timedelta) -> None:
        moved = {name: start + by for name, start in self.weekends[key].sessions.items()}
        self.change(key, sessions=moved)


@cache
def driven(what: str, key: str) -> Fetched:
    """A weekend of the sample, whenever that is."""
    sample = SampleSource(lambda: datetime(2027, 1, 1, tzinfo=UTC))
    return getattr(sample, what)([embedded_weekends()[key]])


class SeasonSource:
    """The world as a source, at the instant of the clock."""

    name = "sample"

    def __init__(self, world: World, now):
        self.world, self.now = world, now

    def calendar(self, seasons) -> pd.DataFrame:
        self._asked("calendar")
        rows = calendar_rows([w for w in self.world.weekends.values() if w.season in seasons], self.now())
        return CALENDAR.conform(rows.assign(source="sample"))

    def practice(self, weekends) -> Fetched:
        return self._fetch("practice", weekends, self.world.untimed)

    def qualifying(self, weekends) -> Fetched:
        return self._fetch("qualifying", weekends)

    def results(self, weekends) -> Fetched:
        return self._fetch("results", weekends, self.world.torn)

    def laps(self, weekends) -> Fetched:
        return self._fetch("laps", weekends, self.world.untimed)

    def news(self, weekend, phase) -> SourceUpdate:
        self._asked(f"{weekend.key} {phase}")
        what = "results" if phase == "post_race" else "qualifying"
        return update_in(self._fetch(what, [weekend]), phase)

    def _asked(self, question: str) -> None:
        self.world.questions.append(question)
        if self.world.down:
            raise SourceUnavailable("nobody answers; try again later")

    def _fetch(self, what, weekends, refused=frozenset()) -> Fetched:
        self._asked(what)
        frames: dict[str, list[pd.DataFrame]] = {}
        fetched = Fetched()
        for weekend in weekends:
            if weekend.key in refused:
                fetched.refused.append(Refusal(weekend.key, "race", "it can't be read"))
                continue
            key = self.world.stand_ins.get(weekend.key, weekend.key)
            for name, rows in driven(what, key).tables.items():
                rows = rows.assign(weekend=weekend.key)
                frames.setdefault(name, []).append(self._as_of_now(name, rows, weekend.key))
            if not any(len(frames[name][-1]) for name in frames):
                fetched.refused.append(Refusal(weekend.key, "qualifying" if what == "qualifying" else "race",
                                               "not there yet", retry=True))
        fetched.tables = {name: pd.concat(parts, ignore_index=True) for name, parts in frames.items()}
        return fetched

    def _as_of_now(self, name: str, rows: pd.DataFrame, key: str) -> pd.DataFrame:
        """The rows of sessions that are over, with the sheet as it stands."""
        fixed = {"race.results": "race", "race.laps": "race", "race.pit_stops": "race", "race.sprint_results": "sprint"}
        sessions = pd.Series(fixed[name], index=rows.index) if name in fixed else rows["session"]
        if name == "race.grid":
            sessions = sessions.map({"race": "qualifying", "sprint": "sprint_qualifying"})
        rows = rows[sessions.map(lambda session: self._is_out(key, session)).astype(bool)].assign(fetched_at=self.now())
        if name == "race.grid" and key in self.world.gridless:
            return rows[rows["session"] != "race"]
        if name != "race.results" or rows.empty:
            return rows
        if key in self.world.gridless:
            rows = rows.assign(grid_position=pd.NA, grid_status="unknown")
        status = "provisional" if key in self.world.provisional else "official"
        if key in self.world.amended:
            places = rows["official_order"].map({1: 2, 2: 1}).fillna(rows["official_order"]).astype("Int32")
            rows = rows.assign(official_order=places, finish_position=places.where(rows["classified"]))
        rows = rows.assign(result_status=status)
        return rows.assign(content_hash=classification_hash(rows))

    def _is_out(self, key: str, session: str) -> bool:
        weekend = self.world.weekends.get(key)
        if weekend is None or weekend.planned != "scheduled" or session not in weekend.sessions:
            return False
        after = SHEET_AFTER if session == "race" else OVER_AFTER
        return weekend.sessions[session] + after <= self.now()


class SeasonData(RaceData):
    """The source of the season. Its name stands for any real one: only those may change the calendar."""

    world: ClassVar[World]

    def open(self, clock: Clock, timeout_s: float | None = None) -> SeasonSource:
        return SeasonSource(self.world, clock.now)


class SetClock(Clock):
    """A clock that the test sets."""

    at: ClassVar[datetime]

    def now(self) -> datetime:
        return self.at


def run_to_the_end(patch: pytest.MonkeyPatch) -> None:
    """The sample's world runs on to the end of 2026."""
    patch.setattr(sample_module, "SAMPLE_END", datetime(2027, 1, 1, tzinfo=UTC))


@pytest.fixture(scope="session")
def winter(tmp_path_factory) -> Path:
    """A folder with the warehouse before the season: 2025 stored, a ranker pretrained on it."""
    folder = tmp_path_factory.mktemp("winter")
    SeasonData.world, SetClock.at = World(), datetime(2026, 2, 1, tzinfo=UTC)
    spans = [("2025-singapore", "2026-abu-dhabi", ("race_calendar",)),
             ("2025-singapore", "2025-abu-dhabi", ("qualifying_results", "race_results", "ranking_features",
                                                   "pretrained_ranker", "promoted_ranker"))]
    with pytest.MonkeyPatch.context() as patch:
        run_to_the_end(patch)
        patch.setenv("F1_WAREHOUSE", str(folder / "f1.duckdb"))
        for first, last, names in spans:
            trained = "pretrained_ranker" in names
            done = dg.materialize(
                defs.assets, resources=lent(folder), selection=dg.AssetSelection.assets(*names),
                tags=of_range(first, last),
                run_config={"ops": {"pretrained_ranker": {"config": {"seasons": [2025], "temperature": 3.4}}}}
                if trained else None)
            assert done.success
    return folder


def lent(folder: Path) -> dict[str, object]:
    """The project's resources, over the folder's warehouse and the world of the moment."""
    return {**defs.resources,
            "warehouse": Warehouse(path=str(folder / "f1.duckdb"), wait_s=5),
            "race_data": SeasonData(source="f1db", f1db_folder=str(folder), fastf1_cache=str(folder / "fastf1")),
            "clock": SetClock(), "compute": Compute(device="cpu"),
            "checkpoints": Checkpoints(path=str(folder / "checkpoints")), "tracking": Tracking()}


def of_range(first: str, last: str) -> dict[str, str]:
    return {"dagster/asset_partition_range_start": first, "dagster/asset_partition_range_end": last}


@pytest.fixture(scope="session")
def no_waiting_for_the_disk():
    """Dagster's own databases, on disk, but not flushed with each of a run's hundred events."""
    def relax(connection, _) -> None:
        connection.execute("PRAGMA synchronous = OFF")

    event.listen(Engine, "connect", relax)
    yield
    event.remove(Engine, "connect", relax)


@pytest.fixture
def season(no_waiting_for_the_disk, winter, tmp_path, monkeypatch):
    """The season from its winter on."""
    folder = tmp_path / "season"
    shutil.copytree(winter, folder)
    run_to_the_end(monkeypatch)
    monkeypatch.setenv("F1_WAREHOUSE", str(folder / "f1.duckdb"))
    assert settings().f1_warehouse.exists()
    SeasonData.world = World()
    # One database for all events: making one for each run takes longer than most runs.
    one_file = {"event_log_storage": {"module": "dagster._core.storage.event_log",
                                      "class": "ConsolidatedSqliteEventLogStorage",
                                      "config": {"base_dir": str(tmp_path / "events")}}}
    loaded = {name: module for name, module in sys.modules.items() if name.startswith(CODE)}
    with dg.DagsterInstance.local_temp(str(tmp_path), overrides=one_file) as instance:
        yield Season(folder, instance)
    sys.modules.update(loaded)


class Season:
    """Ticks, runs, and what came of them."""

    def __init__(self, folder: Path, instance: dg.DagsterInstance):
        self.folder, self.instance = folder, instance
        self.cursor: str | None = None
        self.asked: list[tuple[str, str]] = []
        self.why = ""
        self.defs = defs

    @property
    def world(self) -> World:
        return SeasonData.world

    def at(self, instant: str | datetime) -> "Season":
        """Set the clock."""
        SetClock.at = datetime.fromisoformat(instant) if isinstance(instant, str) else instant
        return self

    def reload(self) -> None:
        """Load the code location again, as the button in the UI does."""
        for name in [name for name in sys.modules if name.startswith(CODE)]:
            del sys.modules[name]
        self.defs = importlib.import_module("f1_pipelines.definitions").defs

    def tick(self) -> dg.RunRequest | None:
        """One tick of the sensor; what it asks for is kept in `asked`, what it says in `why`."""
        resources = {name: lent(self.folder)[name] for name in ("warehouse", "race_data", "clock")}
        with dg.build_sensor_context(instance=self.instance, cursor=self.cursor, resources=resources) as context:
            [sensor] = self.defs.sensors
            told = sensor(context)
        self.cursor, self.why = told.cursor, told.skip_reason.skip_message if told.skip_reason else ""
        if not told.run_requests:
            assert self.why, "a skip without a reason"
            return None
        [request] = told.run_requests
        self.asked.append((request.partition_key, request.job_name))
        return request

    def run(self, request: dg.RunRequest, whole: bool = False, only: str | None = None,
            checked: bool = False) -> bool:
        """Do what the daemon does with a request, in this process; whether the run succeeded.

        `whole`: with all the assets and checks of the job, not only `LEAN`. `only`: this asset of it. `checked`: with
        the checks of the assets that are run.
        """
        changed = self.world.weekends[request.partition_key] != embedded_weekends().get(request.partition_key)
        lean = [only] if only else [*(["race_calendar"] if changed else []), *LEAN[request.job_name]]
        code = dg.Definitions(assets=self.defs.assets, asset_checks=self.defs.asset_checks if whole or checked else [],
                              jobs=self.defs.jobs, resources=lent(self.folder), executor=dg.in_process_executor)
        return code.resolve_job_def(request.job_name).execute_in_process(
            partition_key=request.partition_key, tags=request.tags, instance=self.instance, raise_on_error=False,
            asset_selection=None if whole else [dg.AssetKey(name) for name in lean]).success

    def load_by_hand(self, first: str, last: str, *assets: str) -> None:
        """What somebody does at the command line: a range of weekends in one run."""
        assert dg.materialize(self.defs.assets, selection=dg.AssetSelection.assets(*assets),
                              resources=lent(self.folder), instance=self.instance, tags=of_range(first, last)).success

    def promote(self, checkpoint: str) -> None:
        """What `f1 promote` does."""
        with lent(self.folder)["warehouse"].write("promote") as connection:
            promote(connection, checkpoint, "to see", SetClock.at, self.folder / "checkpoints")

    def start_and_die(self, request: dg.RunRequest) -> None:
        """A run whose process is killed: it stays STARTED for ever."""
        job = self.defs.resolve_job_def(request.job_name)
        run = self.instance.create_run_for_job(
            job, tags={**request.tags, "dagster/partition": request.partition_key},
            status=dg.DagsterRunStatus.NOT_STARTED)
        self.instance.report_dagster_event(
            DagsterEvent(DagsterEventType.RUN_START.value, job.name), run_id=run.run_id)
        assert self.instance.get_run_by_id(run.run_id).status == dg.DagsterRunStatus.STARTED

    def settle(self) -> list[tuple[str, str]]:
        """Tick and run until nothing is asked for any more; what was asked for."""
        before = len(self.asked)
        while request := self.tick():
            self.run(request)
            assert len(self.asked) - before < 12, self.asked[before:]
        return self.asked[before:]

    def weekend(self, key: str) -> list[tuple[str, str]]:
        """A weekend on which nothing happens but racing."""
        starts = self.world.weekends[key].sessions
        before = len(self.asked)
        self.at(starts["qualifying"] + timedelta(hours=2)).settle()
        self.at(starts["race"] + timedelta(hours=4)).settle()
        return self.asked[before:]

    def runs(self) -> list[tuple[str, str, str, str]]:
        """(weekend, phase, version, status) of every run that the sensor asked for, the oldest first."""
        return [(run.tags["dagster/partition"], run.job_name, run.tags["f1/data_version"], run.status.value)
                for run in reversed(self.instance.get_runs()) if "f1/data_version" in run.tags]

    def rows(self, sql: str) -> list[tuple]:
        with Warehouse(path=str(self.folder / "f1.duckdb")).read() as connection:
            return connection.execute(sql).fetchall()
