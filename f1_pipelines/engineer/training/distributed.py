"""Several processes that train one model, each on a device of its own.

`accelerate launch` starts them and torch averages their gradients before each step, so all hold the same weights. The
main process alone writes files, drives the races of rounds and examinations, and tells; the others wait for it where
they next meet.
"""
from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from accelerate import PartialState
    from transformers import TrainingArguments

# The others wait while the main process drives: torch's 10 minutes (NCCL) would end a training that is well. A process
# that fails does not keep them so long: the launcher ends all.
PROCESS_GROUP_TIMEOUT = timedelta(hours=12)


class WorldSizeError(RuntimeError):
    """These processes can't train together. One sentence: what came, what was wanted, what to do."""


def accelerator_on(device: str) -> PartialState:
    """The processes that train together; this one alone where nobody started more.

    Args:
        device: cpu (they meet over gloo), cuda (over NCCL) or, for one alone, cuda:1.
    """
    from accelerate import PartialState

    return PartialState(cpu=device == "cpu", timeout=PROCESS_GROUP_TIMEOUT)


def own_device(accelerator: PartialState, device: str) -> str:
    """The device of this process: of several, each has its own GPU; alone it is the first or the named one."""
    return f"cuda:{accelerator.local_process_index}" if device == "cuda" else device


def on_one_device(settings: TrainingArguments, device: str) -> None:
    """Keep a trainer on its device.

    transformers 5.24 lets a process that was started alone train on all GPUs that it sees, from cuda:0 on, and has no
    setting against it. Of several processes, each is on its own GPU already.
    """
    import torch

    if device == "cpu" or settings.world_size > 1:
        return
    place = torch.device("cuda", torch.device(device).index or 0)
    torch.cuda.set_device(place)
    settings._n_gpu = 1
    vars(settings)["_setup_devices"] = place
