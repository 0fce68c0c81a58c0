"""Several processes that train one model, each on its own device.

`accelerate launch` starts them, and torch averages their gradients before each step, so all hold the same weights. Only
the main process writes files, drives the races of DAgger rounds and evaluations, and reports; the others wait at their
next collective operation.
"""
from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from accelerate import PartialState
    from transformers import TrainingArguments

# The others wait while the main process drives races; torch's default of 10 minutes (NCCL) would end a healthy
# training. When a process fails, the launcher ends all of them without this delay.
PROCESS_GROUP_TIMEOUT = timedelta(hours=12)


class WorldSizeError(RuntimeError):
    """This number of processes can't train together. The message says how many can and what to do."""


def accelerator_on(device: str) -> PartialState:
    """Join the processes that train together: a single one, unless a launcher started more.

    Args:
        device: cpu (backend gloo), cuda (NCCL) or, for a single process, cuda:1.
    """
    from accelerate import PartialState

    return PartialState(cpu=device == "cpu", timeout=PROCESS_GROUP_TIMEOUT)


def own_device(accelerator: PartialState, device: str) -> str:
    """Return the device of this process. Each of several processes has its own GPU."""
    return f"cuda:{accelerator.local_process_index}" if device == "cuda" else device


def on_one_device(arguments: TrainingArguments, device: str) -> None:
    """Restrict a trainer to its device.

    A single process of transformers 5.24 trains on all visible GPUs, from cuda:0 on; no public setting prevents it.
    Only this function sets its private fields; tests/engineer/training/test_distributed.py checks that they still have
    this effect. Each of several processes is on its own GPU already.
    """
    import torch

    if device == "cpu" or arguments.world_size > 1:
        return
    gpu = torch.device("cuda", torch.device(device).index or 0)
    torch.cuda.set_device(gpu)
    arguments._n_gpu = 1
    vars(arguments)["_setup_devices"] = gpu  # the cached property behind `arguments.device`
