"""The registered model: one version per checkpoint, plain files, and aliases that follow the warehouse."""
from pathlib import Path

import mlflow
import pytest
from mlflow.exceptions import MlflowException

from f1_pipelines.tracking.registry import CANDIDATE, CHAMPION, MODEL, follow, register


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for checkpoint in ("first", "second"):
        (tmp_path / "checkpoints" / checkpoint).mkdir(parents=True)
        (tmp_path / "checkpoints" / checkpoint / "model.safetensors").write_text(f"weights of {checkpoint}")
        (tmp_path / "checkpoints" / checkpoint / "meta.json").write_text("{}")
    return tmp_path / "checkpoints"


@pytest.fixture
def opened(store):
    with store.open() as open_store:
        yield open_store


def checkpoint_of(opened, alias: str) -> str | None:
    try:
        return opened.client.get_model_version_by_alias(MODEL, alias).tags["checkpoint"]
    except MlflowException:
        return None


def test_aliases_are_set_moved_and_removed(opened, folder):
    follow(opened, {CHAMPION: None, CANDIDATE: None}, folder)
    follow(opened, {CHAMPION: "first", CANDIDATE: "second"}, folder)
    assert (checkpoint_of(opened, CHAMPION), checkpoint_of(opened, CANDIDATE)) == ("first", "second")
    follow(opened, {CHAMPION: "second", CANDIDATE: None}, folder)
    assert (checkpoint_of(opened, CHAMPION), checkpoint_of(opened, CANDIDATE)) == ("second", None)


def test_a_checkpoint_has_one_version_with_its_training_run(opened, folder):
    run = opened.client.create_run(opened.experiment).info.run_id
    version = register(opened, "first", folder / "first", run)
    assert version.run_id == run
    follow(opened, {CHAMPION: "first", CANDIDATE: "first"}, folder)
    assert register(opened, "first", folder / "first").version == version.version
    assert len(opened.client.search_model_versions(f"name = '{MODEL}'")) == 1


def test_a_version_has_the_files_of_the_checkpoint(opened, folder, store, tmp_path):
    follow(opened, {CHAMPION: "first"}, folder)
    version = opened.client.get_model_version_by_alias(MODEL, CHAMPION)
    download = Path(mlflow.artifacts.download_artifacts(
        run_id=version.run_id, artifact_path="checkpoint", dst_path=str(tmp_path / "download"), tracking_uri=store.uri))
    assert sorted(path.name for path in download.iterdir()) == ["meta.json", "model.safetensors"]
    assert (download / "model.safetensors").read_text() == "weights of first"
    assert opened.client.get_run(version.run_id).info.status == "FINISHED"


def test_a_missing_checkpoint_is_an_error(opened, folder):
    with pytest.raises(FileNotFoundError, match="checkpoint missing can't be registered"):
        follow(opened, {CHAMPION: "missing"}, folder)
    assert checkpoint_of(opened, CHAMPION) is None
