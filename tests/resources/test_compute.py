"""Where training runs: what is chosen, what is refused, and in which words."""
import sys

import pytest
import torch
from pydantic import ValidationError

from f1_pipelines.resources import compute
from f1_pipelines.resources.compute import Compute, NotEnoughMemory, free_memory_gib


def test_without_cuda_auto_is_the_cpu_and_cuda_is_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert Compute().resolve() == "cpu"
    with pytest.raises(RuntimeError, match="device cuda:1 was asked for, .* sees no CUDA device; set device to cpu"):
        Compute(device="cuda:1").resolve()


def test_with_cuda_auto_takes_it(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert Compute().resolve() == "cuda"
    assert Compute(device="cpu").resolve() == "cpu"
    assert Compute(device="cuda:1").resolve() == "cuda:1"


def test_precision_is_the_profiles_on_cuda_and_float32_on_the_cpu():
    assert Compute().precision_on("cuda", wants_bf16=True) == "bfloat16"
    assert Compute().precision_on("cuda", wants_bf16=False) == "float32"
    assert Compute().precision_on("cpu", wants_bf16=True) == "float32"
    assert Compute(precision="float32").precision_on("cuda", wants_bf16=True) == "float32"


def test_what_does_not_fit_is_refused_before_it_begins(monkeypatch):
    monkeypatch.setattr(compute, "free_memory_gib", lambda device: 3.2)
    Compute().require(3.0, "profile tiny", "cpu")
    with pytest.raises(NotEnoughMemory) as told:
        Compute().require(20.0, "profile qwen3-4b", "cuda")
    assert str(told.value) == ("profile qwen3-4b needs 20 GiB free on cuda, and there are 3.2; stop what else runs "
                               "there, or take a smaller profile (F1_PROFILE=tiny)")


def test_free_memory_of_the_cpu_is_some_of_it():
    assert 0.0 < free_memory_gib("cpu") < 4096.0


def test_each_launcher_has_its_command_line():
    assert Compute(launcher="subprocess").command("a.module", ["job.json"]) == [
        sys.executable, "-m", "a.module", "job.json"]
    launched = Compute(launcher="accelerate").command("a.module", ["job.json"])
    assert launched[:3] == [sys.executable, "-m", "accelerate.commands.launch"]
    assert launched[launched.index("--num_processes") + 1] == "1"
    assert launched[-3:] == ["-m", "a.module", "job.json"]


@pytest.mark.parametrize("wrong", [{"launcher": "ssh"}, {"device": "tpu"}, {"precision": "int8"}])
def test_what_it_does_not_know_is_refused(wrong):
    with pytest.raises(ValidationError):
        Compute(**wrong)
