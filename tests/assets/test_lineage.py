"""Lineage: every checkpoint and prediction can be rebuilt from its stored rows with the same bits."""
import shutil
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import pytest

from f1_pipelines.assets.features import training_rows
from f1_pipelines.cli import main
from f1_pipelines.definitions import defs
from f1_pipelines.features.history import data_version
from f1_pipelines.forecast.monte_carlo import FieldPace
from f1_pipelines.forecast.monte_carlo_rows import simulated_again, simulated_rows
from f1_pipelines.lineage.rebuild import differences, rebuild
from f1_pipelines.lineage.seen import Untraceable, rows_seen_by
from f1_pipelines.lineage.trace import prove, trace
from f1_pipelines.models.checkpoints import load_checkpoint, stored_checkpoints
from f1_pipelines.promotion import promote
from f1_pipelines.promotion.champion import ancestry
from f1_pipelines.resources.tracking import Tracking
from f1_pipelines.sim import circuit_prior
from f1_pipelines.sources.base import Fetched
from f1_pipelines.sources.classification import classification_hash
from f1_pipelines.tables.race import RESULTS
from f1_pipelines.tracking.registry import MODEL
from f1_pipelines.tracking.store import TrackingStore
from f1_pipelines.warehouse.ingest import store

LOADED = ("race_calendar", "practice_results", "qualifying_results", "race_results", "ranking_features")
PRETRAINED_ON = {"partition": "2025-australia", "until": "2025-bahrain"}  # four races
TRAINING = {"ops": {"pretrained_ranker": {"config": {"seasons": [2025], "temperature": 3.4}}}}


@pytest.fixture(scope="module")
def built(tmp_path_factory, migrated, lend, materialize) -> Path:
    """A ranker pretrained on four races of 2025, updated with two more, which are predicted; tracked in MLflow."""
    folder = tmp_path_factory.mktemp("season")
    shutil.copy(migrated, folder)
    tracking = Tracking(mlflow_tracking_uri=f"sqlite:///{folder / 'mlflow.db'}", folder=str(folder))
    resources = {**lend(folder), "tracking": tracking}
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("F1_WAREHOUSE", str(folder / "f1.duckdb"))
        materialize(resources, *LOADED, "pretrained_ranker", "promoted_ranker", **PRETRAINED_ON,
                    run_config=TRAINING, raises=True)
        materialize(resources, *LOADED, "ewc_ranker", "promoted_ranker", "race_predictions",
                    partition="2025-saudi-arabia", until="2025-miami", raises=True)
    return folder


@pytest.fixture
def season(built: Path, resources, tmp_path: Path) -> None:
    """Copy the built season into the test's own folder."""
    shutil.copytree(built, tmp_path, dirs_exist_ok=True)


def amend(resources, weekend: str) -> None:
    """Swap the first two places of a race."""
    with resources["warehouse"].write("another sheet") as connection:
        sheet = RESULTS.conform(connection.execute(
            "SELECT * FROM race.current_results WHERE weekend = ? ORDER BY official_order", [weekend]).df())
        places = sheet.loc[[1, 0], ["official_order", "finish_position"]].to_numpy()
        sheet.loc[[0, 1], ["official_order", "finish_position"]] = places
        store(connection, Fetched({RESULTS.qualified: sheet.assign(content_hash=classification_hash(sheet))}))


@pytest.fixture
def newest(rows):
    """Newest checkpoint by model, updated through the last race."""
    return lambda: dict(rows("SELECT model, checkpoint FROM ranking.updates WHERE current AND kind = 'ewc' "
                             "AND weekend = '2025-miami'"))


def assert_rebuilt(resources, newest: dict[str, str], folder: Path) -> set[str]:
    """Rebuild the chains of these checkpoints in an empty folder and return the ids of all links."""
    assert set(newest) == {"champion", "f1net_reference"}
    links = set()
    with resources["warehouse"].read() as connection:
        for checkpoint in newest.values():
            assert rebuild(connection, checkpoint, folder).id == checkpoint
            links |= set(ancestry(connection, checkpoint))
    assert len(links) == 8, "of each model: pretrained, adapted and two updates"
    assert {path.name for path in stored_checkpoints(folder)} == links
    for name in links:
        rebuilt, first = ((parent / name / "model.safetensors").read_bytes()
                          for parent in (folder, resources["checkpoints"].folder))
        assert rebuilt == first
    return links


def test_checkpoints_and_predictions_can_be_rebuilt_after_amendments(season, run, rows, resources, newest, tmp_path):
    folder, first = resources["checkpoints"].folder, newest()
    links = assert_rebuilt(resources, first, tmp_path / "first")
    assert links == {checkpoint for (checkpoint,) in rows("SELECT checkpoint FROM ranking.checkpoints")}
    predictions = ["/".join(key) for key in rows("SELECT DISTINCT weekend, stage, checkpoint FROM ranking.predictions")]
    assert {name.split("/")[1] for name in predictions} == {"entry", "practice", "qualifying", "grid"}

    def differing_columns() -> list[list[str]]:
        with resources["warehouse"].read() as connection:
            return [columns for name in predictions if (columns := differences(connection, name, folder))]

    assert differing_columns() == []
    amend(resources, "2025-saudi-arabia")  # a race of the updates
    assert run("ranking_features", "ewc_ranker", partition="2025-miami", raises=True).success
    assert len(links & assert_rebuilt(resources, newest(), tmp_path / "second")) == 2, "only the pretrained ones stay"
    amend(resources, "2025-australia")  # a race of the pretraining
    assert run("ranking_features", "pretrained_ranker", "promoted_ranker", partition="2025-miami", run_config=TRAINING,
               raises=True).success
    [(promoted,)] = rows("SELECT checkpoint FROM ranking.checkpoints WHERE promoted")
    with resources["warehouse"].read() as connection:
        assert rebuild(connection, promoted, tmp_path / "promoted").id == promoted not in links
    assert links == assert_rebuilt(resources, first, tmp_path / "third"), "the old rows are still stored"
    assert differing_columns() == []


def test_simulated_races_can_be_rebuilt(season, run, rows, resources, monkeypatch):
    monkeypatch.setenv("F1_SIMULATED_RACES", "100")
    monkeypatch.setattr("f1_pipelines.forecast.monte_carlo.LEAST_CARS", 50)  # so that five races suffice
    assert run("race_predictions", partition="2025-miami", raises=True).success
    [(stage, checkpoint)] = rows("SELECT DISTINCT stage, checkpoint FROM ranking.simulated_predictions")
    simulated = f"2025-miami/{stage}/{checkpoint}/simulated"
    with resources["warehouse"].read() as connection:
        assert differences(connection, simulated, resources["checkpoints"].folder) == []
        assert simulated in set(trace(connection, "2025-miami")[0].rows["prediction"])
        seen = rows_seen_by(connection, simulated)
    trained = load_checkpoint(resources["checkpoints"].folder / checkpoint).trained
    fitted = replace(circuit_prior("miami", 2025), provenance="fitted", base_lap_s=91.0123456789)
    first = simulated_rows(seen, trained, checkpoint, FieldPace(0.1234567891), {"miami": fitted}, 50, datetime.now(UTC))
    assert set(first["circuit_provenance"]) == {"fitted"}
    assert simulated_again(seen, trained, first).equals(first)


def test_rows_are_stored_unchanged_and_only_once(season, run, rows, resources):
    current = training_rows(resources["warehouse"])
    pretrained = rows("SELECT checkpoint, data_version FROM ranking.checkpoints WHERE kind = 'pretrained' "
                      "AND model = 'champion'")
    with resources["warehouse"].read() as connection:
        stored = rows_seen_by(connection, pretrained[0][0], "train")
    assert data_version(stored) == pretrained[0][1]
    expected = current[current["weekend"].isin(stored["weekend"])].reset_index(drop=True)
    assert (stored.dtypes.astype(str) == expected.dtypes.astype(str)).all()
    assert stored.equals(expected)
    before = rows("SELECT count(*) FROM ranking.rows_seen")
    assert run("pretrained_ranker", run_config=TRAINING, raises=True).success
    assert run("ewc_ranker", partition="2025-miami", raises=True).success
    assert rows("SELECT count(*) FROM ranking.rows_seen") == before


def test_a_trace_leads_to_rows_results_and_runs(season, rows, resources):
    [(newest, run_id)] = rows("SELECT checkpoint, dagster_run FROM ranking.checkpoints WHERE model = 'champion' "
                              "AND trained_through = '2025-miami' AND kind = 'ewc'")
    with resources["warehouse"].read() as connection:
        chain, seen, runs, settings = (section.rows for section in trace(connection, newest))
        weekend_sections = [section.rows for section in trace(connection, "2025-miami")]
        proof = prove(connection, newest, resources["checkpoints"].folder)
        predicted = prove(connection, "2025-miami", resources["checkpoints"].folder)
    assert list(chain["kind"]) == ["ewc", "ewc", "adapted", "pretrained"]
    assert runs["dagster_run"].iloc[0] == run_id
    window = seen[seen["seen_by"] == newest].iloc[0]
    assert (window["role"], window["weekends"], window["first"], window["last"], window["sources"]) == (
        "window", 2, "2025-saudi-arabia", "2025-miami", "f1db")
    assert window["result_versions"] == "1"
    assert "window_races=6" in settings["settings"].iloc[0]
    assert newest in set(weekend_sections[1]["checkpoint"])
    assert proof == [f"{newest}: trained again from the rows kept, the same bit by bit"]
    assert len(predicted) == len(weekend_sections[0]) > 0


def test_a_waiting_candidate_is_a_warning(season, resources, rows):
    """Two races are too few to judge by: predictions keep the pretrained ranker, and the check warns."""
    assert rows("SELECT candidate = checkpoint, reason FROM ranking.promotions JOIN ranking.updates ON current "
                "AND model = 'champion' AND kind = 'ewc' AND updates.weekend = '2025-miami' "
                "WHERE decision = 'candidate'") == [(True, "2 races to judge it by (needs 3)")]
    assert rows("SELECT kind FROM ranking.checkpoints WHERE promoted") == [("pretrained",)]
    checks = {next(iter(check.check_keys)).name: check for check in defs.asset_checks}
    result = checks["newest_candidate_was_promoted"](resources["warehouse"])
    assert (result.passed, result.severity) == (False, dg.AssetCheckSeverity.WARN)
    [(candidate,)] = rows("SELECT candidate FROM ranking.promotions WHERE decision = 'candidate'")
    with resources["warehouse"].write("test") as connection:
        promote(connection, candidate, "it will do", datetime.now(UTC), resources["checkpoints"].folder)
    assert checks["newest_candidate_was_promoted"](resources["warehouse"]).passed


def test_the_command_traces_and_proves(season, newest, capsys, monkeypatch):
    def f1(*arguments: str) -> str:
        monkeypatch.setattr("sys.argv", ["f1", "trace", *arguments])
        main.main()
        return capsys.readouterr().out

    output = f1(newest()["champion"], "--rebuild")
    assert "adapted" in output and "2025-saudi-arabia" in output and "the same bit by bit" in output
    assert "/grid/" in f1("2025-miami")
    with pytest.raises(SystemExit, match="1"):
        f1("nobody")
    assert '"nobody" is neither a stored checkpoint nor a stored weekend' in capsys.readouterr().err


def test_an_unknown_checkpoint_is_an_error(season, rows, resources, tmp_path):
    with resources["warehouse"].read() as connection:
        for request in (lambda: rebuild(connection, "nobody", tmp_path), lambda: trace(connection, "nobody"),
                        lambda: rows_seen_by(connection, "nobody")):
            with pytest.raises(Untraceable, match="nobody"):
                request()


def test_mlflow_and_the_warehouse_refer_to_each_other(season, built, rows):
    """Every checkpoint has a run with its curves; registry and warehouse have the same champion."""
    with TrackingStore(f"sqlite:///{built / 'mlflow.db'}", built).open() as opened:
        runs = {run.info.run_id: run for run in opened.client.search_runs([opened.experiment])}
        champion = opened.client.get_model_version_by_alias(MODEL, "champion").tags["checkpoint"]
    assert [(champion,)] == rows("SELECT checkpoint FROM ranking.checkpoints WHERE promoted")
    stored = rows("SELECT checkpoint, mlflow_run, dagster_run, data_version, kind FROM ranking.checkpoints")
    assert len(stored) == 8
    for checkpoint, mlflow_run, dagster_run, data_version_, kind in stored:
        run = runs[mlflow_run]
        root = runs[runs[run.data.tags["mlflow.parentRunId"]].data.tags["mlflow.parentRunId"]]
        assert run.data.tags["checkpoint"] == checkpoint
        assert root.data.tags["dagster_run_id"] == dagster_run
        assert kind == "adapted" or "loss" in run.data.metrics
        assert kind == "pretrained" or {"spearman_before", "old_season_after"} <= set(run.data.metrics)
        assert data_version_ in {run.data.tags.get("data_version"),
                                 runs[run.data.tags["mlflow.parentRunId"]].data.tags.get("data_version")}
    assert {run.info.status for run in runs.values()} == {"FINISHED"}
