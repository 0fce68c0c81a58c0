"""A checkpoint is stored once, completely, under its id; a damaged one is replaced."""
import json

import pytest

from f1_pipelines.checkpoints.store import META, checkpoint_id, commit, read_meta, sha256_of, temporary_folder


def store(folder, content: bytes, is_intact=lambda path: True) -> bool:
    with temporary_folder(folder) as temporary:
        (temporary / "model.safetensors").write_bytes(content)
        meta = {"weights": sha256_of([temporary / "model.safetensors"])}
        return commit(temporary, folder / checkpoint_id({"a": 1}), meta, is_intact)


def test_an_intact_checkpoint_stays_and_a_damaged_one_is_replaced(tmp_path):
    folder = tmp_path / "checkpoints"
    target = folder / checkpoint_id({"a": 1})
    assert store(folder, b"first")
    assert not store(folder, b"second")
    assert (target / "model.safetensors").read_bytes() == b"first"
    assert store(folder, b"second", is_intact=lambda path: False)
    assert (target / "model.safetensors").read_bytes() == b"second"
    assert [path.name for path in folder.iterdir()] == [target.name], "no temporary folder remains"


def test_a_failed_write_leaves_no_files(tmp_path):
    with pytest.raises(ZeroDivisionError), temporary_folder(tmp_path) as temporary:
        (temporary / "model.safetensors").write_bytes(b"half")
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


def test_the_id_does_not_depend_on_the_order_of_keys():
    assert checkpoint_id({"a": 1, "b": 2}) == checkpoint_id({"b": 2, "a": 1}) != checkpoint_id({"a": 1, "b": 3})


def test_meta_that_is_not_an_object_is_refused(tmp_path):
    (tmp_path / META).write_text(json.dumps([1]))
    with pytest.raises(ValueError, match="holds list"):
        read_meta(tmp_path)
