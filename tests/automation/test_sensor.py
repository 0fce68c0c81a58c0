"""The sensor where there is nothing to look at yet."""
from datetime import UTC, datetime, timedelta

import dagster as dg
import pytest
from dagster._core.storage.dagster_run import DagsterRun

from f1_pipelines.assets.jobs import post_race
from f1_pipelines.assets.sensors import ASKED_AT_TAG, VERSION_TAG, attempts_of, weekend_sensor
from f1_pipelines.automation.attempts import phase_status
from f1_pipelines.resources.race_data import Clock, RaceData
from f1_pipelines.resources.warehouse import Warehouse


def test_without_a_warehouse_or_without_results_it_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("F1_WAREHOUSE", str(tmp_path / "f1.duckdb"))
    warehouse = Warehouse(path=str(tmp_path / "f1.duckdb"))
    lent = {"warehouse": warehouse, "clock": Clock(fixed="2026-08-22T06:00:00+00:00"),
            "race_data": RaceData(source="sample", f1db_folder=str(tmp_path), fastf1_cache=str(tmp_path))}

    def says() -> str:
        with dg.build_sensor_context(resources=lent) as context:
            return weekend_sensor(context).skip_reason.skip_message

    assert "no warehouse at" in says() and "make demo" in says()
    with warehouse.write("nothing yet"):
        pass
    assert "no official result is stored yet" in says()


def test_it_is_off_until_somebody_turns_it_on_and_knows_its_jobs():
    assert weekend_sensor.default_status == dg.DefaultSensorStatus.STOPPED
    assert {job.name for job in weekend_sensor.jobs} == {"pre_race", "post_race", "next_prediction"}


def a_run(instance: dg.DagsterInstance, status: dg.DagsterRunStatus, asked_at: datetime,
          again: DagsterRun | None = None) -> DagsterRun:
    """A run of the sensor's; `again`: the one that it re-executes, whose tags Dagster gives it."""
    tags = {"dagster/partition": "2026-china", VERSION_TAG: "v1", ASKED_AT_TAG: asked_at.isoformat()}
    return instance.create_run_for_job(
        dg.job(name=post_race.name)(lambda: None), tags=again.tags if again else tags, status=status,
        parent_run_id=again and again.run_id, root_run_id=again and again.run_id)


@pytest.fixture
def instance():
    with dg.DagsterInstance.ephemeral() as opened:
        yield opened


def test_a_run_that_is_re_executed_is_as_young_as_it_is(instance):
    now = datetime.now(UTC)
    for hours in (8, 7, 5):
        failed = a_run(instance, dg.DagsterRunStatus.FAILURE, now - timedelta(hours=hours))
    assert phase_status(attempts_of(instance, ["2026-china"]), "v1", None, now).state == "given_up"
    again = a_run(instance, dg.DagsterRunStatus.STARTED, now, again=failed)
    newest, *others = attempts_of(instance, ["2026-china"])
    assert phase_status([newest, *others], "v1", None, now).why.startswith(f"run {again.run_id[:8]} is on it since")
    assert newest.asked_at >= now
    assert [one.asked_at for one in others] == [now - timedelta(hours=hours) for hours in (5, 7, 8)]


def test_under_another_clock_the_instants_are_those_of_that_clock(instance):
    then, ahead = datetime(2025, 3, 1, tzinfo=UTC), datetime.now(UTC) + timedelta(days=400)
    a_run(instance, dg.DagsterRunStatus.SUCCESS, then)
    a_run(instance, dg.DagsterRunStatus.STARTED, ahead, again=a_run(instance, dg.DagsterRunStatus.FAILURE, ahead))
    assert [one.asked_at for one in attempts_of(instance, ["2026-china"])] == [ahead, ahead, then]
