"""A checkpoint loads unchanged, or is refused with the reason."""
import hashlib
import json
import os
import pickle
from dataclasses import replace

import numpy as np
import pytest

from f1_pipelines.checkpoints import store
from f1_pipelines.checkpoints.store import CheckpointError
from f1_pipelines.models.checkpoints import load_checkpoint, save_checkpoint, stored_checkpoints
from f1_pipelines.models.config import F1NET, RANKER
from f1_pipelines.models.training import train


@pytest.fixture(scope="module", params=[RANKER, F1NET], ids=lambda config: config.model)
def trained(request, seasons):
    return train(seasons, replace(request.param, epochs=2, seasons=None))[0]


@pytest.fixture
def stored(trained, tmp_path):
    return save_checkpoint(trained, tmp_path / "checkpoints", kind="pretrained", data_version="data-1",
                           metrics={"spearman": 0.67})


def test_a_loaded_checkpoint_gives_the_same_scores(stored, trained, seasons):
    loaded = load_checkpoint(stored.path)
    np.testing.assert_array_equal(loaded.trained.scores(seasons), trained.scores(seasons))
    assert replace(loaded.trained, model=None) == replace(trained, model=None)
    assert (loaded.id, loaded.meta) == (stored.id, stored.meta)
    assert stored_checkpoints(stored.path.parent) == [stored.path]
    assert sorted(path.name for path in stored.path.iterdir()) == ["meta.json", "model.safetensors"]


def test_meta_describes_the_checkpoint(stored, trained):
    meta = json.loads((stored.path / "meta.json").read_text())
    assert meta["model"] == trained.config.model and meta["kind"] == "pretrained" and meta["parent"] is None
    assert meta["features"] == list(trained.config.features) and meta["drivers"] == list(trained.drivers.names)
    assert meta["trained_through"] == "2024-race-11" and meta["data_version"] == "data-1"
    assert meta["metrics"] == {"spearman": 0.67} and set(meta["code_version"]) == {"f1-pipelines", "torch"}
    assert meta["created_at"].endswith("+00:00")
    if trained.config.model == "f1net_reference":
        assert meta["standardisation"]["grid_position"]["spread"] > 0


def test_the_id_is_the_content(stored, trained):
    folder = stored.path.parent
    again = save_checkpoint(trained, folder, kind="pretrained", data_version="data-1", metrics={"spearman": 0.1})
    assert again.id == stored.id and again.meta == stored.meta, "an intact checkpoint is kept"
    others = [save_checkpoint(trained, folder, kind="ewc", data_version="data-1", parent=stored.id),
              save_checkpoint(trained, folder, kind="pretrained", data_version="data-2")]
    assert len({stored.id, *(other.id for other in others)}) == 3


@pytest.mark.parametrize(("damage", "message"), [
    (lambda path: (path / "model.safetensors").unlink(), "model.safetensors is missing"),
    (lambda path: (path / "meta.json").unlink(), "meta.json is missing"),
    (lambda path: (path / "meta.json").write_text('{"kind": '), "can't be read"),
    (lambda path: (path / "meta.json").write_text("[]"), "holds list, no object"),
    (lambda path: (path / "model.safetensors").write_bytes((path / "model.safetensors").read_bytes()[:-9]), "damaged"),
    (lambda path: rewrite(path, feature_version="0"), "features of version 0"),
    (lambda path: rewrite(path, sizes={"inputs": 1}), "does not fit"),
    (lambda path: rewrite(path, sizes={"wheels": 4}), "does not fit"),
])
def test_an_unusable_checkpoint_is_refused_with_the_reason(stored, trained, damage, message):
    damage(stored.path)
    with pytest.raises(CheckpointError, match=message) as caught:
        load_checkpoint(stored.path)
    assert str(caught.value).startswith(str(stored.path)) and "again" in str(caught.value)
    if message in ("damaged", "holds list, no object"):
        save_checkpoint(trained, stored.path.parent, kind="pretrained", data_version="data-1")
        load_checkpoint(stored.path)


class RunsOnLoad:
    """Creates a folder when unpickled."""

    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (str(self.folder),)


@pytest.mark.parametrize("damage", ["a pickle", "truncated"])
def test_weights_that_are_not_safetensors_are_refused_without_running_code(stored, tmp_path, damage):
    file, target = stored.path / "model.safetensors", tmp_path / "made"
    file.write_bytes(pickle.dumps(RunsOnLoad(target)) if damage == "a pickle" else file.read_bytes()[:-9])
    rewrite(stored.path, weights_sha256=hashlib.sha256(file.read_bytes()).hexdigest())
    with pytest.raises(CheckpointError, match="does not fit the models of this code .*; train again"):
        load_checkpoint(stored.path)
    assert not target.exists()


def rewrite(path, **changes):
    meta = json.loads((path / "meta.json").read_text())
    (path / "meta.json").write_text(json.dumps(meta | changes))


def test_a_killed_save_leaves_no_checkpoint(trained, tmp_path, monkeypatch):
    def killed(file):
        raise KeyboardInterrupt

    monkeypatch.setattr(store.os, "fsync", killed)
    monkeypatch.setattr(store.shutil, "rmtree", lambda *args, **kwargs: None)  # a killed process does not clean up
    with pytest.raises(KeyboardInterrupt):
        save_checkpoint(trained, tmp_path, kind="pretrained", data_version="data-1")
    assert [path.name[0] for path in tmp_path.iterdir()] == ["."]
    assert stored_checkpoints(tmp_path) == []
    monkeypatch.undo()
    saved = save_checkpoint(trained, tmp_path, kind="pretrained", data_version="data-1")
    assert stored_checkpoints(tmp_path) == [saved.path]
