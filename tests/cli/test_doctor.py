"""The doctor reports problems, and ends only runs that lost their process."""
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import dagster as dg
import duckdb
import pytest

from f1_pipelines.cli.doctor import diagnose, free_pool_slots
from f1_pipelines.warehouse.database import WarehouseFile

# Runs a job whose only step holds the pool `gpu`, and writes the pid of the step's process to a file.
HOLD = """
import os, sys, time
import dagster as dg

@dg.op(pool="gpu")
def hold():
    with open("pid.new", "w") as file:
        file.write(str(os.getpid()))
    os.rename("pid.new", "pid")
    time.sleep(120)

@dg.job
def holding():
    hold()

if sys.argv[1:] == ["recorded"]:
    from f1_pipelines.runs.host import recorded_in_process_executor

    @dg.job(name="holding", executor_def=recorded_in_process_executor)
    def recorded():
        hold()

if __name__ == "__main__":
    with dg.DagsterInstance.get() as instance:
        if sys.argv[1] == "in_process":
            holding.execute_in_process(instance=instance)
        elif sys.argv[1] == "recorded":
            dg.execute_job(dg.reconstructable(recorded), instance=instance)
        else:
            dg.execute_job(dg.reconstructable(holding), instance=instance)
"""


@pytest.fixture
def home(tmp_path, monkeypatch) -> Path:
    """A DAGSTER_HOME like that of `make setup`."""
    folder = tmp_path / "home"
    folder.mkdir()
    shutil.copy(Path(__file__).parents[2] / "dagster.yaml", folder)
    monkeypatch.setenv("DAGSTER_HOME", str(folder))
    return folder


@pytest.fixture
def hold(home, tmp_path):
    """Start a run that holds the pool; return its process and the pid of its step's process."""
    started, steps = [], []

    def start(executor: str) -> tuple[subprocess.Popen, int]:
        (tmp_path / "hold.py").write_text(HOLD)
        process = subprocess.Popen([sys.executable, "-Wignore", "hold.py", executor], cwd=tmp_path,
                                   env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
                                   stderr=subprocess.DEVNULL)
        started.append(process)
        deadline = time.monotonic() + 90
        while not (tmp_path / "pid").exists():
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.1)
        steps.append(int((tmp_path / "pid").read_text()))
        return process, steps[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()
    for pid in set(steps) - {process.pid for process in started}:
        kill(pid)


def kill(pid: int) -> None:
    """Kill -9, and wait until the process is gone (or a zombie, if its parent doesn't collect it)."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    time.sleep(0.5)


def state(home: Path) -> tuple[list[str], int]:
    """Statuses of all runs, and the number of claimed slots of the pool."""
    with dg.DagsterInstance.from_config(str(home)) as instance:
        claimed = instance.event_log_storage.get_concurrency_info("gpu").claimed_slots
        return [run.status.value for run in instance.get_runs()], len(claimed)


def test_a_killed_run_is_ended_and_its_slot_freed_but_not_a_living_one(hold, home):
    process, _ = hold("in_process")
    assert free_pool_slots().startswith("0 runs")
    assert state(home) == (["STARTED"], 1)
    process.kill()
    process.wait()
    assert free_pool_slots().startswith("1 runs")
    assert state(home) == (["CANCELED"], 0)


def test_a_step_that_outlives_its_run_keeps_its_slot(hold, home):
    process, step = hold("multiprocess")
    process.kill()
    process.wait()
    assert free_pool_slots().startswith("0 runs")
    assert state(home) == (["STARTED"], 1)
    kill(step)
    assert free_pool_slots().startswith("1 runs")
    assert state(home) == (["CANCELED"], 0)


def test_a_run_without_a_recorded_pid_stays(home):
    @dg.job
    def nothing():
        pass

    with dg.DagsterInstance.from_config(str(home)) as instance:
        instance.create_run_for_job(nothing, status=dg.DagsterRunStatus.STARTED)
    assert free_pool_slots().startswith("0 runs")
    assert state(home)[0] == ["STARTED"]


@pytest.mark.parametrize(("value", "message"), [
    (None, "DAGSTER_HOME is not set"), ("", "DAGSTER_HOME is not set"), ("/nowhere", "an existing folder")])
def test_freeing_pools_without_a_home_is_an_error(monkeypatch, value, message):
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    if value is not None:
        monkeypatch.setenv("DAGSTER_HOME", value)
    with pytest.raises(RuntimeError, match=message):
        free_pool_slots()


@pytest.fixture
def warehouse(tmp_path, monkeypatch) -> WarehouseFile:
    monkeypatch.setenv("F1_WAREHOUSE", str(tmp_path / "f1.duckdb"))
    file = WarehouseFile(tmp_path / "f1.duckdb")
    with file.write("test"):
        pass
    return file


def finding_on(what: str) -> tuple[bool, str]:
    [finding] = [finding for finding in diagnose() if finding.what == what]
    return finding.well, finding.text


def test_an_unpublished_change_is_reported(warehouse):
    assert finding_on("warehouse") == (True, f"0 races in {warehouse.published_path}")
    with duckdb.connect(warehouse.path) as connection:
        connection.execute("COMMENT ON TABLE race.results IS 'changed'")
    well, text = finding_on("warehouse")
    assert not well and "f1.duckdb has changes that f1.published.duckdb lacks" in text
    with warehouse.write("test"):
        pass
    assert finding_on("warehouse")[0]


def test_a_copy_without_its_warehouse_is_reported_with_a_remedy(warehouse):
    warehouse.path.unlink()
    well, text = finding_on("warehouse")
    assert not well and "f1.duckdb is gone, while f1.published.duckdb holds" in text and "`f1 restore`" in text
    shutil.copy(warehouse.published_path, warehouse.path)
    assert finding_on("warehouse")[0]


def test_a_warehouse_of_another_version_is_reported(warehouse):
    with duckdb.connect(warehouse.published_path) as connection:
        connection.execute("UPDATE main.schema_version SET version = 99")
    well, text = finding_on("warehouse")
    assert not well and "f1.published.duckdb holds schema version 99" in text


def test_the_sample_needs_no_network(warehouse, monkeypatch):
    monkeypatch.setenv("F1_SOURCE", "sample")
    well, text = finding_on("source")
    assert well and "embedded" in text and "downloaded" not in text
