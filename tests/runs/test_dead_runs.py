"""Runs whose processes are gone are named and ended; no run that lives, or may live elsewhere, is touched."""
import os
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.events import EngineEventData
from dagster._core.execution.backfill import BulkActionStatus, PartitionBackfill

from f1_pipelines.assets.sensors import weekend_sensor
from f1_pipelines.cli.doctor import diagnose
from f1_pipelines.resources.race_data import Clock, RaceData
from f1_pipelines.resources.warehouse import Warehouse
from f1_pipelines.runs import dead_runs, processes
from f1_pipelines.runs import host as run_host
from f1_pipelines.runs.dead_runs import end_lost_runs, free_pool_slots, run_states
from f1_pipelines.runs.host import HOST_TAG, Host, RunProcess
from tests.cli.test_doctor import hold, home, kill, state  # noqa: F401  fixtures

pytestmark = pytest.mark.xdist_group("dead-runs")  # what they share is built once
HERE = Host("pitwall", "machine-1", "boot-1", "pid:[1]")
STARTED = dg.DagsterRunStatus.STARTED


@dg.job
def learning():
    pass


def said() -> tuple[bool, str]:
    """What the doctor says of runs."""
    [finding] = [finding for finding in diagnose() if finding.what == "runs"]
    return finding.well, finding.text


@pytest.fixture(scope="module")
def storage(tmp_path_factory) -> Path:
    """What Dagster writes into a new home, which takes a second or two."""
    folder = tmp_path_factory.mktemp("home")
    (folder / "dagster.yaml").touch()
    with dg.DagsterInstance.from_config(str(folder)) as opened:
        opened.get_runs()
        opened.event_log_storage.get_concurrency_keys()
    return folder


@pytest.fixture
def instance(home, storage):  # noqa: F811
    shutil.copytree(storage, home, dirs_exist_ok=True, ignore=shutil.ignore_patterns("dagster.yaml"))
    with dg.DagsterInstance.from_config(str(home)) as opened:
        yield opened


@pytest.fixture
def here(monkeypatch):
    """This machine, under a name that the test chooses."""
    monkeypatch.setattr(Host, "here", classmethod(lambda _: HERE))


@pytest.fixture
def run_of(instance):
    """Makes a run that says it is under way, holds the pool and has this process, or none."""
    def make(process: RunProcess | None, status: dg.DagsterRunStatus = STARTED, pids: tuple[int, ...] = ()) -> str:
        run = instance.create_run_for_job(learning, status=status)
        if process:
            instance.add_run_tags(run.run_id, replace(process, run_id=process.run_id or run.run_id).tags())
        for pid in pids:
            instance.report_engine_event("names a process", run, EngineEventData({"pid": dg.MetadataValue.text(
                str(pid))}))
        instance.event_log_storage.initialize_concurrency_limit_to_default("gpu")
        instance.event_log_storage.claim_concurrency_slot("gpu", run.run_id, "step")
        return run.run_id

    return make


def process(host: Host = HERE, pid: int | None = None, started: int | None = None, run_id: str = "") -> RunProcess:
    """This process as that of a run, or one that differs from it."""
    own = RunProcess.current(run_id)
    return RunProcess(run_id, host, pid or own.pid, own.started if started is None else started)


def test_a_killed_run_is_named_and_ended_a_living_one_is_not(hold, home):  # noqa: F811
    running, _ = hold("recorded")
    well, told = said()
    assert well and "(holding, STARTED since" in told and told.endswith("is at work and holds pool gpu")
    assert free_pool_slots().startswith("0 runs") and state(home) == (["STARTED"], 1)
    kill(running.pid)
    well, told = said()
    [run_id] = [run.run_id for run in dg.DagsterInstance.from_config(str(home)).get_runs()]
    assert not well and f"run {run_id[:8]} (holding, STARTED since" in told
    assert "has lost its process and holds pool gpu; `f1 doctor --free-pools` ends what is lost" in told
    assert free_pool_slots().startswith("1 runs") and state(home) == (["CANCELED"], 0)
    assert said() == (True, "none under way")


@pytest.mark.parametrize(("of", "expected"), [
    (process(), "alive"),
    (process(started=1), "dead"),  # another process has its id now
    (process(pid=2**22 + 1), "dead"),
    (process(replace(HERE, boot="boot-0")), "dead"),  # the machine was restarted: its id means nothing
    (process(replace(HERE, name="garage"), 2**22 + 1), "elsewhere"),
    (process(replace(HERE, machine="machine-2"), 2**22 + 1), "elsewhere"),
    (process(replace(HERE, pids="pid:[2]"), 2**22 + 1), "elsewhere"),  # in another container
    (process(replace(HERE, machine="", boot="boot-0"), 2**22 + 1), "elsewhere"),
])
def test_host_and_start_are_part_of_the_judgement(here, run_of, instance, of, expected):
    run_id = run_of(of)
    [judged] = run_states(instance)
    assert (judged.run_id, judged.state, judged.pools) == (run_id, expected, ("gpu",))
    well, told = said()
    assert well == (expected != "dead")
    assert free_pool_slots().startswith("1 runs" if expected == "dead" else "0 runs")
    assert instance.get_run_by_id(run_id).status.value == ("CANCELED" if expected == "dead" else "STARTED")
    if expected == "elsewhere":
        assert f"is on {of.host.name}, where f1 doctor can tell" in told and f"--run {run_id}`" in told


def test_two_machines_of_one_name_that_tell_no_id_are_not_one_restarted(here, run_of, instance, monkeypatch):
    nameless = replace(HERE, machine="")
    monkeypatch.setattr(Host, "here", classmethod(lambda _: nameless))
    run_of(process(replace(nameless, boot="boot-0")))
    assert [judged.state for judged in run_states(instance)] == ["elsewhere"]


def test_a_run_elsewhere_is_ended_by_hand_one_at_work_here_is_not(here, run_of, instance):
    gone = run_of(process(replace(HERE, name="garage")))
    assert free_pool_slots(gone).startswith("1 runs")
    assert instance.get_run_by_id(gone).status.value == "CANCELED"
    at_work = run_of(process())
    with pytest.raises(RuntimeError, match="is at work .*stop it in the UI"):
        free_pool_slots(at_work)
    with pytest.raises(RuntimeError, match="nobody is no run that is under way"):
        free_pool_slots("nobody")


@pytest.mark.parametrize(("local", "expected"), [(True, "dead"), (False, "unknown")])
def test_a_run_without_a_host_is_of_this_machine_where_no_other_can_write(run_of, instance, monkeypatch, local,
                                                                          expected):
    monkeypatch.setattr("psutil.disk_partitions", lambda all: [type("disk", (), {
        "mountpoint": "/", "fstype": "ext4" if local else "nfs4"})])
    run_id = run_of(None, pids=(2**22 + 1,))
    assert [judged.state for judged in run_states(instance)] == [expected]
    assert not end_lost_runs(instance, guess_host=False), "what runs by itself does not guess"
    well, told = said()
    assert well != local and (local or f"if its process is gone there, `f1 doctor --free-pools --run {run_id}`" in told)
    assert free_pool_slots().startswith("1 runs" if local else "0 runs")


def test_a_process_that_was_born_after_the_event_is_another_one(run_of, instance, monkeypatch):
    monkeypatch.setattr(processes, "_REUSED_AFTER_S", 1.0)
    older, named_at = os.getpid(), time.time()
    assert processes.may_be(older, named_at)
    later = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        assert processes.may_be(later.pid, time.time())
        assert not processes.may_be(later.pid, named_at - 30)
    finally:
        later.kill()
        later.wait()
    assert not processes.may_be(later.pid, time.time())


def test_a_run_that_was_re_executed_has_not_the_process_of_the_one_before(here, run_of, instance):
    run_of(process(pid=2**22 + 1, run_id="the run before"), dg.DagsterRunStatus.STARTING)
    assert [judged.state for judged in run_states(instance)] == ["alive"], "about to start"


def test_a_run_that_never_started_is_ended_after_a_while(run_of, instance, monkeypatch):
    run_id = run_of(None, dg.DagsterRunStatus.STARTING)
    assert said()[0] and free_pool_slots().startswith("0 runs")
    monkeypatch.setattr(dead_runs, "NEVER_STARTED_AFTER", timedelta(0))
    well, told = said()
    assert not well and "never started and holds pool gpu" in told
    assert not end_lost_runs(instance, guess_host=False), "the daemon sees to it"
    assert free_pool_slots().startswith("1 runs")
    assert instance.get_run_by_id(run_id).status.value == "CANCELED"


@pytest.mark.parametrize("how", ["failed", "deleted"])
def test_slots_of_a_run_that_is_over_are_freed(here, run_of, instance, how):
    run_id = run_of(process(pid=2**22 + 1), dg.DagsterRunStatus.FAILURE)
    if how == "deleted":
        instance.run_storage.delete_run(run_id)
    well, told = said()
    assert not well and "is over and holds pool gpu" in told
    assert free_pool_slots().startswith("1 runs")
    assert not instance.event_log_storage.get_concurrency_info("gpu").claimed_slots
    assert how == "deleted" or instance.get_run_by_id(run_id).status.value == "FAILURE"


def test_a_step_that_outlives_its_failed_run_keeps_its_slot(here, run_of, instance):
    run_of(process(pid=2**22 + 1), dg.DagsterRunStatus.FAILURE, pids=(os.getpid(),))
    assert free_pool_slots().startswith("0 runs")


def test_a_run_that_ends_while_it_is_judged_is_left_alone(here, run_of, instance, monkeypatch):
    run_id = run_of(process(pid=2**22 + 1))
    [judged] = run_states(instance)
    instance.report_run_failed(instance.get_run_by_id(run_id), "by itself")
    assert not dead_runs._end(instance, judged)
    assert instance.get_run_by_id(run_id).status.value == "FAILURE"


def test_a_backfill_that_waits_for_the_daemon_is_no_fault(instance):
    instance.add_backfill(PartitionBackfill("waits", BulkActionStatus.REQUESTED, False, {}, time.time()))
    assert said() == (True, "backfills under way: 1 (`make dev` goes on with them)")
    assert free_pool_slots().startswith("0 runs")


def test_the_sensor_ends_dead_runs_and_goes_on(here, run_of, instance, tmp_path):
    dead, guessed = run_of(process(pid=2**22 + 1)), run_of(None, pids=(2**22 + 1,))
    lent = {"warehouse": Warehouse(path=str(tmp_path / "f1.duckdb")), "clock": Clock(),
            "race_data": RaceData(source="sample", f1db_folder=str(tmp_path), fastf1_cache=str(tmp_path))}
    began = time.monotonic()
    with dg.build_sensor_context(instance=instance, resources=lent) as context:
        assert "no warehouse at" in weekend_sensor(context).skip_reason.skip_message
    assert time.monotonic() - began < 2
    assert [instance.get_run_by_id(run_id).status.value for run_id in (dead, guessed)] == ["CANCELED", "STARTED"]


def test_a_run_of_the_project_says_where_it_is(instance):
    from f1_pipelines.definitions import defs

    assert defs.executor is run_host.recorded_in_process_executor
    with dg.execute_job(dg.reconstructable(_short), instance=instance) as result:
        run = instance.get_run_by_id(result.run_id)
    assert run.tags[HOST_TAG] == Host.here().name
    assert RunProcess.of(run) == RunProcess.current(run.run_id)


@dg.op
def _nothing():
    pass


@dg.job(executor_def=run_host.recorded_in_process_executor)
def _short():
    _nothing()
