"""The device, precision, processes and memory of training, and the messages of refusals."""
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


def test_auto_is_cuda_if_available(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert Compute().resolve() == "cuda"
    assert Compute(device="cpu").resolve() == "cpu"
    assert Compute(device="cuda:1").resolve() == "cuda:1"


def test_auto_precision_is_the_profiles_on_cuda_and_float32_on_the_cpu():
    assert Compute().precision_on("cuda", wants_bf16=True) == "bfloat16"
    assert Compute().precision_on("cuda", wants_bf16=False) == "float32"
    assert Compute().precision_on("cpu", wants_bf16=True) == "float32"
    assert Compute(precision="float32").precision_on("cuda", wants_bf16=True) == "float32"


def test_a_model_that_does_not_fit_is_refused(monkeypatch):
    monkeypatch.setattr(compute, "free_memory_gib", lambda device: 3.2)
    Compute().require(3.0, "profile tiny", "cpu")
    with pytest.raises(NotEnoughMemory) as error:
        Compute().require(20.0, "profile qwen3-4b", "cuda")
    assert str(error.value) == ("profile qwen3-4b needs 20 GiB free on cuda, and there are 3.2; stop what else runs "
                                "there, or take a smaller profile (F1_PROFILE=tiny)")


def test_free_memory_of_the_cpu_is_plausible():
    assert 0.0 < free_memory_gib("cpu") < 4096.0


def test_command_lines_of_the_launchers():
    assert Compute(launcher="subprocess").command("a.module", ["job.json"]) == [
        sys.executable, "-m", "a.module", "job.json"]
    launched = Compute(launcher="accelerate").command("a.module", ["job.json"], 3)
    assert launched[:3] == [sys.executable, "-m", "accelerate.commands.launch"]
    assert launched[launched.index("--num_processes") + 1] == "3"
    assert launched[-3:] == ["-m", "a.module", "job.json"]


@pytest.mark.parametrize(("settings", "device", "processes"), [
    ({}, "cuda", 1), ({"processes": 1}, "cpu", 1),
    ({"launcher": "accelerate"}, "cpu", 1), ({"launcher": "accelerate", "processes": 3}, "cpu", 3),
    ({"launcher": "accelerate"}, "cuda", 4), ({"launcher": "accelerate", "processes": 2}, "cuda", 2),
    ({"launcher": "accelerate"}, "cuda:1", 1)])
def test_one_process_per_gpu_or_the_number_set(settings, device, processes, monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    assert Compute(**settings).processes_on(device) == processes


@pytest.mark.parametrize(("settings", "device", "reason"), [
    ({}, "cuda", "launcher in_process starts one; set launcher to accelerate, or processes to 0"),
    ({"launcher": "accelerate"}, "cuda:1", "device cuda:1 is a single GPU; set device to cuda"),
    ({"launcher": "accelerate"}, "cuda", "each on a separate GPU, but torch sees 4; set processes to 4 or less")])
def test_too_many_processes_are_refused(settings, device, reason, monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    with pytest.raises(RuntimeError, match=f"^5 processes were asked for, .*{reason}"):
        Compute(processes=5, **settings).processes_on(device)


def test_processes_share_the_memory_of_the_cpu_and_each_gpu_is_checked(monkeypatch):
    monkeypatch.setattr(compute, "free_memory_gib", {"cpu": 5.0, "cuda:0": 5.0, "cuda:1": 2.0}.get)
    Compute().require(2.0, "it", "cpu", 2)
    with pytest.raises(NotEnoughMemory, match="it needs 6 GiB free on cpu, and there are 5.0"):
        Compute().require(3.0, "it", "cpu", 2)
    with pytest.raises(NotEnoughMemory, match="it needs 3 GiB free on cuda:1, and there are 2.0"):
        Compute().require(3.0, "it", "cuda", 2)


@pytest.mark.parametrize("settings", [{"launcher": "ssh"}, {"device": "tpu"}, {"precision": "int8"}, {"processes": -1}])
def test_invalid_settings_are_refused(settings):
    with pytest.raises(ValidationError):
        Compute(**settings)
