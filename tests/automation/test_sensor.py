"""The sensor without data, its default status, and the times of its runs."""
from datetime import UTC, datetime, timedelta

import dagster as dg
import pytest
from dagster._core.storage.dagster_run import DagsterRun

from f1_pipelines.assets.jobs import post_race
from f1_pipelines.assets.sensors import REQUESTED_AT_TAG, VERSION_TAG, attempts_of, weekend_sensor
from f1_pipelines.automation.attempts import phase_status
from f1_pipelines.resources.race_data import Clock, RaceData
from f1_pipelines.resources.warehouse import Warehouse


def test_without_a_warehouse_or_results_the_skip_reason_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("F1_WAREHOUSE", str(tmp_path / "f1.duckdb"))
    warehouse = Warehouse(path=str(tmp_path / "f1.duckdb"))
    resources = {"warehouse": warehouse, "clock": Clock(fixed="2026-08-22T06:00:00+00:00"),
                 "race_data": RaceData(source="sample", f1db_folder=str(tmp_path), fastf1_cache=str(tmp_path))}

    def skip_reason() -> str:
        with dg.build_sensor_context(resources=resources) as context:
            return weekend_sensor(context).skip_reason.skip_message

    assert "no warehouse at" in skip_reason() and "make demo" in skip_reason()
    with warehouse.write("no rows"):
        pass
    assert "no official result is stored yet" in skip_reason()


def test_the_sensor_is_off_by_default_and_has_three_jobs():
    assert weekend_sensor.default_status == dg.DefaultSensorStatus.STOPPED
    assert {job.name for job in weekend_sensor.jobs} == {"pre_race", "post_race", "next_prediction"}


def create_run(instance: dg.DagsterInstance, status: dg.DagsterRunStatus, requested_at: datetime,
               parent: DagsterRun | None = None) -> DagsterRun:
    """Create a run of the sensor; a re-execution of `parent` has its tags, as in Dagster."""
    tags = {"dagster/partition": "2026-china", VERSION_TAG: "v1", REQUESTED_AT_TAG: requested_at.isoformat()}
    return instance.create_run_for_job(
        dg.job(name=post_race.name)(lambda: None), tags=parent.tags if parent else tags, status=status,
        parent_run_id=parent and parent.run_id, root_run_id=parent and parent.run_id)


@pytest.fixture
def instance():
    with dg.DagsterInstance.ephemeral() as ephemeral:
        yield ephemeral


def test_a_re_executed_run_counts_from_its_own_creation(instance):
    now = datetime.now(UTC)
    for hours in (8, 7, 5):
        failed = create_run(instance, dg.DagsterRunStatus.FAILURE, now - timedelta(hours=hours))
    assert phase_status(attempts_of(instance, ["2026-china"]), "v1", None, now).state == "given_up"
    retry = create_run(instance, dg.DagsterRunStatus.STARTED, now, parent=failed)
    newest, *others = attempts_of(instance, ["2026-china"])
    assert phase_status([newest, *others], "v1", None, now).why.startswith(f"run {retry.run_id[:8]} is running since")
    assert newest.requested_at >= now
    assert [attempt.requested_at for attempt in others] == [now - timedelta(hours=hours) for hours in (5, 7, 8)]


def test_request_times_are_those_of_the_sensors_clock(instance):
    past, future = datetime(2025, 3, 1, tzinfo=UTC), datetime.now(UTC) + timedelta(days=400)
    create_run(instance, dg.DagsterRunStatus.SUCCESS, past)
    failed = create_run(instance, dg.DagsterRunStatus.FAILURE, future)
    create_run(instance, dg.DagsterRunStatus.STARTED, future, parent=failed)
    assert [attempt.requested_at for attempt in attempts_of(instance, ["2026-china"])] == [future, future, past]
