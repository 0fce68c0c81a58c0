"""Runs whose processes died are reported and ended; runs that are alive, here or possibly elsewhere, are not."""
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

pytestmark = pytest.mark.xdist_group("dead-runs")  # build the shared storage once
HERE = Host("pitwall", "machine-1", "boot-1", "pid:[1]")
STARTED = dg.DagsterRunStatus.STARTED


@dg.job
def learning():
    pass


def doctor_finding() -> tuple[bool, str]:
    """What `f1 doctor` finds about runs: whether all is well, and the text."""
    [finding] = [finding for finding in diagnose() if finding.what == "runs"]
    return finding.well, finding.text


@pytest.fixture(scope="module")
def storage(tmp_path_factory) -> Path:
    """The files of a new Dagster home, which takes a second or two to create."""
    folder = tmp_path_factory.mktemp("home")
    (folder / "dagster.yaml").touch()
    with dg.DagsterInstance.from_config(str(folder)) as instance:
        instance.get_runs()
        instance.event_log_storage.get_concurrency_keys()
    return folder


@pytest.fixture
def instance(home, storage):  # noqa: F811
    shutil.copytree(storage, home, dirs_exist_ok=True, ignore=shutil.ignore_patterns("dagster.yaml"))
    with dg.DagsterInstance.from_config(str(home)) as instance:
        yield instance


@pytest.fixture
def here(monkeypatch):
    """This machine with a fixed name and ids."""
    monkeypatch.setattr(Host, "here", classmethod(lambda _: HERE))


@pytest.fixture
def run_of(instance):
    """A function that creates an unfinished run with a pool slot, a recorded process if any, and events with `pids`."""
    def create(process: RunProcess | None, status: dg.DagsterRunStatus = STARTED, pids: tuple[int, ...] = ()) -> str:
        run = instance.create_run_for_job(learning, status=status)
        if process:
            instance.add_run_tags(run.run_id, replace(process, run_id=process.run_id or run.run_id).tags())
        for pid in pids:
            instance.report_engine_event("names a process", run, EngineEventData({"pid": dg.MetadataValue.text(
                str(pid))}))
        instance.event_log_storage.initialize_concurrency_limit_to_default("gpu")
        instance.event_log_storage.claim_concurrency_slot("gpu", run.run_id, "step")
        return run.run_id

    return create


def process(host: Host = HERE, pid: int | None = None, started: int | None = None, run_id: str = "") -> RunProcess:
    """This process as the process of a run, with changes."""
    current = RunProcess.current(run_id)
    return RunProcess(run_id, host, pid or current.pid, current.started if started is None else started)


def test_a_killed_run_is_reported_and_ended_a_running_one_is_not(hold, home):  # noqa: F811
    running, _ = hold("recorded")
    well, text = doctor_finding()
    assert well and "(holding, STARTED since" in text and text.endswith("is running and holds pool gpu")
    assert free_pool_slots().startswith("0 runs") and state(home) == (["STARTED"], 1)
    kill(running.pid)
    well, text = doctor_finding()
    [run_id] = [run.run_id for run in dg.DagsterInstance.from_config(str(home)).get_runs()]
    assert not well and f"run {run_id[:8]} (holding, STARTED since" in text
    assert "has lost its process and holds pool gpu; `f1 doctor --free-pools` ends lost runs" in text
    assert free_pool_slots().startswith("1 runs") and state(home) == (["CANCELED"], 0)
    assert doctor_finding() == (True, "none running")


@pytest.mark.parametrize(("recorded", "expected"), [
    (process(), "alive"),
    (process(started=1), "dead"),  # another process has its id now
    (process(pid=2**22 + 1), "dead"),
    (process(replace(HERE, boot="boot-0")), "dead"),  # the machine was restarted, so ids are reused
    (process(replace(HERE, name="garage"), 2**22 + 1), "elsewhere"),
    (process(replace(HERE, machine="machine-2"), 2**22 + 1), "elsewhere"),
    (process(replace(HERE, pids="pid:[2]"), 2**22 + 1), "elsewhere"),  # in another container
    (process(replace(HERE, machine="", boot="boot-0"), 2**22 + 1), "elsewhere"),
])
def test_the_state_of_a_run_depends_on_host_and_start_time(here, run_of, instance, recorded, expected):
    run_id = run_of(recorded)
    [run_state] = run_states(instance)
    assert (run_state.run_id, run_state.state, run_state.pools) == (run_id, expected, ("gpu",))
    well, text = doctor_finding()
    assert well == (expected != "dead")
    assert free_pool_slots().startswith("1 runs" if expected == "dead" else "0 runs")
    assert instance.get_run_by_id(run_id).status.value == ("CANCELED" if expected == "dead" else "STARTED")
    if expected == "elsewhere":
        assert f"is on {recorded.host.name}; run f1 doctor there" in text and f"--run {run_id}`" in text


def test_hosts_of_one_name_without_machine_ids_may_be_different_machines(here, run_of, instance, monkeypatch):
    without_id = replace(HERE, machine="")
    monkeypatch.setattr(Host, "here", classmethod(lambda _: without_id))
    run_of(process(replace(without_id, boot="boot-0")))
    assert [run_state.state for run_state in run_states(instance)] == ["elsewhere"]


def test_a_run_elsewhere_is_ended_by_id_a_running_one_here_is_not(here, run_of, instance):
    elsewhere = run_of(process(replace(HERE, name="garage")))
    assert free_pool_slots(elsewhere).startswith("1 runs")
    assert instance.get_run_by_id(elsewhere).status.value == "CANCELED"
    running = run_of(process())
    with pytest.raises(RuntimeError, match="is running .*stop it in the UI"):
        free_pool_slots(running)
    with pytest.raises(RuntimeError, match="nonexistent is not an unfinished run"):
        free_pool_slots("nonexistent")


@pytest.mark.parametrize(("local", "expected"), [(True, "dead"), (False, "unknown")])
def test_a_run_without_a_host_is_here_if_no_other_machine_can_write(run_of, instance, monkeypatch, local, expected):
    monkeypatch.setattr("psutil.disk_partitions", lambda all: [type("disk", (), {
        "mountpoint": "/", "fstype": "ext4" if local else "nfs4"})])
    run_id = run_of(None, pids=(2**22 + 1,))
    assert [run_state.state for run_state in run_states(instance)] == [expected]
    assert not end_lost_runs(instance, guess_host=False), "automation does not guess the host"
    well, text = doctor_finding()
    command = f"if its process died there, end it with `f1 doctor --free-pools --run {run_id}`"
    assert well != local and (local or command in text)
    assert free_pool_slots().startswith("1 runs" if local else "0 runs")


def test_a_process_that_started_after_the_event_is_another_one(run_of, instance, monkeypatch):
    monkeypatch.setattr(processes, "_REUSED_AFTER_S", 1.0)
    named_at = time.time()
    assert processes.may_be(os.getpid(), named_at)
    later = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        assert processes.may_be(later.pid, time.time())
        assert not processes.may_be(later.pid, named_at - 30)
    finally:
        later.kill()
        later.wait()
    assert not processes.may_be(later.pid, time.time())


def test_a_re_executed_run_does_not_have_the_process_of_the_run_before(here, run_of, instance):
    run_of(process(pid=2**22 + 1, run_id="the run before"), dg.DagsterRunStatus.STARTING)
    assert [run_state.state for run_state in run_states(instance)] == ["alive"], "about to start"


def test_a_run_that_never_started_is_ended_after_a_while(run_of, instance, monkeypatch):
    run_id = run_of(None, dg.DagsterRunStatus.STARTING)
    assert doctor_finding()[0] and free_pool_slots().startswith("0 runs")
    monkeypatch.setattr(dead_runs, "NEVER_STARTED_AFTER", timedelta(0))
    well, text = doctor_finding()
    assert not well and "never started and holds pool gpu" in text
    assert not end_lost_runs(instance, guess_host=False), "automation leaves it to the daemon"
    assert free_pool_slots().startswith("1 runs")
    assert instance.get_run_by_id(run_id).status.value == "CANCELED"


@pytest.mark.parametrize("deleted", [False, True])
def test_slots_of_an_ended_run_are_freed(here, run_of, instance, deleted):
    run_id = run_of(process(pid=2**22 + 1), dg.DagsterRunStatus.FAILURE)
    if deleted:
        instance.run_storage.delete_run(run_id)
    well, text = doctor_finding()
    assert not well and "has ended and holds pool gpu" in text
    assert free_pool_slots().startswith("1 runs")
    assert not instance.event_log_storage.get_concurrency_info("gpu").claimed_slots
    assert deleted or instance.get_run_by_id(run_id).status.value == "FAILURE"


def test_a_step_that_outlives_its_failed_run_keeps_its_slot(here, run_of, instance):
    run_of(process(pid=2**22 + 1), dg.DagsterRunStatus.FAILURE, pids=(os.getpid(),))
    assert free_pool_slots().startswith("0 runs")


def test_a_run_that_ended_after_the_check_stays_unchanged(here, run_of, instance, monkeypatch):
    run_id = run_of(process(pid=2**22 + 1))
    [run_state] = run_states(instance)
    instance.report_run_failed(instance.get_run_by_id(run_id), "by itself")
    assert not dead_runs._end(instance, run_state)
    assert instance.get_run_by_id(run_id).status.value == "FAILURE"


def test_a_backfill_that_waits_for_the_daemon_is_not_a_fault(instance):
    instance.add_backfill(PartitionBackfill("waits", BulkActionStatus.REQUESTED, False, {}, time.time()))
    assert doctor_finding() == (True, "unfinished backfills: 1 (`make dev` continues them)")
    assert free_pool_slots().startswith("0 runs")


def test_the_sensor_ends_dead_runs_and_continues(here, run_of, instance, tmp_path):
    dead, without_host = run_of(process(pid=2**22 + 1)), run_of(None, pids=(2**22 + 1,))
    resources = {"warehouse": Warehouse(path=str(tmp_path / "f1.duckdb")), "clock": Clock(),
                 "race_data": RaceData(source="sample", f1db_folder=str(tmp_path), fastf1_cache=str(tmp_path))}
    start = time.monotonic()
    with dg.build_sensor_context(instance=instance, resources=resources) as context:
        assert "no warehouse at" in weekend_sensor(context).skip_reason.skip_message
    assert time.monotonic() - start < 2
    assert [instance.get_run_by_id(run_id).status.value for run_id in (dead, without_host)] == ["CANCELED", "STARTED"]


def test_a_run_of_the_project_records_its_machine(instance):
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
