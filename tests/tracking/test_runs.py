"""MLflow runs of Dagster runs: their status, how they belong together, and that they don't mix."""
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
    raise ValueError("fails without tracking")


@pytest.fixture
def execute(store):
    """Materialize assets in this process with a store."""
    def materialize(*assets: dg.AssetsDefinition, to: TrackingStore = store, instance=None):
        return dg.materialize(list(assets), resources={"tracking": tracking_of(to)}, raise_on_error=False,
                              instance=instance)
    return materialize


def tracking_of(store: TrackingStore) -> Tracking:
    return Tracking(mlflow_tracking_uri=store.uri, folder=str(store.folder))


def runs(store: TrackingStore) -> dict[str, mlflow.entities.Run]:
    """All runs by name; that of the Dagster run is called `parent`."""
    with store.open() as opened:
        all_runs = opened.client.search_runs([opened.experiment])
    by_name = {"parent" if "dagster_run_id" in run.data.tags else run.info.run_name: run for run in all_runs}
    assert len(by_name) == len(all_runs), "a run twice"
    return by_name


def statuses(store: TrackingStore) -> dict[str, str]:
    return {name: run.info.status for name, run in runs(store).items()}


def test_a_failed_step_is_failed_and_a_finished_one_of_its_run_finished(execute, store):
    assert not execute(trained, updated).success
    assert statuses(store) == {"parent": "FAILED", "trained": "FINISHED", "updated": "FAILED"}


def test_a_run_that_failed_in_an_untracked_step_is_failed(execute, store):
    assert not execute(trained, untracked).success
    assert statuses(store) == {"parent": "FAILED", "trained": "FINISHED"}


def test_a_successful_run_is_finished_and_logs_params_metrics_and_tags(execute, store):
    assert execute(trained).success
    assert statuses(store) == {"parent": "FINISHED", "trained": "FINISHED"}
    run = runs(store)["trained"]
    assert run.data.params == {"epochs": "3"}
    assert run.data.metrics == {"loss": 1.5, "spearman": 0.7}
    assert run.data.tags["data_version"] == "sample-1"
    with store.open() as opened:
        curve = opened.client.get_metric_history(run.info.run_id, "loss")
    assert [(point.step, point.value) for point in curve] == [(1, 3.0), (2, 2.0), (3, 1.5)]


def test_dagster_and_mlflow_runs_have_each_others_ids(execute, store):
    with dg.DagsterInstance.ephemeral() as instance:
        result = execute(trained, instance=instance)
        tracked = runs(store)
        assert tracked["parent"].data.tags["dagster_run_id"] == result.run_id
        assert tracked["parent"].data.tags["code_version"]
        assert tracked["trained"].data.tags["mlflow.parentRunId"] == tracked["parent"].info.run_id
        assert instance.get_run_by_id(result.run_id).tags["mlflow_run_id"] == tracked["parent"].info.run_id
    [materialized] = result.asset_materializations_for_node("trained")
    assert tracked["trained"].info.run_id in materialized.metadata["mlflow"].text


def test_two_runs_of_one_process_do_not_mix(execute, store, migrated, tmp_path):
    other = TrackingStore(f"sqlite:///{tmp_path / 'other' / 'mlflow.db'}", tmp_path / "other")
    other.folder.mkdir()
    other.file.write_bytes(migrated.read_bytes())
    before = mlflow.get_tracking_uri(), dict(os.environ)
    first, second = execute(trained), execute(trained, updated, to=other)
    assert runs(store)["parent"].data.tags["dagster_run_id"] == first.run_id
    assert runs(other)["parent"].data.tags["dagster_run_id"] == second.run_id
    assert statuses(store) == {"parent": "FINISHED", "trained": "FINISHED"}
    assert (mlflow.get_tracking_uri(), dict(os.environ)) == before
    assert mlflow.active_run() is None


def test_a_reused_resource_starts_another_run(store):
    tracking = tracking_of(store)
    ids = [dg.materialize([trained], resources={"tracking": tracking}).run_id for _ in range(2)]
    with store.open() as opened:
        parents = opened.client.search_runs([opened.experiment], "tags.dagster_run_id != ''")
    assert {run.data.tags["dagster_run_id"] for run in parents} == set(ids)


def test_an_unreachable_store_is_a_warning_not_a_failure(execute, tmp_path):
    unreachable = TrackingStore("http://127.0.0.1:9", tmp_path)
    result = execute(trained, to=unreachable)
    assert result.success
    [materialized] = result.asset_materializations_for_node("trained")
    assert materialized.metadata["mlflow"].text.startswith("not tracked: ")


def test_a_store_that_fails_during_a_run_is_a_warning_and_the_next_run_ends_it(execute, store):
    @dg.asset
    def unlucky(context: dg.AssetExecutionContext, tracking: Tracking) -> dg.MaterializeResult:
        with tracking.run(context, "unlucky") as run:
            store.file.rename(store.file.with_suffix(".moved"))
            run.metrics({"spearman": 0.7})
            run.metrics({"spearman": 0.8})
            store.file.with_suffix(".moved").rename(store.file)
            return dg.MaterializeResult(metadata={"mlflow": run.page})

    with dg.DagsterInstance.ephemeral() as instance:
        result = execute(unlucky, instance=instance)
        assert result.success
        [materialized] = result.asset_materializations_for_node("unlucky")
        assert materialized.metadata["mlflow"].text.startswith("not tracked: ")
        assert statuses(store) == {"parent": "RUNNING", "unlucky": "RUNNING"}
        execute(trained, instance=instance)
    with store.open() as opened:
        parents = opened.client.search_runs([opened.experiment], f"tags.dagster_run_id = '{result.run_id}'")
    assert parents[0].info.status == "FINISHED"


def test_without_a_store_nothing_is_tracked(tmp_path):
    result = dg.materialize([trained], resources={"tracking": Tracking(folder=str(tmp_path))})
    [materialized] = result.asset_materializations_for_node("trained")
    assert materialized.metadata["mlflow"].text == "tracking is off"
    assert list(tmp_path.iterdir()) == []


def test_runs_left_by_a_killed_process_end_with_the_status_of_the_dagster_run(execute, store):
    with dg.DagsterInstance.ephemeral() as instance:
        result = execute(trained, instance=instance)
        tracked = runs(store)
        assert len(tracked) == 2
        with store.open() as opened:  # as after kill -9
            for run in tracked.values():
                opened.client.update_run(run.info.run_id, status="RUNNING")
        instance.report_run_failed(instance.get_run_by_id(result.run_id))
        execute(trained, instance=instance)
    with store.open() as opened:
        for run in tracked.values():
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
    outputs = [step.communicate(timeout=200) for step in steps]
    ids = {out.strip() for out, _ in outputs}
    assert len(ids) == 1 and all(ids), outputs
    assert statuses(store) == {"parent": "RUNNING"}
    assert [path.name for path in tmp_path.iterdir()] == ["new"], "no files in the working directory"
