"""The registered model: a version for each checkpoint, plain files, aliases that follow."""
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
    with store.open() as opened:
        yield opened


def of(opened, alias: str) -> str | None:
    try:
        return opened.client.get_model_version_by_alias(MODEL, alias).tags["checkpoint"]
    except MlflowException:
        return None


def test_aliases_follow_and_leave_nothing_behind(opened, folder):
    follow(opened, {CHAMPION: None, CANDIDATE: None}, folder)
    follow(opened, {CHAMPION: "first", CANDIDATE: "second"}, folder)
    assert (of(opened, CHAMPION), of(opened, CANDIDATE)) == ("first", "second")
    follow(opened, {CHAMPION: "second", CANDIDATE: None}, folder)
    assert (of(opened, CHAMPION), of(opened, CANDIDATE)) == ("second", None)


def test_a_checkpoint_is_one_version_with_the_run_that_made_it(opened, folder):
    run = opened.client.create_run(opened.experiment).info.run_id
    version = register(opened, "first", folder / "first", run)
    assert version.run_id == run
    follow(opened, {CHAMPION: "first", CANDIDATE: "first"}, folder)
    assert register(opened, "first", folder / "first").version == version.version
    assert len(opened.client.search_model_versions(f"name = '{MODEL}'")) == 1


def test_a_version_is_the_files_of_the_checkpoint(opened, folder, store, tmp_path):
    follow(opened, {CHAMPION: "first"}, folder)
    version = opened.client.get_model_version_by_alias(MODEL, CHAMPION)
    got = Path(mlflow.artifacts.download_artifacts(
        run_id=version.run_id, artifact_path="checkpoint", dst_path=str(tmp_path / "got"), tracking_uri=store.uri))
    assert sorted(path.name for path in got.iterdir()) == ["meta.json", "model.safetensors"]
    assert (got / "model.safetensors").read_text() == "weights of first"
    assert opened.client.get_run(version.run_id).info.status == "FINISHED"


def test_a_checkpoint_that_is_gone_is_an_error(opened, folder):
    with pytest.raises(FileNotFoundError, match="nobody can't be registered"):
        follow(opened, {CHAMPION: "nobody"}, folder)
    assert of(opened, CHAMPION) is None
