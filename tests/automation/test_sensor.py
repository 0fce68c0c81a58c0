"""The sensor where there is nothing to look at yet."""
import dagster as dg

from f1_pipelines.assets.automation import weekend_sensor
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
