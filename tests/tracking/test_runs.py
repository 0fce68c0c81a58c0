"""What MLflow says of Dagster runs: which failed, which belong together, and that nothing mixes."""
import os
import subprocess
import sys
from pathlib import Path

import dagster as dg
import mlflow
import pytest

from f1_pipelines.resources.tracking import Tracking
from f1_pipelines.tracking.store import TrackingStore


@dg.asset
def trained(context: dg.AssetExecutionContext, tracking: Tracking) -> dg.MaterializeResult:
    with tracking.run(context, "trained", {"epochs": 3}, {"data_version": "sample-1"}) as run:
        run.curve("loss", [3.0, 2.0, 1.5])
        run.metrics({"spearman": 0.7})
        return dg.MaterializeResult(metadata={"mlflow": run.page})


@dg.asset(deps=[trained])
def updated(context: dg.AssetExecutionContext, tracking: Tracking) -> None:
    with tracking.run(context, "updated"):
        raise ValueError("no race to learn from")


@dg.asset(deps=[trained])
def untracked() -> None:
    raise ValueError("not tracked, and failed all the same")


@pytest.fixture
def execute(store):
    """Materialize assets in this process with a store."""
    def materialize(*assets: dg.AssetsDefinition, to: TrackingStore = store, instance=None):
        return dg.materialize(list(assets), resources={"tracking": lent(to)}, raise_on_error=False, instance=instance)
    return materialize


def lent(store: TrackingStore) -> Tracking:
    return Tracking(mlflow_tracking_uri=store.uri, folder=str(store.folder))


def runs(store: TrackingStore) -> dict[str, mlflow.entities.Run]:
    """All runs by name; that of the Dagster run is called `whole`."""
    with store.open() as opened:
        found = opened.client.search_runs([opened.experiment])
    told = {"whole" if "dagster_run_id" in run.data.tags else run.info.run_name: run for run in found}
    assert len(told) == len(found), "a run twice"
    return told


def statuses(store: TrackingStore) -> dict[str, str]:
    return {name: run.info.status for name, run in runs(store).items()}


def test_a_failed_step_says_failed_and_its_finished_sister_finished(execute, store):
    assert not execute(trained, updated).success
    assert statuses(store) == {"whole": "FAILED", "trained": "FINISHED", "updated": "FAILED"}


def test_a_run_that_failed_in_a_step_without_tracking_says_failed(execute, store):
    assert not execute(trained, untracked).success
    assert statuses(store) == {"whole": "FAILED", "trained": "FINISHED"}


def test_everything_is_finished_when_it_went_well_and_can_be_read(execute, store):
    assert execute(trained).success
    assert statuses(store) == {"whole": "FINISHED", "trained": "FINISHED"}
    run = runs(store)["trained"]
    assert run.data.params == {"epochs": "3"}
    assert run.data.metrics == {"loss": 1.5, "spearman": 0.7}
    assert run.data.tags["data_version"] == "sample-1"
    with store.open() as opened:
        curve = opened.client.get_metric_history(run.info.run_id, "loss")
    assert [(point.step, point.value) for point in curve] == [(1, 3.0), (2, 2.0), (3, 1.5)]


def test_run_ids_lead_both_ways(execute, store):
    with dg.DagsterInstance.ephemeral() as instance:
        result = execute(trained, instance=instance)
        told = runs(store)
        assert told["whole"].data.tags["dagster_run_id"] == result.run_id
        assert told["whole"].data.tags["code_version"]
        assert told["trained"].data.tags["mlflow.parentRunId"] == told["whole"].info.run_id
        assert instance.get_run_by_id(result.run_id).tags["mlflow_run_id"] == told["whole"].info.run_id
    [materialized] = result.asset_materializations_for_node("trained")
    assert told["trained"].info.run_id in materialized.metadata["mlflow"].text


def test_two_runs_of_one_process_do_not_mix(execute, store, migrated, tmp_path):
    other = TrackingStore(f"sqlite:///{tmp_path / 'other' / 'mlflow.db'}", tmp_path / "other")
    other.folder.mkdir()
    other.file.write_bytes(migrated.read_bytes())
    before = mlflow.get_tracking_uri(), dict(os.environ)
    first, second = execute(trained), execute(trained, updated, to=other)
    assert runs(store)["whole"].data.tags["dagster_run_id"] == first.run_id
    assert runs(other)["whole"].data.tags["dagster_run_id"] == second.run_id
    assert statuses(store) == {"whole": "FINISHED", "trained": "FINISHED"}
    assert (mlflow.get_tracking_uri(), dict(os.environ)) == before
    assert mlflow.active_run() is None


def test_a_resource_that_is_used_again_begins_another_run(store):
    tracking = lent(store)
    ids = [dg.materialize([trained], resources={"tracking": tracking}).run_id for _ in range(2)]
    with store.open() as opened:
        found = opened.client.search_runs([opened.experiment], "tags.dagster_run_id != ''")
    assert {run.data.tags["dagster_run_id"] for run in found} == set(ids)


def test_a_store_that_is_away_costs_a_warning_not_the_model(execute, tmp_path):
    away = TrackingStore("http://127.0.0.1:9", tmp_path)
    result = execute(trained, to=away)
    assert result.success
    [materialized] = result.asset_materializations_for_node("trained")
    assert materialized.metadata["mlflow"].text.startswith("not tracked: ")


def test_a_store_that_fails_on_the_way_is_told_once_and_ends_with_the_next_run(execute, store):
    @dg.asset
    def unlucky(context: dg.AssetExecutionContext, tracking: Tracking) -> dg.MaterializeResult:
        with tracking.run(context, "unlucky") as run:
            store.file.rename(store.file.with_suffix(".away"))
            run.metrics({"spearman": 0.7})
            run.metrics({"spearman": 0.8})
            store.file.with_suffix(".away").rename(store.file)
            return dg.MaterializeResult(metadata={"mlflow": run.page})

    with dg.DagsterInstance.ephemeral() as instance:
        result = execute(unlucky, instance=instance)
        assert result.success
        [materialized] = result.asset_materializations_for_node("unlucky")
        assert materialized.metadata["mlflow"].text.startswith("not tracked: ")
        assert statuses(store) == {"whole": "RUNNING", "unlucky": "RUNNING"}
        execute(trained, instance=instance)
    with store.open() as opened:
        found = opened.client.search_runs([opened.experiment], f"tags.dagster_run_id = '{result.run_id}'")
    assert found[0].info.status == "FINISHED"


def test_without_a_store_nothing_is_tracked(tmp_path):
    result = dg.materialize([trained], resources={"tracking": Tracking(folder=str(tmp_path))})
    [materialized] = result.asset_materializations_for_node("trained")
    assert materialized.metadata["mlflow"].text == "tracking is off"
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_running_ends_as_dagster_says(execute, store):
    with dg.DagsterInstance.ephemeral() as instance:
        lost = execute(trained, instance=instance)
        told = runs(store)
        assert len(told) == 2
        with store.open() as opened:  # as kill -9 leaves it
            for run in told.values():
                opened.client.update_run(run.info.run_id, status="RUNNING")
        instance.report_run_failed(instance.get_run_by_id(lost.run_id))
        execute(trained, instance=instance)
    with store.open() as opened:
        for run in told.values():
            assert opened.client.get_run(run.info.run_id).info.status == "FAILED"


STEP = """
import sys
from pathlib import Path
import dagster as dg
from f1_pipelines.tracking.dagster_runs import run_of
from f1_pipelines.tracking.store import TrackingStore

store = TrackingStore(sys.argv[1], Path(sys.argv[2]))
with store.open(), dg.DagsterInstance.ephemeral() as instance:
    print(run_of(dg.DagsterRun("job", "11111111-1111-4111-8111-111111111111"), store, instance))
raise ValueError("a step that fails, and a process that ends")
"""


def test_two_processes_on_a_new_store_share_one_run_and_neither_finishes_it(tmp_path: Path):
    store = TrackingStore(f"sqlite:///{tmp_path / 'new' / 'mlflow.db'}", tmp_path / "new")
    steps = [subprocess.Popen([sys.executable, "-Wignore", "-c", STEP, store.uri, str(store.folder)], text=True,
                              cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(2)]
    told = [step.communicate(timeout=200) for step in steps]
    ids = {out.strip() for out, _ in told}
    assert len(ids) == 1 and all(ids), told
    assert statuses(store) == {"whole": "RUNNING"}
    assert [path.name for path in tmp_path.iterdir()] == ["new"], "nothing falls into the working directory"
